#include "kernels/elementwise/integer_unary.h"

#include <type_traits>

#include "kernels/elementwise/broadcast.h"
#include "kernels/make_kernel.h"
#include "runtime/tflite_builtin_codes.h"

namespace fuselite::kernels {
namespace {

template <class T>
T Negate(T x) {
  return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x));
}
template <class T>
T Magnitude(T x) {
  return x < 0 ? Negate(x) : x;
}
template <class T>
T Signum(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

template <class T>
std::unique_ptr<Kernel> MapKernel(const OpDescription& op, T (*function)(T)) {
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
                    [plan, function](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* in = static_cast<const T*>(args.inputs[0]);
                      auto* out = static_cast<T*>(args.outputs[0]);
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        const T* x = in + piece.offsets[0];
                        T* y = out + piece.offsets[1];
                        for (int64_t i = 0; i < piece.count; ++i) y[i] = function(x[i]);
                      });
                    });
}

template <class T>
Result<std::unique_ptr<Kernel>> BuildOf(const OpDescription& op) {
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinNeg: return MapKernel<T>(op, Negate<T>);
    case tflite::kTfLiteBuiltinAbs: return MapKernel<T>(op, Magnitude<T>);
    case tflite::kTfLiteBuiltinSign: return MapKernel<T>(op, Signum<T>);
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
        return MapKernel<double>(op, Signum<double>);
      }
      [[fallthrough]];
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

}  // namespace fuselite::kernels
