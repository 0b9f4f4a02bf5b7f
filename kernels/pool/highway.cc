// Pools with vectors along the channels: eight of them stay in registers over a window's taps.
#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/pool/pool.h"
#include "kernels/rows/row_tail.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/pool/totals-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

// What the vector code needs of a pool; the same for every target.
#ifndef FUSELITE_KERNELS_POOL_HIGHWAY_ONCE_
#define FUSELITE_KERNELS_POOL_HIGHWAY_ONCE_
namespace fuselite::kernels {
struct PoolWindow {
  PoolKind kind;
  int64_t pixel_pitch, row_pitch;  // elements between neighbouring pixels and rows
  int64_t in_step, out_step;       // elements from an output pixel's first tap, output, to the next
  float low, high;                 // of the fused activation
};
}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// `kVectors` vectors of channels, of which the last one ends with the `n`th channel and may overlap
// the one before; where kVectors is 0 `n` < Lanes channels.
template <PoolKind kKind, size_t kVectors>
HWY_INLINE void PoolChannels(const PoolWindow& pool, const PoolTaps& taps, const float* in,
                             float* out, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto start = hn::Set(d, NoTotal<kKind, float>());
  const auto count = hn::Set(d, static_cast<float>(taps.count()));
  if constexpr (kVectors == 0) {
    auto total = start;
    for (int32_t y = 0; y < taps.rows; ++y) {
      const float* pixel = in + y * pool.row_pitch;
      for (int32_t x = 0; x < taps.columns; ++x, pixel += pool.pixel_pitch) {
        total = CombineTaps<kKind>(total, LoadPartial(d, pixel, n));
      }
    }
    StorePartial(FloatOfTotal<kKind>(total, count, pool.low, pool.high), d, out, n);
  } else {
    hn::Vec<D> totals[kVectors];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) totals[v] = start;
    const size_t last = n - lanes;
    for (int32_t y = 0; y < taps.rows; ++y) {
      const float* pixel = in + y * pool.row_pitch;
      for (int32_t x = 0; x < taps.columns; ++x, pixel += pool.pixel_pitch) {
        HWY_UNROLL(8)
        for (size_t v = 0; v + 1 < kVectors; ++v) {
          totals[v] = CombineTaps<kKind>(totals[v], hn::LoadU(d, pixel + v * lanes));
        }
        totals[kVectors - 1] = CombineTaps<kKind>(totals[kVectors - 1], hn::LoadU(d, pixel + last));
      }
    }
    HWY_UNROLL(8)
    for (size_t v = 0; v + 1 < kVectors; ++v) {
      hn::StoreU(FloatOfTotal<kKind>(totals[v], count, pool.low, pool.high), d, out + v * lanes);
    }
    hn::StoreU(FloatOfTotal<kKind>(totals[kVectors - 1], count, pool.low, pool.high), d,
               out + last);
  }
}

// Several vectors at a time, so that their additions overlap.
template <PoolKind kKind>
HWY_INLINE void PoolPixelOf(const PoolWindow& pool, const PoolTaps& taps, const float* in,
                            float* out, size_t channels) {
  const size_t lanes = hn::Lanes(D());
  if (channels < lanes) return PoolChannels<kKind, 0>(pool, taps, in, out, channels);
  for (; channels > 8 * lanes; channels -= 8 * lanes, in += 8 * lanes, out += 8 * lanes) {
    PoolChannels<kKind, 8>(pool, taps, in, out, 8 * lanes);
  }
  switch ((channels + lanes - 1) / lanes) {
    case 8: return PoolChannels<kKind, 8>(pool, taps, in, out, channels);
    case 7: return PoolChannels<kKind, 7>(pool, taps, in, out, channels);
    case 6: return PoolChannels<kKind, 6>(pool, taps, in, out, channels);
    case 5: return PoolChannels<kKind, 5>(pool, taps, in, out, channels);
    case 4: return PoolChannels<kKind, 4>(pool, taps, in, out, channels);
    case 3: return PoolChannels<kKind, 3>(pool, taps, in, out, channels);
    case 2: return PoolChannels<kKind, 2>(pool, taps, in, out, channels);
    default: break;
  }
  // Less than a vector may be left of more: it begins earlier.
  const size_t back = channels < lanes ? lanes - channels : 0;
  PoolChannels<kKind, 1>(pool, taps, in - back, out - back, lanes);
}

template <PoolKind kKind>
void PoolPixelsOf(const PoolWindow& pool, const PoolTaps& taps, const float* in, float* out,
                  size_t channels, int64_t pixels) {
  for (int64_t i = 0; i < pixels; ++i, in += pool.in_step, out += pool.out_step) {
    PoolPixelOf<kKind>(pool, taps, in, out, channels);
  }
}

// A run of output pixels (ForPixelRuns).
void PoolPixels(const PoolWindow& pool, const PoolTaps& taps, const float* in, float* out,
                size_t channels, int64_t pixels) {
  switch (pool.kind) {
    case PoolKind::kAverage:
      return PoolPixelsOf<PoolKind::kAverage>(pool, taps, in, out, channels, pixels);
    case PoolKind::kMax: return PoolPixelsOf<PoolKind::kMax>(pool, taps, in, out, channels, pixels);
    case PoolKind::kL2: return PoolPixelsOf<PoolKind::kL2>(pool, taps, in, out, channels, pixels);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
Result<std::unique_ptr<Kernel>> BuildPoolHighway(const OpDescription& op,
                                                 const BuildContext& context) {
  constexpr auto kPoolPixels = FUSELITE_SIMD_TABLE(PoolPixels);
  if (auto columns = BuildPoolColumns(op, context); columns.ok()) return columns;
  if (auto rows = BuildPoolRows(op, context); rows.ok()) return rows;
  if (op.inputs[0].type != DataType::kFloat32) return BuildIntegerPoolHighway(op, context);
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePool(op));
  Work work{.units = shape.pixels_out(),
            .grain = GrainFor(int64_t{shape.channels} * shape.window.taps())};
  FUSELITE_ASSIGN_OR_RETURN(auto* const pixels_function, kPoolPixels.Require(context.isa));
  const int64_t pitch = op.inputs[0].pitch();
  const RowTail tail(op, ApplyTail(context.isa));
  PoolWindow pool{.kind = PoolKindOf(*op.op),
                  .pixel_pitch = pitch,
                  .row_pitch = pitch * shape.window.x.input,
                  .in_step = pitch * shape.window.x.stride,
                  .out_step = tail.row_pitch(),
                  .low = 0,
                  .high = 0};
  ActivationRange(op.params.as<PoolParams>().activation, &pool.low, &pool.high);
  const int64_t together = tail.rows_together();
  work.scratch_bytes = tail.scratch_bytes(together);
  return MakeKernel(
      std::string("pool f32 ") + SimdName(context.isa), work,
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const float*>(args.inputs[0]);
        for (int64_t first = begin; first < end; first += together) {
          const int64_t last = std::min(end, first + together);
          ForPixelRuns(shape, first, last, [&](int64_t p, int64_t count, const PoolTaps& taps) {
            pixels_function(pool, taps, in + taps.first * pitch, tail.Row(args, p, first),
                            shape.channels, count);
          });
          tail.Finish(args, first, last - first);
        }
      });
}

}  // namespace fuselite::kernels
#endif
