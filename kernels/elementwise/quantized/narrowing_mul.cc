#include <algorithm>
#include <limits>

#include "kernels/elementwise/quantized/quantized_binary.h"
#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/numbers/quantization.h"

namespace fuselite::kernels {
namespace {

struct NarrowingProduct {
  int32_t zero_point, min, max;

  int32_t operator()(int16_t x, int16_t y) const {
    const int32_t fraction = SaturatingRoundingDoublingHighMul16(x, y);
    const int32_t narrow = RoundingDivideByPowerOfTwo(fraction, 8);
    return zero_point + std::max(min - zero_point, std::min(max - zero_point, narrow));
  }

 private:
  static int32_t SaturatingRoundingDoublingHighMul16(int32_t x, int32_t y) {
    constexpr int32_t kLowest = std::numeric_limits<int16_t>::min();
    if (x == kLowest && y == kLowest) return std::numeric_limits<int16_t>::max();
    const int32_t product = x * y;
    const int32_t nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
    return (product + nudge) / (1 << 15);
  }
};

Status MakeProduct(const OpDescription& op, NarrowingProduct* product) {
  const TensorInfo& out = op.outputs[0];
  product->zero_point = out.quantization.zero_point();
  return QuantizedActivationRange(op.params.as<ArithmeticParams>().activation, out.type,
                                  out.quantization, &product->min, &product->max);
}

}  // namespace

bool IsNarrowingMul(BinaryKind kind, const OpDescription& op) {
  return kind == BinaryKind::kMul && op.inputs[0].type == DataType::kInt16 &&
         (op.outputs[0].type == DataType::kInt8 || op.outputs[0].type == DataType::kUInt8);
}

Status InferNarrowingMul(OpDescription& op) {
  if (op.inputs[0].shape != op.inputs[1].shape) {
    return InvalidArgument("operands of ", op.inputs[0].shape, " and ", op.inputs[1].shape,
                           ": int16 to 8 bits takes no broadcast");
  }
  if (!op.tail.empty()) return Unsupported("does not take a tail behind a quantized operator");
  NarrowingProduct product;
  FUSELITE_RETURN_IF_ERROR(MakeProduct(op, &product));
  return SetOutput(op, 0, op.outputs[0].type, op.inputs[0].shape);
}

Result<std::unique_ptr<Kernel>> BuildNarrowingMul(const OpDescription& op) {
  NarrowingProduct product;
  FUSELITE_RETURN_IF_ERROR(MakeProduct(op, &product));
  if (op.outputs[0].type == DataType::kInt8) return MakeTypedMap<int16_t, int8_t>(op, product);
  return MakeTypedMap<int16_t, uint8_t>(op, product);
}

}  // namespace fuselite::kernels
