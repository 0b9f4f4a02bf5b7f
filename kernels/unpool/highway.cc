// Pools that tell their largest tap and the way back, vectors of channels at a time: the bits of
// the reference.
#include <limits>

#include "kernels/make_kernel.h"
#include "kernels/tail/tail.h"
#include "kernels/unpool/unpool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unpool/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_UNPOOL_HIGHWAY_ONCE_
#define FUSELITE_KERNELS_UNPOOL_HIGHWAY_ONCE_
namespace fuselite::kernels {

// The taps of a window that lie inside of the image, [first, last) in each direction.
struct ArgmaxWindow {
  const float* in;  // tap (0, 0), be it outside
  int64_t row_step, channels;
  int32_t first_y, last_y, first_x, last_x, width;
  float low, high;  // the clamp
};
// One row of `pixels` pixels to the windows of `width` x `height` that they were taken from, which
// lie side by side in rows `row_step` apart.
struct UnpoolRow {
  const float *values, *taps;
  float* out;
  int64_t pixels, channels, row_step;
  int32_t width, height;
};

struct UnpoolFunctions {
  void (*pool)(const ArgmaxWindow& window, float* values, float* taps);
  // False where a tap lies outside of its window.
  bool (*unpool)(const UnpoolRow& row);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

void PoolWindow(const ArgmaxWindow& w, float* values, float* taps) {
  const D d;
  const auto low = hn::Set(d, w.low), high = hn::Set(d, w.high);
  for (int64_t c = 0; c < w.channels; c += static_cast<int64_t>(hn::Lanes(d))) {
    const size_t left = w.channels - c;
    auto largest = hn::Set(d, std::numeric_limits<float>::lowest());
    auto tap = hn::Set(d, 0.1f);
    for (int32_t y = w.first_y; y < w.last_y; ++y) {
      for (int32_t x = w.first_x; x < w.last_x; ++x) {
        const auto value = LoadUpTo(d, w.in + y * w.row_step + x * w.channels + c, left);
        const auto larger = hn::Gt(value, largest);
        largest = hn::IfThenElse(larger, value, largest);
        tap = hn::IfThenElse(larger, hn::Set(d, static_cast<float>(y * w.width + x) + 0.1f), tap);
      }
    }
    const auto raised = hn::IfThenElse(hn::Lt(largest, low), low, largest);
    StoreUpTo(hn::IfThenElse(hn::Lt(high, raised), high, raised), d, values + c, left);
    StoreUpTo(tap, d, taps + c, left);
  }
}

bool UnpoolOneRow(const UnpoolRow& row) {
  const D d;
  const auto limit = hn::Set(d, static_cast<float>(row.width) * static_cast<float>(row.height));
  const auto zero = hn::Zero(d);
  auto inside = hn::Eq(zero, zero);
  for (int64_t x = 0; x < row.pixels; ++x) {
    for (int64_t c = 0; c < row.channels; c += static_cast<int64_t>(hn::Lanes(d))) {
      const size_t left = row.channels - c;
      const auto value = LoadUpTo(d, row.values + x * row.channels + c, left);
      const auto tap = LoadUpTo(d, row.taps + x * row.channels + c, left);
      inside = hn::And(inside, hn::And(hn::Ge(tap, zero), hn::Lt(tap, limit)));
      const auto whole = hn::Trunc(tap);
      float* const to = row.out + x * row.width * row.channels + c;
      for (int32_t ky = 0; ky < row.height; ++ky) {
        for (int32_t kx = 0; kx < row.width; ++kx) {
          const auto here = hn::Eq(whole, hn::Set(d, static_cast<float>(ky * row.width + kx)));
          StoreUpTo(hn::IfThenElseZero(here, value), d, to + ky * row.row_step + kx * row.channels,
                    left);
        }
      }
    }
  }
  return hn::AllTrue(d, inside);
}

const UnpoolFunctions* Unpooling() {
  static constexpr UnpoolFunctions kFunctions = {PoolWindow, UnpoolOneRow};
  return &kFunctions;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Float32 tells whole numbers up to here apart, with a tenth more.
constexpr int64_t kMostTaps = 1 << 16;

}  // namespace

Result<std::unique_ptr<Kernel>> BuildMaxPoolWithArgmaxHighway(const OpDescription& op,
                                                              const BuildContext& context) {
  constexpr auto kUnpooling = FUSELITE_SIMD_TABLE(Unpooling);
  FUSELITE_ASSIGN_OR_RETURN(auto* const unpooling, kUnpooling.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const PooledImages images, ResolvePooled(op));
  ArgmaxWindow window{};
  window.channels = images.channels;
  window.row_step = int64_t{images.window.x.input} * images.channels;
  window.width = images.window.x.filter;
  ActivationRange(op.params.as<UnpoolParams>().activation, &window.low, &window.high);
  const int64_t row_elements = int64_t{images.window.x.output} * images.channels;
  return MakeKernel(std::string("max pool with argmax f32 ") + SimdName(context.isa),
                    {.units = int64_t{images.batch} * images.window.y.output,
                     .grain = GrainFor(row_elements * images.window.taps() / 4)},
                    [=, pool = unpooling()->pool, y = images.window.y, x = images.window.x](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      ArgmaxWindow w = window;
                      for (int64_t row = begin; row < end; ++row) {
                        const int32_t top = y.start(static_cast<int32_t>(row % y.output));
                        const auto* image = static_cast<const float*>(args.inputs[0]) +
                                            row / y.output * y.input * w.row_step;
                        w.first_y = y.first_tap(top);
                        w.last_y = y.last_tap(top);
                        for (int32_t ox = 0; ox < x.output; ++ox) {
                          const int32_t left = x.start(ox);
                          w.in = image + top * w.row_step + left * w.channels;
                          w.first_x = x.first_tap(left);
                          w.last_x = x.last_tap(left);
                          const int64_t at = row * row_elements + ox * w.channels;
                          pool(w, static_cast<float*>(args.outputs[0]) + at,
                               static_cast<float*>(args.outputs[1]) + at);
                        }
                      }
                    });
}

Result<std::unique_ptr<Kernel>> BuildMaxUnpoolHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  constexpr auto kUnpooling = FUSELITE_SIMD_TABLE(Unpooling);
  FUSELITE_ASSIGN_OR_RETURN(auto* const unpooling, kUnpooling.Require(context.isa));
  const auto& params = op.params.as<UnpoolParams>();
  const Shape& in = op.inputs[0].shape;
  if (params.stride_w != params.filter_width || params.stride_h != params.filter_height) {
    return Unsupported("windows that meet or leave gaps");
  }
  if (int64_t{params.filter_width} * params.filter_height > kMostTaps) {
    return Unsupported("does not take windows of more than ", kMostTaps, " taps");
  }
  UnpoolRow row{};
  row.pixels = in[2];
  row.channels = in[3];
  row.width = params.filter_width;
  row.height = params.filter_height;
  row.row_step = row.pixels * row.width * row.channels;
  return MakeKernel(std::string("max unpool f32 ") + SimdName(context.isa),
                    {.units = int64_t{in[0]} * in[1], .grain = GrainFor(row.row_step * row.height)},
                    [row, unpool = unpooling()->unpool](const KernelArgs& args, int64_t begin,
                                                        int64_t end) -> Status {
                      const int64_t elements = row.pixels * row.channels;
                      UnpoolRow r = row;
                      for (int64_t i = begin; i < end; ++i) {
                        r.values = static_cast<const float*>(args.inputs[0]) + i * elements;
                        r.taps = static_cast<const float*>(args.inputs[1]) + i * elements;
                        r.out = static_cast<float*>(args.outputs[0]) + i * r.row_step * r.height;
                        if (!unpool(r)) {
                          return InvalidArgument("a tap outside of a window of ", r.height, "x",
                                                 r.width);
                        }
                      }
                      return Status();
                    });
}

}  // namespace fuselite::kernels
#endif
