#include "kernels/numbers/quantization.h"

#include <cmath>
#include <span>

namespace fuselite::kernels {
namespace {

// Changes [*min, *max], which it narrows where `keep_min` (the lower bound) or else the upper.
Status Narrow(float bound, bool lower, const Quantization& quantization, int32_t* min,
              int32_t* max) {
  const float scaled = std::round(bound / quantization.scale());
  if (!(scaled >= -0x1p31f && scaled < 0x1p31f)) {
    return Unsupported("the activation's bound ", bound, " at scale ", quantization.scale(),
                       " leaves 32 bits");
  }
  const int64_t value = static_cast<int64_t>(scaled) + quantization.zero_point();
  if (lower) {
    *min = static_cast<int32_t>(std::clamp<int64_t>(value, *min, INT32_MAX));
  } else {
    *max = static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, *max));
  }
  return Status();
}

bool IsScale(float scale) { return scale > 0 && std::isfinite(scale); }

// x.scale * w.scale / output.scale, the product rounded to float first where `float_product`.
// Converters give channels whose weights are all 0 a scale of 0; such sums become 0, and so they do
// by the least positive scale, for which nobody needs a case of its own.
double OutputScale(float x, float w, float output, bool float_product) {
  const float rounded = x * w;
  const double product = float_product ? static_cast<double>(rounded) : static_cast<double>(x) * w;
  return std::max(product / output, std::numeric_limits<double>::min());
}

// What is wrong with one of the weights' scales.
Status BadScale(const Quantization& x, const Quantization& weights) {
  for (float scale : weights.scales) {
    if (scale != 0 && !IsScale(scale)) {
      return Unsupported("the weights' scale ", scale, " must be finite and not negative");
    }
  }
  return Unsupported("the input's scale ", x.scale(), " overflows with those of the weights");
}

}  // namespace

void QuantizedTypeRange(DataType type, int32_t* min, int32_t* max) {
  const int bits = BitWidth(type);
  const bool is_signed =
      type != DataType::kUInt8 && type != DataType::kUInt16 && type != DataType::kUInt4;
  *max = static_cast<int32_t>((int64_t{1} << (is_signed ? bits - 1 : bits)) - 1);
  *min = is_signed ? -*max - 1 : 0;
}

Status QuantizedActivationRange(Activation activation, DataType type,
                                const Quantization& quantization, int32_t* min, int32_t* max) {
  QuantizedTypeRange(type, min, max);
  switch (activation) {
    case Activation::kRelu: return Narrow(0, true, quantization, min, max);
    case Activation::kReluN1To1:
      FUSELITE_RETURN_IF_ERROR(Narrow(-1, true, quantization, min, max));
      return Narrow(1, false, quantization, min, max);
    case Activation::kRelu6:
      FUSELITE_RETURN_IF_ERROR(Narrow(0, true, quantization, min, max));
      return Narrow(6, false, quantization, min, max);
    default: return Status();
  }
}

Status CheckOutputScales(const Quantization& x, const Quantization& weights,
                         const Quantization& output, bool float_product) {
  if (!IsScale(x.scale()) || !IsScale(output.scale())) {
    return Unsupported("input scale ", x.scale(), " and output scale ", output.scale(),
                       " must be positive");
  }
  if (weights.scales.empty()) return Unsupported("the weights have no scale");
  bool valid = true;
  float largest = 0;
  for (const float scale : std::span(weights.scales)) {
    valid &= scale >= 0;
    largest = std::max(largest, scale);
  }
  const bool fits = OutputScale(x.scale(), largest, output.scale(), float_product) <=
                    std::numeric_limits<double>::max();
  return valid && fits ? Status() : BadScale(x, weights);
}

Result<std::vector<double>> OutputScales(const Quantization& x, const Quantization& weights,
                                         const Quantization& output, bool float_product) {
  FUSELITE_RETURN_IF_ERROR(CheckOutputScales(x, weights, output, float_product));
  const float x_scale = x.scale(), output_scale = output.scale();
  const std::span scales(weights.scales);
  std::vector<double> result(scales.size());
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = OutputScale(x_scale, scales[i], output_scale, float_product);
  }
  return result;
}

}  // namespace fuselite::kernels
