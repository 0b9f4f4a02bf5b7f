#include "jit/product/product_s8.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "kernels/filter_operands.h"
#include "kernels/product/byte_pairs.h"
#include "kernels/product/constant.h"
#include "kernels/product/product_kernel.h"
#include "kernels/source/image_source.h"

namespace fuselite::jit {

using kernels::OpDescription;
using kernels::ProductDescription;
using kernels::ProductProblem;
using kernels::ReadableType;

int64_t LargestBias(const TensorInfo& bias) {
  constexpr int64_t kAtRunTime = 1 << 20;
  if (bias.absent()) return 0;
  if (!bias.constant()) return kAtRunTime;
  const kernels::ReadableConstant values(bias);
  int32_t least = 0, most = 0;
  for (const int32_t value : std::span(values.as<int32_t>(), bias.elements())) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return std::max<int64_t>(most, -int64_t{least});
}

Status CheckInt8Operands(const OpDescription& op) {
  const kernels::ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  const TensorInfo bias = op.has_input(inputs.bias) ? op.inputs[inputs.bias] : TensorInfo();
  if ((in.type != DataType::kInt8 && in.type != DataType::kUInt8) ||
      ReadableType(weights.type) != in.type) {
    return Unsupported("takes int8 and uint8, not ", DataTypeName(in.type), " by weights of ",
                       DataTypeName(weights.type));
  }
  if (!bias.absent() && bias.type != DataType::kInt32) {
    return Unsupported("does not take a bias of ", DataTypeName(bias.type));
  }
  return Status();
}

bool FitsBytePairs(const OpDescription& op, const ProductDescription& d, Isa isa) {
  // With so many of them forming the rows takes less than the plain vectors save. Of layers with
  // more wide ones than that these save little, and packing takes longer: on a Zen 3 layers with a
  // third of them take 12% less than by int16, with a half as long.
  constexpr int64_t kLeastRows = 16, kLeastDepth = 32, kLeastChannels = 32;
  constexpr double kMostWide = 0.4;
  constexpr uint8_t kWithoutOpposite = 0x80;
  const TensorInfo& weights = op.inputs[op.op->product_inputs->weights];
  const kernels::Window& window = d.parts.front().window;
  if (HasDotProduct(isa) || isa.has(Feature::kAvx512)) return false;
  if (weights.type != DataType::kInt8 || weights.quantization.zero_point() != 0 ||
      !kernels::HasConstants(op, op.op->product_inputs->weights, op.op->product_inputs->bias)) {
    return false;
  }
  const bool rows = d.parts.size() == 1 && window.x.filter == 1 && window.y.filter == 1 &&
                    d.groups == 1 && d.padding.unpadded() && !d.left_transposed;
  const int64_t count = int64_t{window.x.output} * window.y.output * d.images;
  if (!rows || d.channels_in % 4 != 0 || d.channels_in < kLeastDepth || count < kLeastRows ||
      d.channels_out < kLeastChannels) {
    return false;
  }
  const auto* const values = static_cast<const int8_t*>(weights.data);
  if (kernels::PartOfWide(values, d.channels_out, d.channels_in) > kMostWide) return false;
  const auto bytes = static_cast<size_t>(weights.elements());
  return std::memchr(values, kWithoutOpposite, bytes) == nullptr;
}

Result<kernels::KernelPlan> PlanProductS8(const OpDescription& op,
                                          const kernels::PlanContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription d, op.op->product(op));
  FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op));
  if (kernels::ReadsUnpacked(op)) {
    return Unsupported("so few rows or units do not repay packing weights");
  }
  const kernels::ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  FUSELITE_ASSIGN_OR_RETURN(
      kernels::QuantizedTail tail,
      kernels::MakeQuantizedTail(op, d.activation, d.quantized_bias_type, d.channels_out));
  const bool is_linear = kernels::TailIsLinear(tail.tail);
  const bool byte_pairs = FitsBytePairs(op, d, context.isa);
  kernels::ByteSource source = kernels::MakeByteSource(inputs.x, d, in, context.isa,
                                                       HasDotProduct(context.isa) || byte_pairs);
  ProductFormatS8 format{.type = in.type,
                         .weights_type = ReadableType(weights.type),
                         .zero_point = in.quantization.zero_point(),
                         .weights_zero_point = weights.quantization.zero_point(),
                         .flips = source.flips,
                         .to_the_byte = source.to_the_byte,
                         .byte_pairs = byte_pairs,
                         .constant_right = kernels::HasConstants(op, inputs.weights, inputs.bias),
                         .outliers = TermsOfOutliers(d, weights),
                         .largest_bias = 0,
                         .tail = std::move(tail.tail),
                         .floats = std::nullopt,
                         .output = op.outputs[0].type};
  if (op.has_input(inputs.bias)) format.largest_bias = LargestBias(op.inputs[inputs.bias]);
  kernels::ProductKernelSpec spec;
  spec.source = std::move(source.source);
  spec.value_bytes = source.value_bytes;
  spec.tail_is_linear = is_linear;
  spec.micro_kernel = [&](const kernels::DepthRuns& depth, ProductProblem* problem) {
    return MicroKernelS8::Make(format, depth, problem, context.isa);
  };
  return PlanProductKernel(op, d, spec, context);
}

}  // namespace fuselite::jit
