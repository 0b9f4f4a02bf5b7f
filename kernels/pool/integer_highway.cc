// Pools of integers with vectors along the channels: four of them stay in registers over a window's
// taps, a mean's sums in 16 bits where the window is small enough.
#include "kernels/make_kernel.h"
#include "kernels/pool/pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/integer_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/pool/totals-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_POOL_INTEGER_ONCE_
#define FUSELITE_KERNELS_POOL_INTEGER_ONCE_
namespace fuselite::kernels {

struct IntegerPool {
  int64_t pixel_pitch, row_pitch;  // elements between neighbouring pixels and rows
  int64_t in_step, out_step;       // elements from an output pixel's first tap, output, to the next
  int32_t low, high;               // of the fused activation, within the type's range
};
// A run of output pixels (ForPixelRuns).
using IntegerPixels = void(const IntegerPool&, const PoolTaps&, const void* in, void* out,
                           size_t channels, int64_t pixels);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where the vectors of a block lie: `kVectors` whole ones, of which the last ends with the `n`th
// value and may overlap the one before, or where that is 0 `n` < Lanes values.
template <size_t kVectors>
HWY_INLINE size_t VectorAt(size_t v, size_t lanes, size_t n) {
  return v + 1 < kVectors ? v * lanes : n - lanes;
}

// The vectors of a block of every tap in turn.
template <size_t kVectors, class D, class T, class Take>
HWY_INLINE void ForTaps(D d, const IntegerPool& pool, const PoolTaps& taps, const T* in, size_t n,
                        Take take) {
  for (int32_t y = 0; y < taps.rows; ++y) {
    const T* pixel = in + y * pool.row_pitch;
    for (int32_t x = 0; x < taps.columns; ++x, pixel += pool.pixel_pitch) {
      if constexpr (kVectors == 0) {
        take(0, LoadPartial(d, pixel, n));
      } else {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) {
          take(v, hn::LoadU(d, pixel + VectorAt<kVectors>(v, hn::Lanes(d), n)));
        }
      }
    }
  }
}

// Lane: the vectors' tag, with as many lanes as channels fill.
template <class T, class Lane>
struct MaxChannels {
  using D = Lane;

  template <size_t kVectors>
  static HWY_INLINE void Run(const IntegerPool& pool, const PoolTaps& taps, const T* in, T* out,
                             size_t n) {
    const D d;
    hn::Vec<D> totals[HWY_MAX(kVectors, 1)];
    const auto low = hn::Set(d, static_cast<T>(pool.low));
    for (auto& total : totals) total = low;
    ForTaps<kVectors>(d, pool, taps, in, n, [&](size_t v, hn::Vec<D> x) FUSELITE_INLINED {
      totals[v] = hn::Max(totals[v], x);
    });
    const auto high = hn::Set(d, static_cast<T>(pool.high));
    if constexpr (kVectors == 0) StorePartial(hn::Min(totals[0], high), d, out, n);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::Min(totals[v], high), d, out + VectorAt<kVectors>(v, hn::Lanes(d), n));
    }
  }
};

// Sum: int32_t, or 16 bits with the sign of T.
template <class T, class Sum>
struct MeanChannels {
  using D = hn::ScalableTag<Sum>;
  using Narrow = hn::Rebind<T, D>;

  template <size_t kVectors>
  static HWY_INLINE void Run(const IntegerPool& pool, const PoolTaps& taps, const T* in, T* out,
                             size_t n) {
    const D d;
    hn::Vec<D> totals[HWY_MAX(kVectors, 1)];
    for (auto& total : totals) total = hn::Zero(d);
    ForTaps<kVectors>(Narrow(), pool, taps, in, n,
                      [&](size_t v, hn::Vec<Narrow> x) FUSELITE_INLINED {
                        totals[v] = hn::Add(totals[v], hn::PromoteTo(d, x));
                      });
    const IntegerMeans<T> means(taps.count(), pool.low, pool.high);
    if constexpr (kVectors == 0) means.Store(d, totals[0], out, n);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      means.Store(d, totals[v], out + VectorAt<kVectors>(v, hn::Lanes(d), n), hn::Lanes(d));
    }
  }
};

template <class T, class Channels>
HWY_INLINE void PixelOf(const IntegerPool& pool, const PoolTaps& taps, const T* in, T* out,
                        size_t channels) {
  const size_t lanes = hn::Lanes(typename Channels::D());
  if (channels < lanes) return Channels::template Run<0>(pool, taps, in, out, channels);
  for (; channels > 4 * lanes; channels -= 4 * lanes, in += 4 * lanes, out += 4 * lanes) {
    Channels::template Run<4>(pool, taps, in, out, 4 * lanes);
  }
  switch ((channels + lanes - 1) / lanes) {
    case 4: return Channels::template Run<4>(pool, taps, in, out, channels);
    case 3: return Channels::template Run<3>(pool, taps, in, out, channels);
    case 2: return Channels::template Run<2>(pool, taps, in, out, channels);
    default: break;
  }
  // Less than a vector may be left of more: it begins earlier.
  const size_t back = channels < lanes ? lanes - channels : 0;
  Channels::template Run<1>(pool, taps, in - back, out - back, lanes);
}

template <class T, class Channels>
void PixelsOf(const IntegerPool& pool, const PoolTaps& taps, const void* in, void* out,
              size_t channels, int64_t pixels) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  for (int64_t i = 0; i < pixels; ++i, from += pool.in_step, to += pool.out_step) {
    PixelOf<T, Channels>(pool, taps, from, to, channels);
  }
}

// Maxima of few channels take vectors of 16 or 8 bytes where partial loads of bytes would go
// through memory, and where they fill one.
template <class T>
IntegerPixels* MaxPixelsOf(size_t channels) {
  using Whole = hn::ScalableTag<T>;
  using Block = hn::CappedTag<T, 16 / sizeof(T)>;
  using Half = hn::CappedTag<T, 8 / sizeof(T)>;
  const bool whole = HasMaskedMemory<Whole>() && channels > hn::Lanes(Block());
  if (whole || channels >= hn::Lanes(Whole())) return PixelsOf<T, MaxChannels<T, Whole>>;
  if (channels >= hn::Lanes(Block())) return PixelsOf<T, MaxChannels<T, Block>>;
  return PixelsOf<T, MaxChannels<T, Half>>;
}

template <class T>
IntegerPixels* PixelsFunctionOf(bool is_max, bool small_sums, size_t channels) {
  if (is_max) return MaxPixelsOf<T>(channels);
  if constexpr (sizeof(T) == 1) {
    using Sum = hwy::MakeWide<T>;
    if (small_sums) return PixelsOf<T, MeanChannels<T, Sum>>;
  }
  return PixelsOf<T, MeanChannels<T, int32_t>>;
}

IntegerPixels* PixelsFunction(DataType type, bool is_max, bool small_sums, size_t channels) {
  switch (type) {
    case DataType::kInt8: return PixelsFunctionOf<int8_t>(is_max, small_sums, channels);
    case DataType::kUInt8: return PixelsFunctionOf<uint8_t>(is_max, small_sums, channels);
    default: return PixelsFunctionOf<int16_t>(is_max, small_sums, channels);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildIntegerPoolHighway(const OpDescription& op,
                                                        const BuildContext& context) {
  constexpr auto kPixelsFunction = FUSELITE_SIMD_TABLE(PixelsFunction);
  FUSELITE_ASSIGN_OR_RETURN(auto* const function_for, kPixelsFunction.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePoolAlongLines(op));
  const DataType type = op.inputs[0].type;
  const bool is_max = PoolKindOf(*op.op) == PoolKind::kMax;
  const int32_t taps = shape.window.taps();
  FUSELITE_RETURN_IF_ERROR(CheckSummedTaps(op, shape));
  FUSELITE_ASSIGN_OR_RETURN(const PoolRange range, PoolRangeOf(op));
  const int64_t pitch = op.inputs[0].pitch();
  const IntegerPool pool{.pixel_pitch = pitch,
                         .row_pitch = pitch * shape.window.x.input,
                         .in_step = pitch * shape.window.x.stride,
                         .out_step = op.outputs[0].pitch(),
                         .low = static_cast<int32_t>(range.low),
                         .high = static_cast<int32_t>(range.high)};
  const int64_t size = BitWidth(type) / 8;
  return MakeKernel(
      "pool " + std::string(DataTypeName(type)) + " " + SimdName(context.isa),
      {.units = shape.pixels_out(), .grain = GrainFor(int64_t{shape.channels} * taps)},
      [=, pixels = function_for(type, is_max, taps <= 256, shape.channels)](
          const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const std::byte*>(args.inputs[0]);
        auto* out = static_cast<std::byte*>(args.outputs[0]);
        ForPixelRuns(shape, begin, end, [&](int64_t p, int64_t count, const PoolTaps& at) {
          pixels(pool, at, in + at.first * pitch * size, out + p * pool.out_step * size,
                 shape.channels, count);
        });
      });
}

}  // namespace fuselite::kernels
#endif
