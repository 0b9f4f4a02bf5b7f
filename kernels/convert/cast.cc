#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/convert/convert.h"
#include "kernels/make_kernel.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

using Complex = std::complex<float>;

template <class T>
auto Widen(T value) {
  return value;
}
inline float Widen(Half value) { return value; }
inline float Widen(BFloat16 value) { return value; }
// To a real type, complex numbers leave their imaginary part behind.
inline float Widen(Complex value) { return value.real(); }

// The integer part, saturated; the largest for a NaN.
template <class To, class From>
To Saturate(From value) {
  using Limits = std::numeric_limits<To>;
  // One above the largest value: a power of two, thus exact.
  const From above = std::ldexp(From{1}, Limits::digits);
  if (!(value < above)) return Limits::max();
  return value > static_cast<From>(Limits::min()) ? static_cast<To>(value) : Limits::min();
}

template <class To, class From>
To Convert(From value) {
  if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Complex>) {
    return {static_cast<float>(value), 0};
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<To> || std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else {
    return Saturate<To>(value);
  }
}

template <class From, class To>
void CastRun(const void* in, int64_t in_start, void* out, int64_t out_start, int64_t count) {
  const auto* from = static_cast<const From*>(in) + in_start;
  auto* to = static_cast<To*>(out) + out_start;
  if constexpr (std::is_same_v<From, Complex> && std::is_same_v<To, Complex>) {
    std::copy_n(from, count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = Convert<To>(Widen(from[i]));
  }
}

template <class From>
CastFunction* CastTo(DataType to) {
  switch (to) {
    case DataType::kFloat32: return CastRun<From, float>;
    case DataType::kFloat64: return CastRun<From, double>;
    case DataType::kFloat16: return CastRun<From, Half>;
    case DataType::kBFloat16: return CastRun<From, BFloat16>;
    case DataType::kBool: return CastRun<From, bool>;
    case DataType::kInt8: return CastRun<From, int8_t>;
    case DataType::kUInt8: return CastRun<From, uint8_t>;
    case DataType::kInt16: return CastRun<From, int16_t>;
    case DataType::kUInt16: return CastRun<From, uint16_t>;
    case DataType::kInt32: return CastRun<From, int32_t>;
    case DataType::kUInt32: return CastRun<From, uint32_t>;
    case DataType::kInt64: return CastRun<From, int64_t>;
    case DataType::kComplex64: return CastRun<From, Complex>;
    default: return nullptr;
  }
}

// Elements from a byte's first on, as pieces of dense operands have them.
template <DataType kFrom>
void Unpack(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  const PackedIntegers values(kFrom, in);
  for (int64_t i = 0; i < count; ++i) {
    static_cast<float*>(out)[to + i] = static_cast<float>(values[from + i]);
  }
}
template <DataType kTo>
void Pack(const void* in, int64_t from, void* out, int64_t to, int64_t count) {
  constexpr int64_t kBlock = 256;
  int32_t min, max;
  QuantizedTypeRange(kTo, &min, &max);
  const auto low = static_cast<float>(min), high = static_cast<float>(max);
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t n = std::min(kBlock, count - start);
    int8_t values[kBlock];
    for (int64_t i = 0; i < n; ++i) {
      const float x = static_cast<const float*>(in)[from + start + i];
      values[i] = static_cast<int8_t>(std::max(low, std::min(high, x)));  // NaN: the highest
    }
    PackIntegers(kTo, values, n, static_cast<std::byte*>(out) + (to + start) * BitWidth(kTo) / 8);
  }
}

CastFunction* CastPacked(DataType from, DataType to) {
  switch (from) {
    case DataType::kInt4: return Unpack<DataType::kInt4>;
    case DataType::kUInt4: return Unpack<DataType::kUInt4>;
    case DataType::kInt2: return Unpack<DataType::kInt2>;
    default: break;
  }
  switch (to) {
    case DataType::kInt4: return Pack<DataType::kInt4>;
    case DataType::kUInt4: return Pack<DataType::kUInt4>;
    default: return Pack<DataType::kInt2>;
  }
}

CastFunction* CastBetween(DataType from, DataType to) {
  switch (from) {
    case DataType::kFloat32: return CastTo<float>(to);
    case DataType::kFloat64: return CastTo<double>(to);
    case DataType::kFloat16: return CastTo<Half>(to);
    case DataType::kBFloat16: return CastTo<BFloat16>(to);
    case DataType::kBool: return CastTo<uint8_t>(to);  // 0 or 1
    case DataType::kInt8: return CastTo<int8_t>(to);
    case DataType::kUInt8: return CastTo<uint8_t>(to);
    case DataType::kInt16: return CastTo<int16_t>(to);
    case DataType::kUInt16: return CastTo<uint16_t>(to);
    case DataType::kInt32: return CastTo<int32_t>(to);
    case DataType::kUInt32: return CastTo<uint32_t>(to);
    case DataType::kInt64: return CastTo<int64_t>(to);
    case DataType::kComplex64: return CastTo<Complex>(to);
    default: return nullptr;
  }
}

}  // namespace

std::unique_ptr<Kernel> MakeCast(const OpDescription& op, std::string name,
                                 CastFunction* function) {
  const Pieces pieces(op.inputs[0], op.outputs[0]);
  return MakeKernel(std::move(name), {.units = pieces.units, .grain = GrainFor(pieces.size)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      pieces.ForEach(begin, end, [&](int64_t i, int64_t o, int64_t, int64_t n) {
                        function(args.inputs[0], i, args.outputs[0], o, n);
                      });
                    });
}

Result<std::unique_ptr<Kernel>> BuildCast(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("CAST takes no fused tail");
  const DataType from = op.inputs[0].type, to = op.outputs[0].type;
  const bool packed = IsPacked(from) || IsPacked(to);
  if (packed) FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  CastFunction* const function = packed ? CastPacked(from, to) : CastBetween(from, to);
  if (function == nullptr) return Unsupported("does not take this cast");
  return MakeCast(op,
                  "cast " + std::string(DataTypeName(from)) + " " + std::string(DataTypeName(to)) +
                      " reference",
                  function);
}

}  // namespace fuselite::kernels
