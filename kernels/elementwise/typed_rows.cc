#include "kernels/elementwise/typed_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/typed_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/elementwise/joined_rows.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/simd_math/std_max-inl.h"

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

// Each function on vectors and, with the same bits, on single values.
#define FUSELITE_ROW_FUNCTION(Name, vector, scalar) \
  struct Name {                                     \
    template <class D, class V>                     \
    static HWY_INLINE auto Vectors(D d, V x, V y) { \
      (void)d;                                      \
      return vector;                                \
    }                                               \
    template <class T>                              \
    static HWY_INLINE auto Values(T x, T y) {       \
      return scalar;                                \
    }                                               \
  };

// Sums and products of integers wrap around: they are computed without sign, and so wide that
// nothing makes a signed int of them.
template <class T>
HWY_INLINE auto Bits(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(x);
  } else {
    return x;
  }
}

FUSELITE_ROW_FUNCTION(AddOf, hn::Add(x, y), static_cast<T>(Bits(x) + Bits(y)))
FUSELITE_ROW_FUNCTION(SubOf, hn::Sub(x, y), static_cast<T>(Bits(x) - Bits(y)))
FUSELITE_ROW_FUNCTION(MulOf, hn::Mul(x, y), static_cast<T>(Bits(x) * Bits(y)))
FUSELITE_ROW_FUNCTION(MaximumOf, StdMax(x, y), std::max(x, y))
FUSELITE_ROW_FUNCTION(MinimumOf, StdMin(x, y), std::min(x, y))
FUSELITE_ROW_FUNCTION(SquaredDifferenceOf, hn::Mul(hn::Sub(x, y), hn::Sub(x, y)),
                      static_cast<T>((Bits(x) - Bits(y)) * (Bits(x) - Bits(y))))
FUSELITE_ROW_FUNCTION(AndOf, hn::And(x, y), static_cast<T>(x& y))
FUSELITE_ROW_FUNCTION(OrOf, hn::Or(x, y), static_cast<T>(x | y))
FUSELITE_ROW_FUNCTION(EqualOf, hn::Eq(x, y), x == y)
FUSELITE_ROW_FUNCTION(NotEqualOf, hn::Not(hn::Eq(x, y)), x != y)
FUSELITE_ROW_FUNCTION(LessOf, hn::Lt(x, y), x < y)
FUSELITE_ROW_FUNCTION(LessEqualOf, hn::Le(x, y), x <= y)

#undef FUSELITE_ROW_FUNCTION

// Highway has no order-or-equality of integers.
struct IntegerLessEqualOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D, V x, V y) {
    return hn::Not(hn::Lt(y, x));
  }
  template <class T>
  static HWY_INLINE bool Values(T x, T y) {
    return x <= y;
  }
};

// The low 64 bits of a product of 64: those of the low halves, and the crosswise ones above them.
struct WideMulOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D d, V x, V y) {
    const hn::Repartition<uint32_t, D> halves;
    const hn::RebindToUnsigned<D> du;
    const auto a = hn::BitCast(du, x), b = hn::BitCast(du, y);
    const auto low = [&](auto v) HWY_ATTR { return hn::BitCast(halves, v); };
    const auto high = [&](auto v) HWY_ATTR { return hn::BitCast(halves, hn::ShiftRight<32>(v)); };
    const auto across = hn::Add(hn::MulEven(high(a), low(b)), hn::MulEven(low(a), high(b)));
    return hn::BitCast(d, hn::Add(hn::MulEven(low(a), low(b)), hn::ShiftLeft<32>(across)));
  }
  template <class T>
  static HWY_INLINE T Values(T x, T y) {
    return static_cast<T>(Bits(x) * Bits(y));
  }
};

// Bytes are multiplied as lanes of 16 bits, the upper ones of each pair beside the lower ones.
struct ByteMulOf {
  template <class D, class V>
  static HWY_INLINE auto Vectors(D d, V x, V y) {
    const hn::Repartition<uint16_t, D> pairs;
    const auto a = hn::BitCast(pairs, x), b = hn::BitCast(pairs, y);
    const auto low = hn::Set(pairs, uint16_t{0x00FF});
    const auto upper = hn::Mul(hn::ShiftRight<8>(a), hn::AndNot(low, b));
    return hn::BitCast(d, hn::Or(hn::And(hn::Mul(a, b), low), upper));
  }
  template <class T>
  static HWY_INLINE T Values(T x, T y) {
    return static_cast<T>(Bits(x) * Bits(y));
  }
};

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadOperand(D d, const T* data, int stride, int64_t i) {
  return stride ? hn::LoadU(d, data + i) : hn::Set(d, *data);
}

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

// Rows shorter than a vector take half of one, down to 8 bytes, and are computed one by one below;
// the last vector of others overlaps.
template <class F, class D>
HWY_INLINE void RowBy(D d, TypedOperand x, TypedOperand y, void* out, int64_t n) {
  using T = hn::TFromD<D>;
  constexpr bool kTruth = std::is_same_v<decltype(F::Values(T{}, T{})), bool>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = static_cast<const T*>(x.data);
  const auto* b = static_cast<const T*>(y.data);
  using Result = std::conditional_t<kTruth, uint8_t, T>;
  auto* to = static_cast<Result*>(out);
  if (n < lanes) {
    if constexpr (hn::MaxLanes(D()) * sizeof(T) > 8) {
      return RowBy<F>(hn::Half<D>(), x, y, out, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<Result>(F::Values(a[i * x.stride], b[i * y.stride]));
    }
    return;
  }
  for (int64_t i = 0;; i = std::min(i + lanes, n - lanes)) {
    const auto v = F::Vectors(d, LoadOperand(d, a, x.stride, i), LoadOperand(d, b, y.stride, i));
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
  RowBy<F>(hn::ScalableTag<T>(), x, y, out, n);
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
  if (type == DataType::kBool) return nullptr;
  return type == DataType::kFloat32 ? &Row<float, F> : ForSigned<F>(WithSign(type));
}

TypedRow ForProducts(DataType type) {
  if (type == DataType::kBool) return nullptr;
  switch (WithSign(type)) {
    case DataType::kFloat32: return &Row<float, MulOf>;
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
    case DataType::kUInt16: return &Row<uint16_t, F>;
    case DataType::kUInt32: return &Row<uint32_t, F>;
    case DataType::kUInt64: return &Row<uint64_t, F>;
    default: return ForIntegers<F>(type);
  }
}

template <class F>
TypedRow ForEquality(DataType type) {
  if (type == DataType::kBool) return &Row<uint8_t, F>;
  return type == DataType::kFloat32 ? &Row<float, F> : ForIntegers<F>(type);
}

template <class F, class Integer>
TypedRow ForOrder(DataType type) {
  return type == DataType::kFloat32 ? &Row<float, F> : ForIntegers<Integer>(type);
}

TypedRow FindRow(RowFunction function, DataType type) {
  switch (function) {
    case RowFunction::kAdd: return ForSums<AddOf>(type);
    case RowFunction::kSub: return ForSums<SubOf>(type);
    case RowFunction::kMul: return ForProducts(type);
    case RowFunction::kMaximum: return ForExtremes<MaximumOf>(type);
    case RowFunction::kMinimum: return ForExtremes<MinimumOf>(type);
    case RowFunction::kSquaredDifference:
      return type == DataType::kInt32 ? &Row<int32_t, SquaredDifferenceOf> : nullptr;
    case RowFunction::kAnd: return ForSigned<AndOf>(WithSign(type));
    case RowFunction::kOr: return ForSigned<OrOf>(WithSign(type));
    case RowFunction::kEqual: return ForEquality<EqualOf>(type);
    case RowFunction::kNotEqual: return ForEquality<NotEqualOf>(type);
    case RowFunction::kLess: return ForOrder<LessOf, LessOf>(type);
    case RowFunction::kLessEqual: return ForOrder<LessEqualOf, IntegerLessEqualOf>(type);
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
std::pair<RowFunction, bool> Exchanged(RowFunction function) {
  if (function == RowFunction::kGreater) return {RowFunction::kLess, true};
  if (function == RowFunction::kGreaterEqual) return {RowFunction::kLessEqual, true};
  return {function, false};
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTypedRows(RowFunction function, const OpDescription& op,
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
