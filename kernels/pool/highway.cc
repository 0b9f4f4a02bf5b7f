// Pools with vectors along the channels: eight of them stay in registers over a window's taps.
#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/pool/pool.h"
#include "kernels/rows/row_tail.h"
#include "kernels/widened.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/pool/totals-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/short_floats-inl.h"

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
template <PoolKind kKind, size_t kVectors, class In, class Out>
HWY_INLINE void PoolChannels(const PoolWindow& pool, const PoolTaps& taps, const In* in, Out* out,
                             size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto start = hn::Set(d, NoTotal<kKind, float>());
  const auto count = hn::Set(d, static_cast<float>(taps.count()));
  if constexpr (kVectors == 0) {
    auto total = start;
    for (int32_t y = 0; y < taps.rows; ++y) {
      const In* pixel = in + y * pool.row_pitch;
      for (int32_t x = 0; x < taps.columns; ++x, pixel += pool.pixel_pitch) {
        total = CombineTaps<kKind>(total, LoadFloats(d, pixel, n));
      }
    }
    StoreFloats(d, FloatOfTotal<kKind>(total, count, pool.low, pool.high), out, n);
  } else {
    hn::Vec<D> totals[kVectors];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) totals[v] = start;
    const size_t last = n - lanes;
    for (int32_t y = 0; y < taps.rows; ++y) {
      const In* pixel = in + y * pool.row_pitch;
      for (int32_t x = 0; x < taps.columns; ++x, pixel += pool.pixel_pitch) {
        HWY_UNROLL(8)
        for (size_t v = 0; v + 1 < kVectors; ++v) {
          totals[v] = CombineTaps<kKind>(totals[v], LoadFloats(d, pixel + v * lanes));
        }
        totals[kVectors - 1] =
            CombineTaps<kKind>(totals[kVectors - 1], LoadFloats(d, pixel + last));
      }
    }
    HWY_UNROLL(8)
    for (size_t v = 0; v + 1 < kVectors; ++v) {
      StoreFloats(d, FloatOfTotal<kKind>(totals[v], count, pool.low, pool.high), out + v * lanes,
                  lanes);
    }
    StoreFloats(d, FloatOfTotal<kKind>(totals[kVectors - 1], count, pool.low, pool.high),
                out + last, lanes);
  }
}

// Several vectors at a time, so that their additions overlap.
template <PoolKind kKind, class In, class Out>
HWY_INLINE void PoolPixelOf(const PoolWindow& pool, const PoolTaps& taps, const In* in, Out* out,
                            size_t channels) {
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

template <PoolKind kKind, class In, class Out>
void PoolPixelsOf(const PoolWindow& pool, const PoolTaps& taps, const In* in, Out* out,
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

// As PoolPixels(), of bfloat16: maxima, or means.
void PoolPixelsOfBFloat16(const PoolWindow& pool, const PoolTaps& taps, const BFloat16* in,
                          BFloat16* out, size_t channels, int64_t pixels) {
  if (pool.kind == PoolKind::kMax) {
    return PoolPixelsOf<PoolKind::kMax>(pool, taps, in, out, channels, pixels);
  }
  PoolPixelsOf<PoolKind::kAverage>(pool, taps, in, out, channels, pixels);
}

// Means that are float32.
void MeansOfBFloat16(const PoolWindow& pool, const PoolTaps& taps, const BFloat16* in, float* out,
                     size_t channels, int64_t pixels) {
  PoolPixelsOf<PoolKind::kAverage>(pool, taps, in, out, channels, pixels);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

PoolWindow WindowOf(const OpDescription& op, const PoolShape& shape, int64_t out_step) {
  const int64_t pitch = op.inputs[0].pitch();
  PoolWindow pool{.kind = PoolKindOf(*op.op),
                  .pixel_pitch = pitch,
                  .row_pitch = pitch * shape.window.x.input,
                  .in_step = pitch * shape.window.x.stride,
                  .out_step = out_step,
                  .low = 0,
                  .high = 0};
  ActivationRange(op.params.as<PoolParams>().activation, &pool.low, &pool.high);
  return pool;
}

Work WorkOf(const PoolShape& shape) {
  return {.units = shape.pixels_out(),
          .grain = GrainFor(int64_t{shape.channels} * shape.window.taps())};
}

// `pixels_function` makes Out of bfloat16.
template <class Out, class Function>
std::unique_ptr<Kernel> MakeBFloat16Pool(const OpDescription& op, const PoolShape& shape,
                                         std::string name, Function* pixels_function) {
  const int64_t out_pitch = op.outputs[0].pitch();
  const PoolWindow pool = WindowOf(op, shape, out_pitch);
  return MakeKernel(
      std::move(name), WorkOf(shape), [=](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const BFloat16*>(args.inputs[0]);
        auto* out = static_cast<Out*>(args.outputs[0]);
        ForPixelRuns(shape, begin, end, [&](int64_t p, int64_t count, const PoolTaps& taps) {
          pixels_function(pool, taps, in + taps.first * pool.pixel_pitch, out + p * out_pitch,
                          shape.channels, count);
        });
      });
}

Result<std::unique_ptr<Kernel>> BuildBFloat16Pool(const OpDescription& op, Isa isa) {
  constexpr auto kPixels = FUSELITE_SIMD_TABLE(PoolPixelsOfBFloat16);
  constexpr auto kMeans = FUSELITE_SIMD_TABLE(MeansOfBFloat16);
  if (op.inputs[0].type != DataType::kBFloat16 || !op.tail.empty()) {
    return Unsupported("takes bfloat16 without a tail only");
  }
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePool(WithFloat32(op)));
  FUSELITE_ASSIGN_OR_RETURN(auto* const pixels, kPixels.Require(isa));
  const std::string name = std::string("pool bf16 ") + SimdName(isa);
  if (op.outputs[0].type == DataType::kBFloat16) {
    return MakeBFloat16Pool<BFloat16>(op, shape, name, pixels);
  }
  if (PoolKindOf(*op.op) == PoolKind::kMax) return Unsupported("gives the type that it takes");
  return MakeBFloat16Pool<float>(op, shape, name, kMeans.For(isa));
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildPoolHighway(const OpDescription& op,
                                                 const BuildContext& context) {
  constexpr auto kPoolPixels = FUSELITE_SIMD_TABLE(PoolPixels);
  if (HasBFloat16Values(op)) return BuildBFloat16Pool(op, context.isa);
  if (auto columns = BuildPoolColumns(op, context); columns.ok()) return columns;
  if (auto rows = BuildPoolRows(op, context); rows.ok()) return rows;
  if (op.inputs[0].type != DataType::kFloat32) return BuildIntegerPoolHighway(op, context);
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePoolAlongLines(op));
  Work work = WorkOf(shape);
  FUSELITE_ASSIGN_OR_RETURN(auto* const pixels_function, kPoolPixels.Require(context.isa));
  const int64_t pitch = op.inputs[0].pitch();
  const RowTail tail(op, ApplyTail(context.isa));
  const PoolWindow pool = WindowOf(op, shape, tail.row_pitch());
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
