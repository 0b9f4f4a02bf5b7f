#include <algorithm>

#include "kernels/rows/row_kernel.h"
#include "kernels/softmax/quantized.h"
#include "kernels/softmax/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/numbers/short_floats.h"
#include "kernels/simd.h"
#include "kernels/simd_math/short_floats-inl.h"
#include "kernels/softmax/softmax-inl.h"

#ifndef FUSELITE_KERNELS_SOFTMAX_HIGHWAY_ONCE_
#define FUSELITE_KERNELS_SOFTMAX_HIGHWAY_ONCE_
namespace fuselite::kernels {

// Rows up to this length are lanes of vectors: of 2 floats a row takes 1.3 ns so instead of 9, of
// 12 9 instead of 11.
inline constexpr int64_t kNarrow = 12;
// Floats from one to the next that an index of 32 bits counts for each lane.
inline constexpr int64_t kFarthest = INT32_MAX / 64;
// Longer ones have vectors of their own, and go through each pass together: within a row its
// exponentials would wait for the largest, and their quotients for the sum. Those whose last vector
// is not a whole one gain nothing by it (21 floats: 14 ns instead of 12).
inline constexpr int64_t kMostTogether = 64, kFloatsTogether = 2048, kWholeVectors = 16;

inline int64_t RowsTogether(int64_t n) {
  return std::clamp<int64_t>(kFloatsTogether / std::max<int64_t>(1, n), 1, kMostTogether);
}

struct HalfRows {
  const Half* in;
  int64_t in_pitch;
  Half* out;
  int64_t out_pitch, rows;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

// `count` rows of `n` floats each, of which `columns` has a vector for each place.
HWY_INLINE void StoreColumns(const float* columns, int64_t n, float* out, int64_t pitch,
                             int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto column = [&](int64_t c) HWY_ATTR { return hn::Load(d, columns + c * lanes); };
  if (count == lanes && pitch == n) {
    if (n == 2) return hn::StoreInterleaved2(column(0), column(1), d, out);
    if (n == 3) return hn::StoreInterleaved3(column(0), column(1), column(2), d, out);
    if (n == 4) return hn::StoreInterleaved4(column(0), column(1), column(2), column(3), d, out);
  }
  for (int64_t r = 0; r < count; ++r, out += pitch) {
    for (int64_t c = 0; c < n; ++c) out[c] = columns[c * lanes + r];
  }
}

// Rows are lanes, of which those behind the last row repeat it. n <= kNarrow.
HWY_NOINLINE void SoftmaxLanes(const SourceRows& in, const ResultRows& out, int64_t n, float beta) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, beta);
  HWY_ALIGN float columns[kNarrow * hn::MaxLanes(d)];
  for (int64_t first = 0; first < in.rows; first += lanes) {
    const int64_t count = std::min(lanes, in.rows - first);
    const auto row = hn::Min(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(count - 1)));
    const auto at = hn::Mul(row, hn::Set(di, static_cast<int32_t>(in.pitch)));
    const float* const x = in.data + first * in.pitch;
    auto largest = hn::GatherIndex(d, x, at), sum = hn::Zero(d);
    hn::Store(largest, d, columns);
    for (int64_t c = 1; c < n; ++c) {
      const auto column = hn::GatherIndex(d, x + c, at);
      largest = hn::Max(largest, column);
      hn::Store(column, d, columns + c * lanes);
    }
    for (int64_t c = 0; c < n; ++c) {
      const auto below = hn::Sub(hn::Load(d, columns + c * lanes), largest);
      const auto power = VecExpNonPositive(d, hn::Mul(below, scale));
      sum = hn::Add(sum, power);
      hn::Store(power, d, columns + c * lanes);
    }
    const auto inverse = hn::Div(hn::Set(d, 1.0f), sum);
    for (int64_t c = 0; c < n; ++c) {
      hn::Store(hn::Mul(hn::Load(d, columns + c * lanes), inverse), d, columns + c * lanes);
    }
    StoreColumns(columns, n, out.data + first * out.pitch, out.pitch, count);
  }
}

// One pass writes the exponentials and sums them; the row is still in L1 for the second.
HWY_INLINE void SoftmaxRow(const float* in, float* out, size_t n, float beta) {
  ScaleRow(out, out, n, 1.0f / ExpRow(in, out, n, beta, RowMax(in, n)));
}

HWY_NOINLINE void SoftmaxByPasses(const SourceRows& in, const ResultRows& out, size_t n,
                                  float beta) {
  float most[kMostTogether];
  for (int64_t r = 0; r < in.rows; ++r) most[r] = RowMax(in.data + r * in.pitch, n);
  SoftmaxBelow(most, in, out, n, beta);
}

// At most RowsTogether(n) rows.
void SoftmaxRows(const SourceRows& in, const ResultRows& out, int64_t n, float beta) {
  if (n <= kNarrow && in.pitch <= kFarthest) return SoftmaxLanes(in, out, n, beta);
  const auto count = static_cast<size_t>(n);
  if (n % kWholeVectors == 0 && in.rows > 1) return SoftmaxByPasses(in, out, count, beta);
  for (int64_t r = 0; r < in.rows; ++r) {
    SoftmaxRow(in.data + r * in.pitch, out.data + r * out.pitch, count, beta);
  }
}

// Rows of float16: `rows` of `n` of them, `pitch` apart in memory and behind each other as floats.
void WidenRows(const Half* in, int64_t pitch, int64_t rows, int64_t n, float* floats) {
  const hn::ScalableTag<float> d;
  for (int64_t r = 0; r < rows; ++r, in += pitch, floats += n) {
    ForVectors(d, static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
      StoreUpTo(LoadShortFloats(d, in + i, count), d, floats + i, count);
    });
  }
}
void NarrowRows(const float* floats, int64_t rows, int64_t n, Half* out, int64_t pitch) {
  const hn::ScalableTag<float> d;
  for (int64_t r = 0; r < rows; ++r, out += pitch, floats += n) {
    ForVectors(d, static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
      StoreShortFloats(d, LoadUpTo(d, floats + i, count), out + i, count);
    });
  }
}

// `floats` has room for all of them.
void SoftmaxRowsHalf(const HalfRows& rows, int64_t n, float beta, float* floats) {
  const bool dense_in = rows.in_pitch == n, dense_out = rows.out_pitch == n;
  const int64_t all = rows.rows * n;
  WidenRows(rows.in, rows.in_pitch, dense_in ? 1 : rows.rows, dense_in ? all : n, floats);
  SoftmaxRows({floats, n, rows.rows}, {floats, n}, n, beta);
  NarrowRows(floats, dense_out ? 1 : rows.rows, dense_out ? all : n, rows.out, rows.out_pitch);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// By floats: the reference rounds exponentials to float16 before it divides them, which is two
// units of the result at most.
Result<std::unique_ptr<Kernel>> BuildSoftmaxHalf(const OpDescription& op, Isa isa, float beta) {
  constexpr auto kSoftmaxRowsHalf = FUSELITE_SIMD_TABLE(SoftmaxRowsHalf);
  FUSELITE_ASSIGN_OR_RETURN(auto* const softmax, kSoftmaxRowsHalf.Require(isa));
  const int64_t n = op.inputs[0].shape.dim(-1), together = RowsTogether(n);
  const int64_t in_pitch = op.inputs[0].pitch(), out_pitch = op.outputs[0].pitch();
  return MakeTypedRowsKernel<Half, Half>(
      std::string("softmax f16 ") + SimdName(isa), op, 8, together,
      static_cast<size_t>(together * n) * sizeof(float),
      [=](const KernelArgs& args, const Half* x, Half* y, int64_t rows) {
        softmax({x, in_pitch, y, out_pitch, rows}, n, beta, reinterpret_cast<float*>(args.scratch));
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildSoftmaxHighway(const OpDescription& op,
                                                    const BuildContext& context) {
  const TensorInfo& in = op.inputs[0];
  const bool is_half = in.type == DataType::kFloat16;
  if (!is_half && in.type != DataType::kFloat32) return BuildQuantizedSoftmaxHighway(op, context);
  const float beta = op.params.as<SoftmaxParams>().beta;
  if (!(beta >= 0)) return Unsupported("beta is ", beta);
  if (is_half) return BuildSoftmaxHalf(op, context.isa, beta);
  constexpr auto kSoftmaxRows = FUSELITE_SIMD_TABLE(SoftmaxRows);
  FUSELITE_ASSIGN_OR_RETURN(auto* const rows, kSoftmaxRows.Require(context.isa));
  const int64_t n = in.shape.dim(-1);
  return MakeRowsKernel(std::string("softmax f32 ") + SimdName(context.isa), op,
                        ApplyTail(context.isa), 8, RowsTogether(n),
                        [rows, beta, n](const KernelArgs&, const SourceRows& x,
                                        const ResultRows& y) { rows(x, y, n, beta); });
}

}  // namespace fuselite::kernels
#endif
