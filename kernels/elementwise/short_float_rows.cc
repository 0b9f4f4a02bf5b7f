#include "kernels/elementwise/short_float_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/short_float_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <string>

#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/joined_rows.h"
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

// Between rows of short floats and of floats.
struct ShortFloatConversions {
  void (*widen)(const void* from, int64_t n, float* to);
  void (*narrow)(const float* from, int64_t n, void* to);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct AddShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Add(x, y);
  }
};
struct SubShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Sub(x, y);
  }
};
struct MulShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Mul(x, y);
  }
};
struct DivShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Div(x, y);
  }
};
struct SquaredDifferenceOfShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Mul(hn::Sub(x, y), hn::Sub(x, y));
  }
};
struct MaximumOfShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return StdMax(y, x);
  }
};
struct MinimumOfShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return StdMin(y, x);
  }
};

struct FirstMaximumOfShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return StdMax(x, y);
  }
};
struct FirstMinimumOfShort {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return StdMin(x, y);
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
    const auto cut = StdMin(StdMax(F()(u, v), low), high);
    StoreShortFloats(d, cut, to + i, count);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(i, lanes);
  if (i < n) some(i, n - i);
}

template <class T>
void WidenRow(const void* from, int64_t n, float* to) {
  WidenShortFloats(static_cast<const T*>(from), n, to);
}
template <class T>
void NarrowRow(const float* from, int64_t n, void* to) {
  NarrowToShortFloats(from, n, static_cast<T*>(to));
}

template <class T>
ShortFloatRow ShortRowOf(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::kAdd: return &ShortRow<T, AddShort>;
    case BinaryKind::kSub: return &ShortRow<T, SubShort>;
    case BinaryKind::kMul: return &ShortRow<T, MulShort>;
    case BinaryKind::kDiv: return &ShortRow<T, DivShort>;
    case BinaryKind::kSquaredDifference: return &ShortRow<T, SquaredDifferenceOfShort>;
    case BinaryKind::kMaximum: return &ShortRow<T, MaximumOfShort>;
    case BinaryKind::kMinimum: return &ShortRow<T, MinimumOfShort>;
    case BinaryKind::kReverseMaximum: return &ShortRow<T, FirstMaximumOfShort>;
    case BinaryKind::kReverseMinimum: return &ShortRow<T, FirstMinimumOfShort>;
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
       .scratch_bytes = kBlock * sizeof(float)},
      [=, stages = std::move(stages), convert = find(op.inputs[0].type),
       apply = ApplyTail(context.isa)](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* const floats = reinterpret_cast<float*>(args.scratch);
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          const auto* x = static_cast<const uint16_t*>(args.inputs[0]) + piece.offsets[0];
          auto* out = static_cast<uint16_t*>(args.outputs[0]) + piece.offsets[1];
          for (int64_t i = 0; i < piece.count; i += kBlock) {
            const int64_t n = std::min(kBlock, piece.count - i);
            convert.widen(x + i, n, floats);
            apply(stages, args.inputs,
                  {.source = floats,
                   .source_pitch = n,
                   .source_type = DataType::kFloat32,
                   .destination = reinterpret_cast<std::byte*>(floats),
                   .destination_pitch = n,
                   .destination_type = DataType::kFloat32,
                   .row = 0,
                   .rows = 1,
                   .channel = 0,
                   .channels = n});
            convert.narrow(floats, n, out + i);
          }
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
