#include "kernels/elementwise/typed/integer_unary.h"

#include <type_traits>

#include "kernels/elementwise/typed/typed_map.h"
#include "runtime/tflite/builtin_codes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/typed/integer_unary.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_ELEMENTWISE_INTEGER_UNARY_ONCE_
#define FUSELITE_KERNELS_ELEMENTWISE_INTEGER_UNARY_ONCE_
namespace fuselite::kernels {

struct Negate {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x));
  }
};
struct Magnitude {
  template <class T>
  T operator()(T x) const {
    return x < 0 ? Negate()(x) : x;
  }
};
struct Signum {
  template <class T>
  T operator()(T x) const {
    const T sign = static_cast<T>(x > 0) - static_cast<T>(x < 0);
    return x == x ? sign : x;  // a NaN stays one
  }
};
using IntegerRow = void(const void* in, int64_t from, void* out, int64_t to, int64_t n);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

// A plain loop, which the compiler makes vectors of (this file is compiled with -O3).
template <class T, class F>
void Row(const void* in, int64_t from, void* out, int64_t to, int64_t n) {
  const T* x = static_cast<const T*>(in) + from;
  T* y = static_cast<T*>(out) + to;
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

template <class T>
IntegerRow* RowOf(int code) {
  switch (code) {
    case tflite::kTfLiteBuiltinNeg: return Row<T, Negate>;
    case tflite::kTfLiteBuiltinAbs: return Row<T, Magnitude>;
    default: return Row<T, Signum>;
  }
}

IntegerRow* IntegerRowFor(DataType type, int code) {
  switch (type) {
    case DataType::kInt64: return RowOf<int64_t>(code);
    case DataType::kInt32: return RowOf<int32_t>(code);
    case DataType::kInt16: return RowOf<int16_t>(code);
    case DataType::kInt8: return RowOf<int8_t>(code);
    default: return nullptr;
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

template <class T>
Result<std::unique_ptr<Kernel>> BuildOf(const OpDescription& op) {
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinNeg: return MakeTypedUnaryMap<T, T>(op, Negate());
    case tflite::kTfLiteBuiltinAbs: return MakeTypedUnaryMap<T, T>(op, Magnitude());
    case tflite::kTfLiteBuiltinSign: return MakeTypedUnaryMap<T, T>(op, Signum());
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildIntegerUnary(const OpDescription& op) {
  switch (op.inputs[0].type) {
    case DataType::kInt64: return BuildOf<int64_t>(op);
    case DataType::kInt32: return BuildOf<int32_t>(op);
    case DataType::kInt16: return BuildOf<int16_t>(op);
    case DataType::kInt8: return BuildOf<int8_t>(op);
    case DataType::kFloat64:
      if (op.op->builtin_code == tflite::kTfLiteBuiltinSign) {
        return MakeTypedUnaryMap<double, double>(op, Signum());
      }
      [[fallthrough]];
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

Result<std::unique_ptr<Kernel>> BuildIntegerUnaryHighway(const OpDescription& op,
                                                         const BuildContext& context) {
  constexpr auto kRow = FUSELITE_SIMD_TABLE(IntegerRowFor);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row_for, kRow.Require(context.isa));
  const DataType type = op.inputs[0].type;
  const int code = op.op->builtin_code;
  IntegerRow* const row = row_for(type, code);
  const bool known = code == tflite::kTfLiteBuiltinNeg || code == tflite::kTfLiteBuiltinAbs ||
                     code == tflite::kTfLiteBuiltinSign;
  if (row == nullptr || !known) {
    return Unsupported(op.op->name, " of ", DataTypeName(type), " has no vectors");
  }
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(type)) + " " +
                        SimdName(context.isa),
                    {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        row(args.inputs[0], piece.offsets[0], args.outputs[0], piece.offsets[1],
                            piece.count);
                      });
                    });
}

}  // namespace fuselite::kernels
#endif
