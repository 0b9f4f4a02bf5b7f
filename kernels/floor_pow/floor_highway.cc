// FLOOR_DIV, and FLOOR_MOD of integers, by dividing real numbers: quotients of 8 and 16 bits in
// float, others in double precision, have the right integer below them, since one that is not whole
// is farther from the next integer (1 / |y| at least) than it is rounded.
//
// The loops are plain ones that the compiler turns into vectors of each target (this file is
// compiled with -O3).
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/broadcast.h"
#include "kernels/floor_pow/floor_pow.h"
#include "kernels/make_kernel.h"
#include "runtime/tflite/builtin_codes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/floor_pow/floor_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_FLOOR_POW_FLOOR_ONCE_
#define FUSELITE_KERNELS_FLOOR_POW_FLOOR_ONCE_
namespace fuselite::kernels {

// Element i of an operand is at data[i * stride], stride 0 or 1.
struct FloorOperand {
  const void* data;
  int stride;
};
// False, with nothing written, where a divisor is 0.
using FloorRow = bool(FloorOperand x, FloorOperand y, void* out, int64_t n);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

struct FloorDivOf {
  template <class T, class Real>
  static HWY_INLINE T Of(Real x, Real y) {
    const Real floor = std::floor(x / y);
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(floor);
    // The least value by -1 leaves the type's range; float has no largest of int32, double has.
    constexpr Real kMost = std::numeric_limits<T>::max();
    return static_cast<T>(kMost < floor ? kMost : floor);
  }
};

// The result has the divisor's sign. The products are exact: below twice the larger operand.
struct FloorModOf {
  template <class T, class Real>
  static HWY_INLINE T Of(Real x, Real y) {
    return static_cast<T>(x - std::floor(x / y) * y);
  }
};

template <class T, class F>
bool Row(FloorOperand x, FloorOperand y, void* out, int64_t n) {
  using Real = std::conditional_t<sizeof(T) <= 2, float, double>;
  const T* HWY_RESTRICT a = static_cast<const T*>(x.data);
  const T* HWY_RESTRICT b = static_cast<const T*>(y.data);
  T* HWY_RESTRICT to = static_cast<T*>(out);
  int zeros = 0;
  for (int64_t i = 0; i < (y.stride == 0 ? 1 : n); ++i) zeros += b[i] == 0 ? 1 : 0;
  if (zeros > 0) return false;
  const auto of = [](T left, T right) HWY_ATTR {
    return F::template Of<T>(static_cast<Real>(left), static_cast<Real>(right));
  };
  if (y.stride == 0) {
    const T right = *b;
    const T first = *a;
    if (x.stride == 0) std::fill(to, to + n, of(first, right));
    for (int64_t i = 0; x.stride == 1 && i < n; ++i) to[i] = of(a[i], right);
  } else if (x.stride == 0) {
    const T left = *a;
    for (int64_t i = 0; i < n; ++i) to[i] = of(left, b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = of(a[i], b[i]);
  }
  return true;
}

// FLOOR_MOD of floats. In double precision the remainder of a quotient of at most 28 bits is exact:
// two floats whose quotient is not whole have one that is further from it than doubles round, and
// its whole part times the divisor has 52 bits. Others are fmod's, which takes 20 ns.
struct FloatModOf {
  static HWY_INLINE bool Fits(double x, double y) {
    return std::abs(x / y) < 0x1p28 && std::abs(y) <= std::numeric_limits<float>::max();
  }
  // The result has the divisor's sign; `rest` has the dividend's.
  static HWY_INLINE float Signed(float rest, float y) {
    return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
  }
  static HWY_INLINE float Of(double x, double y) {
    const double rest = x - std::trunc(x / y) * y;
    return Signed(static_cast<float>(std::copysign(rest, x)), static_cast<float>(y));
  }
};

template <int kXStride, int kYStride>
HWY_INLINE void FloatModRow(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y,
                            float* HWY_RESTRICT out, int64_t n) {
  int rare = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double a = x[i * kXStride], b = y[i * kYStride];
    rare |= FloatModOf::Fits(a, b) ? 0 : 1;
    out[i] = FloatModOf::Of(a, b);
  }
  for (int64_t i = 0; rare != 0 && i < n; ++i) {
    const float a = x[i * kXStride], b = y[i * kYStride];
    if (!FloatModOf::Fits(a, b)) out[i] = FloatModOf::Signed(std::fmod(a, b), b);
  }
}

bool FloatMod(FloorOperand x, FloorOperand y, void* out, int64_t n) {
  const auto *a = static_cast<const float*>(x.data), *b = static_cast<const float*>(y.data);
  auto* const to = static_cast<float*>(out);
  if (x.stride == 0) {
    y.stride == 0 ? FloatModRow<0, 0>(a, b, to, n) : FloatModRow<0, 1>(a, b, to, n);
  } else {
    y.stride == 0 ? FloatModRow<1, 0>(a, b, to, n) : FloatModRow<1, 1>(a, b, to, n);
  }
  return true;
}

template <class F>
FloorRow* RowOfIntegers(DataType type) {
  switch (type) {
    case DataType::kInt8: return Row<int8_t, F>;
    case DataType::kInt16: return Row<int16_t, F>;
    case DataType::kInt32: return Row<int32_t, F>;
    default: return nullptr;
  }
}

FloorRow* FloorRowFor(bool division, DataType type) {
  if (!division && type == DataType::kFloat32) return FloatMod;
  if (!division) return RowOfIntegers<FloorModOf>(type);
  return type == DataType::kFloat32 ? Row<float, FloorDivOf> : RowOfIntegers<FloorDivOf>(type);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildFloor(const OpDescription& op, const BuildContext& context) {
  constexpr auto kFloorRow = FUSELITE_SIMD_TABLE(FloorRowFor);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row_for, kFloorRow.Require(context.isa));
  const DataType type = op.inputs[0].type;
  FloorRow* const row = row_for(op.op->builtin_code == tflite::kTfLiteBuiltinFloorDiv, type);
  if (row == nullptr)
    return Unsupported(op.op->name, " of ", DataTypeName(type), " has no vectors");
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(type)) + " " +
                        SimdName(context.isa),
                    {.units = plan.units(), .grain = GrainFor(2 * plan.unit_elements())},
                    [=, bytes = BitWidth(type) / 8](const KernelArgs& args, int64_t begin,
                                                    int64_t end) -> Status {
                      bool ok = true;
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        const auto operand = [&](int i) {
                          return FloorOperand{static_cast<const std::byte*>(args.inputs[i]) +
                                                  piece.offsets[i] * bytes,
                                              plan.stride(i)};
                        };
                        auto* const out =
                            static_cast<std::byte*>(args.outputs[0]) + piece.offsets[2] * bytes;
                        ok = ok && row(operand(0), operand(1), out, piece.count);
                      });
                      return ok ? Status() : InvalidArgument("a number is divided by 0");
                    });
}

}  // namespace fuselite::kernels
#endif
