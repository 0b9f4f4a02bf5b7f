// MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL over any dimensions.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/numbers/quantization.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

struct ReduceParams {
  bool keep_dims;
};

enum class ReduceKind { kMean, kSum, kProd, kMax, kMin, kAny, kAll };
ReduceKind ReduceKindOf(const OperatorDef& op);

// The input's dimensions, neighbours merged where memory allows: those that stay and those that go.
//
// Outputs are counted as outer * lanes + lane: `lanes` elements lie side by side in the input where
// the innermost dimension stays, and are 1 where it goes. An output's terms are runs: `run_count`
// elements `run_stride` apart from each offset of `reduced`, outermost dimension first.
struct ReducePlan {
  struct Dim {
    int64_t size, stride;
  };
  std::vector<Dim> kept;     // without the lanes
  std::vector<Dim> reduced;  // without the runs
  int64_t lanes = 1;
  int64_t run_count = 1, run_stride = 1;
  int64_t outer = 1;  // the product of kept
  int64_t runs = 1;   // the product of reduced

  int64_t averaged = 0;  // the terms of a mean whose totals of parts are reduced

  int64_t terms() const { return runs * run_count; }
  int64_t divisor() const { return averaged > 0 ? averaged : terms(); }
  // Where outer output `o` begins in the input.
  int64_t OuterOffset(int64_t o) const { return Offset(kept, o); }
  int64_t RunOffset(int64_t run) const { return Offset(reduced, run); }
  // f(OuterOffset(o)) for o in [begin, end), with a division for each row of the last kept
  // dimension instead of one for each output.
  template <class F>
  void ForOuter(int64_t begin, int64_t end, F f) const {
    const Dim last = kept.empty() ? Dim{1, 0} : kept.back();
    while (begin < end) {
      int64_t offset = OuterOffset(begin);
      const int64_t row_end = std::min(end, begin - begin % last.size + last.size);
      for (; begin < row_end; ++begin, offset += last.stride) f(offset);
    }
  }

 private:
  static int64_t Offset(const std::vector<Dim>& dims, int64_t index) {
    int64_t offset = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      offset += index % dims[d].size * dims[d].stride;
      index /= dims[d].size;
    }
    return offset;
  }
};

// Precondition: the axes (input 1) are known and valid: this comes after the shape rule.
ReducePlan PlanReduce(const OpDescription& op);

// Whether an output's terms lie side by side, rather than outputs.
inline bool AlongRuns(const ReducePlan& plan) { return plan.lanes == 1 && plan.run_stride == 1; }
// The most outputs with short runs of floats that a unit has.
inline constexpr int64_t kShortRunBlock = 256;

// Where the terms of neighbouring outputs lie side by side, a few of each, and repeat in rows, as
// those of group normalization do (axes 1, 2 and 4 of [1, 32, 32, 32, 4]): the columns of whole
// rows, of which each output has `group`. nullopt for other plans.
struct GroupedColumns {
  ReducePlan columns;  // one output for each column
  int64_t group = 1;
  int64_t together = 1;  // groups of a unit

  int64_t groups() const { return columns.lanes / group; }  // of an outer index
  int64_t blocks() const { return (groups() + together - 1) / together; }
  int64_t units() const { return columns.outer * blocks(); }
  int64_t unit_terms() const { return columns.terms() * together * group; }
  // f(in, out, n) for units [begin, end): n groups, the first of which has its first term at
  // element `in` of the input, and is output `out`.
  template <class F>
  void ForUnits(int64_t begin, int64_t end, F f) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t o = unit / blocks(), first = unit % blocks() * together;
      f(columns.OuterOffset(o) + first * group, o * groups() + first,
        std::min(together, groups() - first));
    }
  }
};
// A unit has at most `most_columns`, which no group exceeds: none has more than 64.
std::optional<GroupedColumns> AsGroupedColumns(const ReducePlan& plan, int64_t most_columns);

// REDUCE_PROD of quantized values: scaled by the n-th root of what the product of n factors needs,
// after every factor but the first, and once more at the end.
struct ScaledProduct {
  FixedPoint scale;
  int32_t in_zero_point, out_zero_point, min, max;

  int32_t First(int32_t x) const { return x - in_zero_point; }
  int32_t Next(int32_t product, int32_t x) const {
    return MultiplyByQuantizedMultiplier64(int64_t{product} * (x - in_zero_point), scale.multiplier,
                                           scale.shift);
  }
  int32_t Finish(int32_t product) const {
    const int64_t scaled = MultiplyByQuantizedMultiplier64(product, scale.multiplier, scale.shift);
    return static_cast<int32_t>(std::clamp<int64_t>(scaled + out_zero_point, min, max));
  }
};
Result<ScaledProduct> MakeScaledProduct(const OpDescription& op);

// Terms are combined in the order of memory by the reference. float32; int32 and int64 (sums and
// products wrap around, means are cut off towards zero); bool; MAX and MIN also of int8, uint8 and
// int16 with one scale on both sides; MEAN and SUM of those with TFLite's rescaling;
// products of int8 and int16 with a rescaling after every factor, and of int8, int16 and uint8
// without scales.
Result<std::unique_ptr<Kernel>> BuildReduceReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildReduceHighway(const OpDescription&, const BuildContext&);
// MEAN, SUM, REDUCE_MAX and REDUCE_MIN of int8 and uint8; everything of bool.
Result<std::unique_ptr<Kernel>> BuildReduceBytes(const OpDescription&, const BuildContext&);
// int16 (but products), int32 and int64.
Result<std::unique_ptr<Kernel>> BuildReduceIntegers(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
