// Cubic interpolation by vectors: four rows of the input become one, in which each element of the
// output finds the four that it is made of.
#include <algorithm>
#include <string>
#include <utility>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/tensorflow/bicubic.h"
#include "runtime/memory/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensorflow/bicubic_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_TENSORFLOW_BICUBIC_ROWS_H_
#define FUSELITE_KERNELS_TENSORFLOW_BICUBIC_ROWS_H_
namespace fuselite::kernels {

// The elements of a row of the output: the first of the four elements of the joined row that each
// is made of, `channels` apart, and their weights.
struct CubicColumns {
  int64_t count = 0, channels = 0;
  std::vector<int32_t> first;
  std::array<std::vector<float>, 4> weights;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// joined[i] = the sum of rows[k][i] * weights[k], of n elements.
void JoinRows(const std::array<const float*, 4>& rows, const std::array<float, 4>& weights,
              int64_t n, float* joined) {
  const hn::ScalableTag<float> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += step) {
    const auto count = static_cast<size_t>(std::min(step, n - i));
    auto sum = hn::Mul(LoadUpTo(d, rows[0] + i, count), hn::Set(d, weights[0]));
    for (int k = 1; k < 4; ++k) {
      sum = hn::MulAdd(LoadUpTo(d, rows[k] + i, count), hn::Set(d, weights[k]), sum);
    }
    StoreUpTo(sum, d, joined + i, count);
  }
}

void JoinColumns(const CubicColumns& columns, const float* joined, float* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < columns.count; i += step) {
    const auto count = static_cast<size_t>(std::min(step, columns.count - i));
    const auto at = LoadUpTo(di, columns.first.data() + i, count);
    auto sum =
        hn::Mul(hn::GatherIndex(d, joined, at), LoadUpTo(d, columns.weights[0].data() + i, count));
    for (int k = 1; k < 4; ++k) {
      sum = hn::MulAdd(hn::GatherIndex(d, joined + k * columns.channels, at),
                       LoadUpTo(d, columns.weights[k].data() + i, count), sum);
    }
    StoreUpTo(sum, d, out + i, count);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Pixels that are taken from the image's edge on both sides of a row (CubicTaps::first).
constexpr int64_t kBeyond = 2;

CubicColumns ColumnsOf(const std::vector<CubicTaps>& taps, int64_t channels) {
  CubicColumns columns;
  columns.channels = channels;
  for (const CubicTaps& tap : taps) {
    for (int64_t c = 0; c < channels; ++c) {
      columns.first.push_back(static_cast<int32_t>((tap.first + kBeyond) * channels + c));
      for (int k = 0; k < 4; ++k) columns.weights[k].push_back(tap.weights[k]);
    }
  }
  columns.count = static_cast<int64_t>(columns.first.size());
  return columns;
}

// What lies beyond the edges of a row of `width` pixels.
void RepeatEdges(float* row, int64_t width, int64_t channels) {
  for (int64_t beyond = 0; beyond < kBeyond; ++beyond) {
    std::copy_n(row + kBeyond * channels, channels, row + beyond * channels);
    std::copy_n(row + (kBeyond + width - 1) * channels, channels,
                row + (kBeyond + width + beyond) * channels);
  }
}

// `ready`: with what it takes from `op` for each element of a row; a draft is without.
Result<std::unique_ptr<Kernel>> MakeBicubic(const OpDescription& op, Isa isa, bool ready) {
  constexpr auto kRows = FUSELITE_SIMD_TABLE(JoinRows);
  constexpr auto kColumns = FUSELITE_SIMD_TABLE(JoinColumns);
  FUSELITE_ASSIGN_OR_RETURN(auto* const join_rows, kRows.Require(isa));
  FUSELITE_ASSIGN_OR_RETURN(auto* const join_columns, kColumns.Require(isa));
  if (!op.tail.empty()) return Unsupported("FlexResizeBicubic takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const ResizeShape shape(op);
  const int64_t joined = (shape.in_w + 2 * kBeyond) * shape.channels;
  if (joined > INT32_MAX) return Unsupported("does not take rows of 2^31 elements and more");
  const auto& params = op.params.as<ResizeParams>();
  std::vector<CubicTaps> ys;
  CubicColumns columns;
  if (ready) {
    ys = CubicTapsOf(shape.in_h, shape.out_h, params);
    columns = ColumnsOf(CubicTapsOf(shape.in_w, shape.out_w, params), shape.channels);
  }
  const Work work{.units = shape.channels ? shape.rows : 0,
                  .grain = GrainFor(5 * shape.out_w * shape.channels),
                  .scratch_bytes = joined * sizeof(float)};
  return MakeKernel(
      std::string("resize_bicubic f32 ") + SimdName(isa), work,
      [=, ys = std::move(ys), columns = std::move(columns)](const KernelArgs& args, int64_t begin,
                                                            int64_t end) {
        auto* const row = reinterpret_cast<float*>(args.scratch);
        const int64_t width = shape.in_w * shape.channels;
        for (int64_t unit = begin; unit < end; ++unit) {
          const CubicTaps& y = ys[unit % shape.out_h];
          const auto* const image =
              static_cast<const float*>(args.inputs[0]) + unit / shape.out_h * shape.in_h * width;
          std::array<const float*, 4> rows;
          for (int k = 0; k < 4; ++k) {
            rows[k] = image + std::clamp(y.first + k, 0, shape.in_h - 1) * width;
          }
          join_rows(rows, y.weights, width, row + kBeyond * shape.channels);
          RepeatEdges(row, shape.in_w, shape.channels);
          join_columns(columns, row, static_cast<float*>(args.outputs[0]) + unit * columns.count);
        }
      });
}

}  // namespace

Result<KernelPlan> PlanBicubicHighway(const OpDescription& op, const PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> draft, MakeBicubic(op, context.isa, false));
  return KernelPlan::MadeLater(std::move(draft),
                               [](const OpDescription& described, const BuildContext& build) {
                                 return MakeBicubic(described, build.isa, true);
                               });
}

}  // namespace fuselite::kernels
#endif
