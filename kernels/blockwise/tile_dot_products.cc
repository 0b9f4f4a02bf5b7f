// The tile of weights of 4 bits by AVX512-VNNI's dot products, which sum four bytes of every lane
// in one instruction where the vector code of tile.cc takes three; with intrinsics, since the
// oldest supported Highway has no such target.
#include "kernels/blockwise/tile.h"

#if defined(__x86_64__)
#include <hwy/base.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

// g++ 12 warns of values that its own header leaves undefined on purpose.
HWY_DIAGNOSTICS(push)
#if HWY_COMPILER_GCC_ACTUAL
HWY_DIAGNOSTICS_OFF(disable : 4701, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,fma")
namespace fuselite::kernels {
namespace {

constexpr int kLanes = 16, kVectorBytes = 64;
// Bytes of weights between what one or two rows multiply and what they fetch into L1.
constexpr int kWeightsAhead = 4096;

// The scales of a block, of the units of vector `v` of the panel.
template <bool kHalf>
inline __m512 ScalesOf(const BlockwiseTile& t, int64_t block, int v) {
  const std::byte* const at = t.scales + block * t.scales_step;
  if constexpr (kHalf) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at) + v));
  } else {
    return _mm512_loadu_ps(reinterpret_cast<const float*>(at) + v * kLanes);
  }
}

// Four bytes, in every lane.
inline __m512i Broadcast32(const std::byte* from) {
  int32_t value;
  std::memcpy(&value, from, sizeof(value));
  return _mm512_set1_epi32(value);
}

// Stores `y`, the results of row `r` for vector `v` of the panel.
inline void StoreRow(const BlockwiseTile& t, int v, int r, __m512 y) {
  const int64_t units = std::min<int64_t>(t.units - v * kLanes, kLanes);
  const auto mask = static_cast<__mmask16>((1u << units) - 1);
  if (t.bias != nullptr) y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(mask, t.bias + v * kLanes));
  // A NaN stays one.
  __m512 cut = _mm512_min_ps(_mm512_max_ps(y, _mm512_set1_ps(t.min)), _mm512_set1_ps(t.max));
  cut = _mm512_mask_mov_ps(cut, _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), y);
  _mm512_mask_storeu_ps(t.out + r * t.out_pitch + v * kLanes, mask, cut);
}

// Does as tile.cc's StoreRows.
template <int kRows>
inline void StoreRows(const BlockwiseTile& t, int v, const __m512* sums) {
  const __m512 per_offset =
      _mm512_load_ps(reinterpret_cast<const float*>(t.per_offset) + v * kLanes);
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    const __m512 sum = _mm512_fnmadd_ps(_mm512_set1_ps(t.rows[r].offset), per_offset, sums[r]);
    StoreRow(t, v, r, _mm512_mul_ps(sum, _mm512_set1_ps(t.rows[r].scale)));
  }
}

// Rows over the vectors of a panel: a load that spreads four bytes takes as long as a dot product,
// so that each serves both vectors, which a panel has even where the last one has units for one
// alone.
constexpr int kPanelVectors = 2, kMaxRows = 5;

// The sums of a block of each row over the first vector or both, whose weights are fetched ahead
// with `kAhead`. Every loop over them is unrolled: g++ would keep them on the stack else.
template <int kVectors, int kRows, bool kAhead>
struct BlockSums {
  // With few rows the two halves of the bytes have sums of their own, so that enough of them are on
  // their way; those of the high halves are 16 times too large until the end. More would not fit
  // the registers.
  static constexpr int kHalves = kVectors * kRows <= 5 ? 2 : 1;
  __m512i sums[kVectors][kHalves][kRows];

  BlockSums(const BlockwiseTile& t, int64_t block) {
    HWY_UNROLL(2)
    for (auto& of_vector : sums) {
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        of_vector[0][r] = _mm512_set1_epi32(t.rows[r].sums[block]);
        if constexpr (kHalves == 2) of_vector[1][r] = _mm512_setzero_si512();
      }
    }
  }

  HWY_INLINE void AddBlock(const BlockwiseTile& t, int64_t block) {
    const std::byte* weights = t.weights + block * t.weights_step;
    const std::byte* values[kRows];
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) values[r] = t.rows[r].values + block * t.block_size;
    for (int64_t at = 0; at < t.block_size; at += kBlockwiseStep) {
      HWY_UNROLL(4)
      for (int64_t i = 0; i < kBlockwiseStep; i += 8, weights += kPanelVectors * kVectorBytes) {
        AddEight(values, at + i, weights);
      }
    }
  }

  HWY_INLINE __m512i Total(int v, int r) const {
    if constexpr (kHalves == 1) return sums[v][0][r];
    return _mm512_add_epi32(sums[v][0][r], _mm512_srai_epi32(sums[v][kHalves - 1][r], 4));
  }

 private:
  // Depth [at, at + 8).
  HWY_INLINE void AddEight(const std::byte* const* values, int64_t at, const std::byte* weights) {
    __m512i low[kVectors], high[kVectors];
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      const __m512i both = Load(weights + v * kVectorBytes);
      low[v] = _mm512_and_si512(both, _mm512_set1_epi8(0x0f));
      high[v] = High(both);
    }
    AddFours(values, at, low, 0);
    AddFours(values, at + 4, high, kHalves - 1);
  }

  static __m512i Load(const std::byte* weights) {
    if constexpr (kAhead) _mm_prefetch(weights + kWeightsAhead, _MM_HINT_T0);
    __m512i both = _mm512_load_si512(weights);
    asm("" : "+v"(both));  // else it is loaded twice, and loads are what few rows wait for
    return both;
  }
  static __m512i High(__m512i both) {
    if constexpr (kHalves == 1) {
      return _mm512_and_si512(_mm512_srli_epi16(both, 4), _mm512_set1_epi8(0x0f));
    }
    return _mm512_and_si512(both, _mm512_set1_epi8(static_cast<char>(0xf0)));
  }
  HWY_INLINE void AddFours(const std::byte* const* values, int64_t at, const __m512i* weights,
                           int half) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      __m512i x = Broadcast32(values[r] + at);
      asm("" : "+v"(x));  // else it is loaded twice
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        sums[v][half][r] = _mm512_dpbusd_epi32(sums[v][half][r], weights[v], x);
      }
    }
  }
};

// Does as tile.cc's StoreExactRows.
template <int kRows>
inline void StoreExactRows(const BlockwiseTile& t, int v, const __m512i* totals, __m512 scales) {
  const __m512i per_offset = _mm512_load_si512(t.per_offset + v * kVectorBytes);
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    const __m512i offset = _mm512_set1_epi32(static_cast<int32_t>(t.rows[r].offset));
    const __m512i sum = _mm512_sub_epi32(totals[r], _mm512_mullo_epi32(offset, per_offset));
    const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(t.rows[r].scale), scales);
    StoreRow(t, v, r, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale));
  }
}

template <int kVectors, int kRows, bool kHalf, bool kAhead>
void RunRows(const BlockwiseTile& t) {
  __m512 sums[kVectors][kRows];
  HWY_UNROLL(2)
  for (auto& of_vector : sums) {
    HWY_UNROLL(8)
    for (__m512& sum : of_vector) sum = _mm512_setzero_ps();
  }
  for (int64_t block = 0; block < t.blocks; ++block) {
    BlockSums<kVectors, kRows, kAhead> of_block(t, block);
    of_block.AddBlock(t, block);
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      const __m512 scales = ScalesOf<kHalf>(t, block, v);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        const __m512 sum = _mm512_cvtepi32_ps(of_block.Total(v, r));
        sums[v][r] = _mm512_fmadd_ps(scales, sum, sums[v][r]);
      }
    }
  }
  HWY_UNROLL(2)
  for (int v = 0; v < kVectors; ++v) StoreRows<kRows>(t, v, sums[v]);
}

// As RunRows(), of an exact tile, which has one block.
template <int kVectors, int kRows, bool kHalf, bool kAhead>
void RunExactRows(const BlockwiseTile& t) {
  BlockSums<kVectors, kRows, kAhead> sums(t, 0);
  sums.AddBlock(t, 0);
  HWY_UNROLL(2)
  for (int v = 0; v < kVectors; ++v) {
    __m512i totals[kRows];
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) totals[r] = sums.Total(v, r);
    StoreExactRows<kRows>(t, v, totals, ScalesOf<kHalf>(t, 0, v));
  }
}

// One or two rows wait for the weights, more for the products.
template <int kVectors, int kRows, bool kHalf>
void RunAsAsked(const BlockwiseTile& t) {
  if constexpr (kVectors == 2 && kRows <= 2) {
    if (t.fetches_ahead) {
      return t.exact ? RunExactRows<kVectors, kRows, kHalf, true>(t)
                     : RunRows<kVectors, kRows, kHalf, true>(t);
    }
  }
  t.exact ? RunExactRows<kVectors, kRows, kHalf, false>(t)
          : RunRows<kVectors, kRows, kHalf, false>(t);
}

template <int kVectors, bool kHalf>
void RunVectors(const BlockwiseTile& t) {
  switch (t.row_count) {
    case 1: return RunAsAsked<kVectors, 1, kHalf>(t);
    case 2: return RunAsAsked<kVectors, 2, kHalf>(t);
    case 3: return RunAsAsked<kVectors, 3, kHalf>(t);
    case 4: return RunAsAsked<kVectors, 4, kHalf>(t);
    default: return RunAsAsked<kVectors, kMaxRows, kHalf>(t);
  }
}

template <bool kHalf>
void RunTile(const BlockwiseTile& t) {
  t.units > kLanes ? RunVectors<kPanelVectors, kHalf>(t) : RunVectors<1, kHalf>(t);
}

}  // namespace

HWY_POP_ATTRIBUTES
// Outside of them: this runs on machines without these instructions, too.
BlockwiseFunctions WithDotProducts(const BlockwiseFunctions& functions) {
  BlockwiseFunctions dot = functions;
  dot.tiles[0][0] = {RunTile<true>, kMaxRows, kPanelVectors, true};
  dot.tiles[0][1] = {RunTile<false>, kMaxRows, kPanelVectors, true};
  return dot;
}

}  // namespace fuselite::kernels
HWY_DIAGNOSTICS(pop)
#endif
