#include "kernels/elementwise/short_float_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/short_float_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/joined_rows.h"
#include "kernels/elementwise/typed_functions-inl.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/simd_math/short_floats-inl.h"
#include "kernels/simd_math/std_max-inl.h"
#include "kernels/tail/apply.h"

#ifndef FUSELITE_KERNELS_ELEMENTWISE_SHORT_FLOAT_ROWS_ONCE_
#define FUSELITE_KERNELS_ELEMENTWISE_SHORT_FLOAT_ROWS_ONCE_
namespace fuselite::kernels {

// Operand i of a row is at data[i * stride], stride 0 or 1.
struct ShortFloatOperand {
  const void* data;
  int stride;
};
using ShortFloatRow = void (*)(ShortFloatOperand x, ShortFloatOperand y,
                               const ShortFloatRange& range, void* out, int64_t n);

// Below it the reference's LOGISTIC is an exponential.
inline constexpr float kLeastOfLogistic = -9;

// Between rows of short floats and of floats.
struct ShortFloatConversions {
  // Gives whether a number is below kLeastOfLogistic.
  bool (*widen)(const void* from, int64_t n, float* to);
  void (*narrow)(const float* from, int64_t n, void* to);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct DivOf {
  template <class D, class V>
  static HWY_INLINE V Vectors(D, V x, V y) {
    return hn::Div(x, y);
  }
};
// Extremes prefer their first operand.
template <class F>
struct Exchanged {
  template <class D, class V>
  static HWY_INLINE V Vectors(D d, V x, V y) {
    return F::Vectors(d, y, x);
  }
};

template <class T, class F>
void ShortRow(ShortFloatOperand x, ShortFloatOperand y, const ShortFloatRange& range, void* out,
              int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const a = static_cast<const T*>(x.data);
  const auto* const b = static_cast<const T*>(y.data);
  auto* const to = static_cast<T*>(out);
  const auto low = hn::Set(d, range.low), high = hn::Set(d, range.high);
  const auto x_alone = hn::Set(d, static_cast<float>(*a));
  const auto y_alone = hn::Set(d, static_cast<float>(*b));
  const auto some = [&](int64_t i, int64_t count) HWY_ATTR {
    const auto u = x.stride ? LoadShortFloats(d, a + i, count) : x_alone;
    const auto v = y.stride ? LoadShortFloats(d, b + i, count) : y_alone;
    const auto cut = StdMin(StdMax(F::Vectors(d, u, v), low), high);
    StoreShortFloats(d, cut, to + i, count);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(i, lanes);
  if (i < n) some(i, n - i);
}

template <class T>
bool WidenRow(const void* from, int64_t n, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const in = static_cast<const T*>(from);
  auto least = hn::Zero(d);
  const auto some = [&](int64_t i, int64_t count) HWY_ATTR {
    const auto x = LoadShortFloats(d, in + i, count);
    least = hn::Min(x, least);
    StoreUpTo(x, d, to + i, count);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(i, lanes);
  if (i < n) some(i, n - i);
  return hn::GetLane(hn::MinOfLanes(d, least)) < kLeastOfLogistic;
}
template <class T>
void NarrowRow(const float* from, int64_t n, void* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* const out = static_cast<T*>(to);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreShortFloats(d, hn::LoadU(d, from + i), out + i, lanes);
  if (i < n) StoreShortFloats(d, LoadUpTo(d, from + i, n - i), out + i, n - i);
}

template <class T>
ShortFloatRow ShortRowOf(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::kAdd: return &ShortRow<T, AddOf>;
    case BinaryKind::kSub: return &ShortRow<T, SubOf>;
    case BinaryKind::kMul: return &ShortRow<T, MulOf>;
    case BinaryKind::kDiv: return &ShortRow<T, DivOf>;
    case BinaryKind::kSquaredDifference: return &ShortRow<T, SquaredDifferenceOf>;
    case BinaryKind::kMaximum: return &ShortRow<T, Exchanged<MaximumOf>>;
    case BinaryKind::kMinimum: return &ShortRow<T, Exchanged<MinimumOf>>;
    case BinaryKind::kReverseMaximum: return &ShortRow<T, MaximumOf>;
    case BinaryKind::kReverseMinimum: return &ShortRow<T, MinimumOf>;
    default: return nullptr;
  }
}

ShortFloatRow FindShortRow(BinaryKind kind, DataType type) {
  return type == DataType::kFloat16 ? ShortRowOf<Half>(kind) : ShortRowOf<BFloat16>(kind);
}

ShortFloatConversions FindConversions(DataType type) {
  if (type == DataType::kFloat16) return {WidenRow<Half>, NarrowRow<Half>};
  return {WidenRow<BFloat16>, NarrowRow<BFloat16>};
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Floats that stay in L1 beside the rows.
constexpr int64_t kBlock = 1024;

std::string NameOf(const OpDescription& op, Isa isa) {
  return std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)) + " " +
         SimdName(isa);
}

// What the function is of floats; GELU rounds in between, and the bits of NEG are the sign's.
Result<Tail> StagesOfFloats(const OpDescription& op) {
  OpDescription floats = op;
  floats.inputs[0].type = floats.outputs[0].type = DataType::kFloat32;
  const std::optional<TailStage> stage = UnaryStage(floats);
  const auto computed = [&](auto... kinds) { return ((stage->unary == kinds) || ...); };
  if (!stage || !computed(UnaryKind::kCos, UnaryKind::kFloor, UnaryKind::kLogistic,
                          UnaryKind::kRound, UnaryKind::kSin, UnaryKind::kTanh)) {
    return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type), " has no vectors");
  }
  Tail stages{{*stage}};
  // A zero comes out positive.
  if (stage->unary == UnaryKind::kRound) {
    stages.stages.push_back(TailStage::Unary(UnaryKind::kAffine, 1, 0));
  }
  return stages;
}

// A function of rows.
class ShortFloatFunction {
 public:
  ShortFloatFunction(Tail stages, const ShortFloatConversions& convert, Isa isa)
      : stages_(std::move(stages)),
        is_logistic_(stages_.stages[0].unary == UnaryKind::kLogistic),
        convert_(convert),
        apply_(ApplyTail(isa)) {}

  static constexpr size_t kScratchBytes = 2 * kBlock * sizeof(float);

  void Run(const uint16_t* x, int64_t n, uint16_t* out, std::byte* scratch) const {
    auto* const floats = reinterpret_cast<float*>(scratch);
    for (int64_t i = 0; i < n; i += kBlock)
      RunBlock(x + i, std::min(kBlock, n - i), out + i, floats);
  }

 private:
  void RunBlock(const uint16_t* x, int64_t n, uint16_t* out, float* floats) const {
    float* const results = floats + kBlock;
    const bool has_small = convert_.widen(x, n, floats);
    apply_(stages_, nullptr,
           {.source = floats,
            .source_pitch = n,
            .source_type = DataType::kFloat32,
            .destination = results,
            .destination_pitch = n,
            .destination_type = DataType::kFloat32,
            .row = 0,
            .rows = 1,
            .channel = 0,
            .channels = n});
    if (is_logistic_ && has_small) {
      for (int64_t i = 0; i < n; ++i) {
        if (floats[i] < kLeastOfLogistic) results[i] = std::exp(floats[i]);
      }
    }
    convert_.narrow(results, n, out);
  }

  Tail stages_;
  bool is_logistic_;
  ShortFloatConversions convert_;
  ApplyTailFunction* apply_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildShortFloatUnaryRows(const OpDescription& op,
                                                         const BuildContext& context) {
  constexpr auto kConversions = FUSELITE_SIMD_TABLE(FindConversions);
  if (!op.tail.empty()) return Unsupported("a tail behind ", op.op->name);
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kConversions.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(Tail stages, StagesOfFloats(op));
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      NameOf(op, context.isa),
      {.units = plan.units(),
       .grain = GrainFor(plan.unit_elements()),
       .scratch_bytes = ShortFloatFunction::kScratchBytes},
      [plan,
       function = ShortFloatFunction(std::move(stages), find(op.inputs[0].type), context.isa)](
          const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          const auto* x = static_cast<const uint16_t*>(args.inputs[0]) + piece.offsets[0];
          auto* out = static_cast<uint16_t*>(args.outputs[0]) + piece.offsets[1];
          function.Run(x, piece.count, out, args.scratch);
        });
      });
}

Result<std::unique_ptr<Kernel>> BuildShortFloatRows(BinaryKind kind, const OpDescription& op,
                                                    const ShortFloatRange& range,
                                                    const BuildContext& context) {
  constexpr auto kFindRow = FUSELITE_SIMD_TABLE(FindShortRow);
  if (!op.tail.empty()) return Unsupported("a tail behind ", op.op->name);
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kFindRow.Require(context.isa));
  const ShortFloatRow row = find(kind, op.inputs[0].type);
  if (row == nullptr) return Unsupported(op.op->name, " of short floats has no vectors");
  const JoinedRows joined(op, context.isa);
  return MakeKernel(NameOf(op, context.isa),
                    {.units = joined.plan().units(),
                     .grain = GrainFor(joined.plan().unit_elements()),
                     .scratch_bytes = joined.scratch_bytes()},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      joined.ForEach(args, begin, end, [&](const RowBlock& block) {
                        const auto* x = static_cast<const uint16_t*>(block.x);
                        const auto* y = static_cast<const uint16_t*>(block.y);
                        auto* out = static_cast<uint16_t*>(block.out);
                        for (int64_t r = 0; r < block.rows; ++r) {
                          row({x, block.x_step}, {y, block.y_step}, range, out, block.n);
                          x += block.x_stride;
                          y += block.y_stride;
                          out += block.out_stride;
                        }
                      });
                    });
}

}  // namespace fuselite::kernels
#endif
