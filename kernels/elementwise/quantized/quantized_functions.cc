#include "kernels/elementwise/quantized/quantized_functions.h"

#include <cmath>

namespace fuselite::kernels {
namespace {

// Offsets, and both operands scaled to twice the larger scale, which is returned.
double ScaleToLarger(const OpDescription& op, QuantizedAdd* add) {
  const Quantization& x = op.inputs[0].quantization;
  const Quantization& y = op.inputs[1].quantization;
  const double twice_larger = 2 * std::max(x.scale(), y.scale());
  const FixedPoint x_scale = ToFixedPoint(x.scale() / twice_larger);
  const FixedPoint y_scale = ToFixedPoint(y.scale() / twice_larger);
  add->x_offset = -x.zero_point();
  add->y_offset = -y.zero_point();
  add->output_offset = op.outputs[0].quantization.zero_point();
  add->x_multiplier = x_scale.multiplier;
  add->x_shift = x_scale.shift;
  add->y_multiplier = y_scale.multiplier;
  add->y_shift = y_scale.shift;
  return twice_larger;
}

Status RefuseScales(const OpDescription& op) {
  return Unsupported("does not take an output scale of ", op.outputs[0].quantization.scale(),
                     " for inputs of ", op.inputs[0].quantization.scale(), " and ",
                     op.inputs[1].quantization.scale());
}

// log2(scale), rounded.
int ExponentOf(float scale) {
  return static_cast<int>(std::round(std::log2(static_cast<double>(scale))));
}

bool IsPowerOfTwo(float scale) {
  // As TFLite asks: within 0.001 in the exponent.
  return std::abs(std::log2(static_cast<double>(scale)) - ExponentOf(scale)) < 1e-3;
}

Activation ActivationOf(const OpDescription& op) {
  return HasActivation(*BinaryKindOf(*op.op)) ? op.params.as<ArithmeticParams>().activation
                                              : Activation::kNone;
}

// Zero points, range and `scale` of one of the functions that have them.
template <class Function>
Status SetCommon(const OpDescription& op, Function* f) {
  const Quantization& out = op.outputs[0].quantization;
  f->x_zero = op.inputs[0].quantization.zero_point();
  f->y_zero = op.inputs[1].quantization.zero_point();
  f->zero = out.zero_point();
  return QuantizedActivationRange(ActivationOf(op), op.outputs[0].type, out, &f->min, &f->max);
}

}  // namespace

bool HasPowerOfTwoScales(const OpDescription& op) {
  return op.inputs[0].type == DataType::kInt16 &&
         op.params.as<ArithmeticParams>().pot_scale_int16 &&
         IsPowerOfTwo(op.inputs[0].quantization.scale()) &&
         IsPowerOfTwo(op.inputs[1].quantization.scale()) &&
         IsPowerOfTwo(op.outputs[0].quantization.scale());
}

Result<QuantizedPowerSum> MakeQuantizedPowerSum(BinaryKind kind, const OpDescription& op) {
  QuantizedPowerSum f{};
  const int out = ExponentOf(op.outputs[0].quantization.scale());
  f.x_shift = out - ExponentOf(op.inputs[0].quantization.scale());
  f.y_shift = out - ExponentOf(op.inputs[1].quantization.scale());
  f.subtract = kind == BinaryKind::kSub;
  const auto [least, most] = std::minmax(f.x_shift, f.y_shift);
  if (least != 0 || most > 15) return RefuseScales(op);
  // TFLite's ADD does not broadcast here.
  if (!f.subtract && op.inputs[0].shape != op.inputs[1].shape) {
    return Unsupported("int16 scales that are powers of two, with shapes that broadcast");
  }
  FUSELITE_RETURN_IF_ERROR(QuantizedActivationRange(ActivationOf(op), op.outputs[0].type,
                                                    op.outputs[0].quantization, &f.min, &f.max));
  return f;
}

Result<QuantizedSum> MakeQuantizedSum(BinaryKind kind, const OpDescription& op) {
  const Quantization& out = op.outputs[0].quantization;
  if (HasPowerOfTwoScales(op)) return Unsupported("int16 scales that are powers of two");
  QuantizedAdd add{.left_shift = op.inputs[0].type == DataType::kInt16 ? 15 : 20};
  const double twice_larger = ScaleToLarger(op, &add);
  const double to_output = twice_larger / ((1 << add.left_shift) * out.scale());
  const bool must_shrink = kind == BinaryKind::kAdd || op.inputs[0].type == DataType::kInt16;
  if (must_shrink && !(to_output < 1)) return RefuseScales(op);
  const FixedPoint out_scale = ToFixedPoint(to_output);
  add.output_multiplier = out_scale.multiplier;
  add.output_shift = out_scale.shift;
  FUSELITE_RETURN_IF_ERROR(
      QuantizedActivationRange(ActivationOf(op), op.outputs[0].type, out, &add.min, &add.max));
  add.negate_y = kind == BinaryKind::kSub;
  return QuantizedSum{add};
}

Result<QuantizedProduct> MakeQuantizedProduct(const OpDescription& op) {
  QuantizedProduct f{};
  FUSELITE_RETURN_IF_ERROR(SetCommon(op, &f));
  f.scale = ToFixedPoint(op.inputs[0].quantization.scale() * op.inputs[1].quantization.scale() /
                         op.outputs[0].quantization.scale());
  return f;
}

Result<QuantizedQuotient> MakeQuantizedQuotient(const OpDescription& op) {
  QuantizedQuotient f{};
  FUSELITE_RETURN_IF_ERROR(SetCommon(op, &f));
  f.scale = ToFixedPoint(op.inputs[0].quantization.scale() /
                         (op.inputs[1].quantization.scale() * op.outputs[0].quantization.scale()));
  return f;
}

Result<QuantizedPrelu> MakeQuantizedPrelu(const OpDescription& op) {
  QuantizedPrelu f{};
  FUSELITE_RETURN_IF_ERROR(SetCommon(op, &f));
  const float x = op.inputs[0].quantization.scale(), out = op.outputs[0].quantization.scale();
  f.identity = ToFixedPoint(x / out);
  f.product = ToFixedPoint(x * op.inputs[1].quantization.scale() / out);
  return f;
}

Result<QuantizedSquaredDifference> MakeQuantizedSquaredDifference(const OpDescription& op) {
  const Quantization& out = op.outputs[0].quantization;
  QuantizedAdd add{.left_shift = 7};
  const double larger = ScaleToLarger(op, &add);
  const double to_output = larger * larger / ((1 << (2 * add.left_shift)) * out.scale());
  if (!(to_output < 1)) return RefuseScales(op);
  const FixedPoint out_scale = ToFixedPoint(to_output);
  add.output_multiplier = out_scale.multiplier;
  add.output_shift = out_scale.shift;
  QuantizedTypeRange(op.outputs[0].type, &add.min, &add.max);
  return QuantizedSquaredDifference{{add}};
}

}  // namespace fuselite::kernels
