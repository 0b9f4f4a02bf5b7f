#include "kernels/elementwise/typed/typed_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/typed/typed_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/elementwise/joined_rows.h"
#include "kernels/elementwise/typed/typed_functions-inl.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/simd_math/short_floats-inl.h"

#ifndef FUSELITE_KERNELS_ELEMENTWISE_TYPED_ROWS_ONCE_
#define FUSELITE_KERNELS_ELEMENTWISE_TYPED_ROWS_ONCE_
namespace fuselite::kernels {

// Operand i of a row is at data[i * stride], stride 0 or 1.
struct TypedOperand {
  const void* data;
  int stride;
};
using TypedRow = void (*)(TypedOperand x, TypedOperand y, void* out, int64_t n);

// Holds eight truth values for each byte of mask bits.
inline constexpr auto kTruthValues = [] {
  std::array<uint64_t, 256> table{};
  for (uint64_t bits = 0; bits < 256; ++bits) {
    for (int i = 0; i < 8; ++i) table[bits] |= (bits >> i & 1) << (8 * i);
  }
  return table;
}();

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The vectors of an operand of at least one vector. What is the same for all lanes is made once: a
// store of bytes might change what it is made of, as far as the compiler knows.
template <class D, class T>
class Operands {
 public:
  HWY_INLINE Operands(D d, TypedOperand operand)
      : data_(static_cast<const T*>(operand.data)),
        strided_(operand.stride != 0),
        same_(hn::Set(d, static_cast<hn::TFromD<D>>(*data_))) {}

  HWY_INLINE hn::Vec<D> operator()(int64_t i) const {
    if (!strided_) return same_;
    const D d;
    if constexpr (sizeof(T) < sizeof(hn::TFromD<D>)) {  // Half or BFloat16, as floats
      return LoadShortFloats(d, data_ + i, hn::Lanes(d));
    } else {
      return hn::LoadU(d, data_ + i);
    }
  }

 private:
  const T* data_;
  const bool strided_;
  const hn::Vec<D> same_;
};

template <class D, class V>
HWY_INLINE void StoreResult(D d, V v, hn::TFromD<D>* out) {
  hn::StoreU(v, d, out);
}

// Lanes of 8 bits become truth values where they stand, those of 16 are narrowed, wider ones go by
// way of their bits.
template <class D>
HWY_INLINE void StoreTruth(D d, hn::Mask<D> mask, uint8_t* out) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 1) {
    const hn::RebindToUnsigned<D> du;
    const auto ones = hn::Set(du, uint8_t{1});
    hn::StoreU(hn::And(hn::BitCast(du, hn::VecFromMask(d, mask)), ones), du, out);
  } else if constexpr (sizeof(T) == 2) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint8_t, D> narrow;
    const auto truths = hn::And(hn::BitCast(di, hn::VecFromMask(d, mask)), hn::Set(di, int16_t{1}));
    hn::StoreU(hn::DemoteTo(narrow, truths), narrow, out);
  } else {
    constexpr size_t kLanes = hn::MaxLanes(D());
    uint8_t bits[(kLanes + 7) / 8 + 8];
    hn::StoreMaskBits(d, mask, bits);
    for (size_t i = 0; i < (kLanes + 7) / 8; ++i) {
      std::memcpy(out + 8 * i, &kTruthValues[bits[i]], std::min<size_t>(kLanes, 8));
    }
  }
}

// Where masks are no registers of their own, truth of 16-bit and 32-bit lanes is narrowed, two
// vectors together.
template <class Lane>
inline constexpr bool kNarrowsTruth = HWY_TARGET > HWY_AVX3 &&
                                      (sizeof(Lane) == 2 || sizeof(Lane) == 4);

// Two vectors of all ones or zeros, side by side as truth values.
template <class D, class V>
HWY_INLINE void StoreTwoTruths(D, V first, V second, uint8_t* out) {
  if constexpr (sizeof(hn::TFromD<D>) == 2) {
    const hn::Repartition<uint8_t, D> bytes;
    const auto both = hn::ConcatEven(bytes, hn::BitCast(bytes, second), hn::BitCast(bytes, first));
    hn::StoreU(hn::And(both, hn::Set(bytes, uint8_t{1})), bytes, out);
  } else {
    const hn::Repartition<int16_t, D> words;
    const hn::Rebind<uint8_t, decltype(words)> bytes;
    const hn::Repartition<uint32_t, decltype(bytes)> fours;
    const auto both = hn::ReorderDemote2To(words, first, second);
    auto truths = hn::DemoteTo(bytes, hn::And(both, hn::Set(words, int16_t{1})));
    if constexpr (hn::MaxLanes(D()) == 8) {  // blocks of 16 bytes were narrowed one by one
      alignas(16) constexpr int32_t kFrom[] = {0, 2, 1, 3};
      const auto from = hn::SetTableIndices(fours, kFrom);
      truths = hn::BitCast(bytes, hn::TableLookupLanes(hn::BitCast(fours, truths), from));
    }
    hn::StoreU(truths, bytes, out);
  }
}

// Stores the truth of as many elements as fill two vectors of D, again and again: how many.
template <class F, class T, class D>
HWY_INLINE int64_t NarrowTruth(D d, TypedOperand x, TypedOperand y, uint8_t* out, int64_t n) {
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Operands<D, T> left(d, x), right(d, y);
  const auto truth = [&](int64_t i) HWY_ATTR {
    return hn::BitCast(di, hn::VecFromMask(d, F::Vectors(d, left(i), right(i))));
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    StoreTwoTruths(di, truth(i), truth(i + lanes), out + i);
  }
  return i;
}

// Rows shorter than a vector take half of one, down to 8 bytes, and are computed one by one below;
// the last vector of others overlaps.
// Operands of type T are computed as lanes of D.
template <class F, class T, class D>
HWY_INLINE void RowBy(D d, TypedOperand x, TypedOperand y, void* out, int64_t n) {
  using Lane = hn::TFromD<D>;
  constexpr bool kTruth = std::is_same_v<decltype(F::Values(Lane{}, Lane{})), bool>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  using Result = std::conditional_t<kTruth, uint8_t, T>;
  auto* to = static_cast<Result*>(out);
  if (n < lanes) {
    if constexpr (hn::MaxLanes(D()) * sizeof(Lane) > 8) {
      return RowBy<F, T>(hn::Half<D>(), x, y, out, n);
    }
    const auto* a = static_cast<const T*>(x.data);
    const auto* b = static_cast<const T*>(y.data);
    for (int64_t i = 0; i < n; ++i) {
      const Lane left = a[i * x.stride], right = b[i * y.stride];
      to[i] = static_cast<Result>(F::Values(left, right));
    }
    return;
  }
  int64_t first = 0;
  if constexpr (kTruth && kNarrowsTruth<Lane>) first = NarrowTruth<F, T>(d, x, y, to, n);
  if (first == n) return;
  const Operands<D, T> left(d, x), right(d, y);
  for (int64_t i = std::min(first, n - lanes);; i = std::min(i + lanes, n - lanes)) {
    const auto v = F::Vectors(d, left(i), right(i));
    if constexpr (kTruth) {
      StoreTruth(d, v, to + i);
    } else {
      StoreResult(d, v, to + i);
    }
    if (i + lanes == n) return;
  }
}

template <class T, class F>
void Row(TypedOperand x, TypedOperand y, void* out, int64_t n) {
  RowBy<F, T>(hn::ScalableTag<T>(), x, y, out, n);
}

template <class T, class F>
void ShortFloatRow(TypedOperand x, TypedOperand y, void* out, int64_t n) {
  RowBy<F, T>(hn::ScalableTag<float>(), x, y, out, n);
}

// Functions that give the same bits whether integers have a sign or not are compiled for one of the
// two.
DataType WithSign(DataType type) {
  switch (type) {
    case DataType::kUInt8:
    case DataType::kBool: return DataType::kInt8;
    case DataType::kUInt16: return DataType::kInt16;
    case DataType::kUInt32: return DataType::kInt32;
    case DataType::kUInt64: return DataType::kInt64;
    default: return type;
  }
}

template <class F>
TypedRow ForSigned(DataType type) {
  switch (type) {
    case DataType::kInt8: return &Row<int8_t, F>;
    case DataType::kInt16: return &Row<int16_t, F>;
    case DataType::kInt32: return &Row<int32_t, F>;
    case DataType::kInt64: return &Row<int64_t, F>;
    default: return nullptr;
  }
}

template <class F>
TypedRow ForIntegers(DataType type) {
  return type == DataType::kUInt8 ? &Row<uint8_t, F> : ForSigned<F>(type);
}

template <class F>
TypedRow ForSums(DataType type) {
  switch (type) {
    case DataType::kBool: return nullptr;
    case DataType::kFloat32: return &Row<float, F>;
    case DataType::kFloat64: return &Row<double, F>;
    default: return ForSigned<F>(WithSign(type));
  }
}

TypedRow ForProducts(DataType type) {
  if (type == DataType::kBool) return nullptr;
  switch (WithSign(type)) {
    case DataType::kFloat32: return &Row<float, MulOf>;
    case DataType::kFloat64: return &Row<double, MulOf>;
    case DataType::kInt8: return &Row<int8_t, ByteMulOf>;
    case DataType::kInt16: return &Row<int16_t, MulOf>;
    case DataType::kInt32: return &Row<int32_t, MulOf>;
    case DataType::kInt64: return &Row<int64_t, WideMulOf>;
    default: return nullptr;
  }
}

template <class F>
TypedRow ForExtremes(DataType type) {
  switch (type) {
    case DataType::kFloat32: return &Row<float, F>;
    case DataType::kFloat64: return &Row<double, F>;
    case DataType::kUInt16: return &Row<uint16_t, F>;
    case DataType::kUInt32: return &Row<uint32_t, F>;
    case DataType::kUInt64: return &Row<uint64_t, F>;
    default: return ForIntegers<F>(type);
  }
}

template <class F, class Integer>
TypedRow ForOrder(DataType type) {
  switch (type) {
    case DataType::kFloat32: return &Row<float, F>;
    case DataType::kFloat16: return &ShortFloatRow<Half, F>;
    case DataType::kBFloat16: return &ShortFloatRow<BFloat16, F>;
    default: return ForIntegers<Integer>(type);
  }
}

template <class F>
TypedRow ForEquality(DataType type) {
  return type == DataType::kBool ? &Row<uint8_t, F> : ForOrder<F, F>(type);
}

TypedRow ForShifts(DataType type) {
  switch (type) {
    case DataType::kInt8: return &Row<int8_t, ScaledByPowerOf<ByteMulOf>>;
    case DataType::kInt16: return &Row<int16_t, ScaledByPowerOf<MulOf>>;
    case DataType::kInt32: return &Row<int32_t, ShiftLeftOf>;
    default: return nullptr;
  }
}

TypedRow FindRow(TypedFunction function, DataType type) {
  switch (function) {
    case TypedFunction::kAdd: return ForSums<AddOf>(type);
    case TypedFunction::kSub: return ForSums<SubOf>(type);
    case TypedFunction::kMul: return ForProducts(type);
    case TypedFunction::kMaximum: return ForExtremes<MaximumOf>(type);
    case TypedFunction::kMinimum: return ForExtremes<MinimumOf>(type);
    case TypedFunction::kSquaredDifference:
      return type == DataType::kInt32 ? &Row<int32_t, SquaredDifferenceOf> : nullptr;
    case TypedFunction::kAnd: return ForSigned<AndOf>(WithSign(type));
    case TypedFunction::kOr: return ForSigned<OrOf>(WithSign(type));
    case TypedFunction::kShiftLeft: return ForShifts(type);
    case TypedFunction::kEqual: return ForEquality<EqualOf>(type);
    case TypedFunction::kNotEqual: return ForEquality<NotEqualOf>(type);
    case TypedFunction::kLess: return ForOrder<LessOf, LessOf>(type);
    case TypedFunction::kLessEqual: return ForOrder<LessEqualOf, IntegerLessEqualOf>(type);
    default: return nullptr;  // asked for with the operands exchanged
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kFindRow = FUSELITE_SIMD_TABLE(FindRow);

// Greater is less with the operands exchanged.
std::pair<TypedFunction, bool> Exchanged(TypedFunction function) {
  if (function == TypedFunction::kGreater) return {TypedFunction::kLess, true};
  if (function == TypedFunction::kGreaterEqual) return {TypedFunction::kLessEqual, true};
  return {function, false};
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTypedRows(TypedFunction function, const OpDescription& op,
                                               const BuildContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kFindRow.Require(context.isa));
  const DataType type = op.inputs[0].type;
  const auto [computed, exchanged] = Exchanged(function);
  const TypedRow row = find(computed, type);
  if (row == nullptr)
    return Unsupported(op.op->name, " of ", DataTypeName(type), " has no vectors");
  const JoinedRows joined(op, context.isa);
  const int64_t in_bytes = BitWidth(type) / 8, out_bytes = BitWidth(op.outputs[0].type) / 8;
  return MakeKernel(
      std::string(op.op->name) + " " + std::string(DataTypeName(type)) + " " +
          SimdName(context.isa),
      {.units = joined.plan().units(),
       .grain = GrainFor(joined.plan().unit_elements()),
       .scratch_bytes = joined.scratch_bytes()},
      [=, exchanged = exchanged](const KernelArgs& args, int64_t begin, int64_t end) {
        joined.ForEach(args, begin, end, [&](const RowBlock& block) {
          TypedOperand x{block.x, block.x_step}, y{block.y, block.y_step};
          auto* out = static_cast<std::byte*>(block.out);
          for (int64_t r = 0; r < block.rows; ++r, out += block.out_stride * out_bytes) {
            exchanged ? row(y, x, out, block.n) : row(x, y, out, block.n);
            x.data = static_cast<const std::byte*>(x.data) + block.x_stride * in_bytes;
            y.data = static_cast<const std::byte*>(y.data) + block.y_stride * in_bytes;
          }
        });
      });
}

}  // namespace fuselite::kernels
#endif
