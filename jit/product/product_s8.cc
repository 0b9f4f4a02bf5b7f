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

namespace {

// Whether products of these sizes repay what byte pairs cost: splitting the rows, and a loop for
// each of the five sorts of groups. With a depth of 24 MobileNetV2 uint8 took 4% longer, SSD
// MobileNetV1 8% (Zen 3).
bool IsLargeForBytePairs(const ProductDescription& d) {
  constexpr int64_t kLeastRows = 16, kLeastDepth = 32, kLeastChannels = 16;
  const kernels::Window& window = d.parts.front().window;
  const int64_t depth = d.channels_in * window.x.filter * window.y.filter;
  const int64_t rows = int64_t{window.x.output} * window.y.output * d.images;
  return depth >= kLeastDepth && rows >= kLeastRows && d.channels_out >= kLeastChannels;
}

// The terms in which some weight, less its zero point, is not between -127 and 127. int8 without a
// zero point rarely has such a weight, and memchr finds that out in less time than TermsOfOutliers.
std::optional<std::vector<int64_t>> TermsWithoutOpposite(const ProductDescription& d,
                                                         const TensorInfo& weights) {
  const int32_t zero_point = weights.quantization.zero_point();
  const bool is_signed = weights.type == DataType::kInt8;
  const auto bytes = static_cast<size_t>(weights.elements());
  if (is_signed && zero_point == 0 &&
      std::memchr(weights.data, static_cast<uint8_t>(INT8_MIN), bytes) == nullptr) {
    return std::vector<int64_t>();
  }
  // A weight 255 below the zero point would leave -128 beside -127.
  if (zero_point == (is_signed ? INT8_MAX : UINT8_MAX)) return std::nullopt;
  return TermsOfOutliers(d, weights, kLeastWithOpposite);
}

// With more wide vectors plain ones save little, and packing takes longer: on a Zen 3 layers with a
// third of them take 12% less than by int16, with a half as long. Layers of many terms and channels
// take no longer with more, and have weights of half the bytes: at 0.7 ViT-tiny int8 grows by 23
// MiB instead of 26, and takes 1% less.
bool HasFewWideVectors(const ProductDescription& d, const TensorInfo& weights) {
  constexpr double kMostWide = 0.4, kMostWideOfLarge = 0.7;
  constexpr int64_t kLarge = 128;
  const auto flip = static_cast<uint8_t>(weights.type == DataType::kUInt8 ? 0x80 : 0);
  const kernels::SampledWeights sampled{
      .values = static_cast<const uint8_t*>(weights.data),
      .rows = d.channels_out,
      .depth = weights.elements() / d.channels_out,
      .flip = flip,
      .zero_point = static_cast<int8_t>(weights.quantization.zero_point() - flip)};
  const bool large = sampled.depth >= kLarge && sampled.rows >= kLarge;
  return kernels::PartOfWide(sampled) <= (large ? kMostWideOfLarge : kMostWide);
}

}  // namespace

std::optional<std::vector<int64_t>> TermsOfBytePairs(const OpDescription& op,
                                                     const ProductDescription& d, Isa isa) {
  // At most one of so many groups of so many terms is multiplied twice.
  constexpr int64_t kGroupsOfOutlier = 4, kGroup = 4;
  const TensorInfo& weights = op.inputs[op.op->product_inputs->weights];
  if (isa.has_vnni()) return std::nullopt;
  if (weights.type != DataType::kInt8 && weights.type != DataType::kUInt8) return std::nullopt;
  if (!weights.constant() || d.groups != 1 || d.left_transposed || d.volume ||
      !IsLargeForBytePairs(d) || !HasFewWideVectors(d, weights)) {
    return std::nullopt;
  }
  auto terms = TermsWithoutOpposite(d, weights);
  const int64_t depth = weights.elements() / d.channels_out;
  if (terms && std::ssize(*terms) * kGroupsOfOutlier * kGroup > depth) return std::nullopt;
  return terms;
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
  const bool constant_right = kernels::HasConstants(op, inputs.weights, inputs.bias);
  std::optional<std::vector<int64_t>> outliers;
  if (constant_right) outliers = TermsOfBytePairs(op, d, context.isa);
  const bool byte_pairs = outliers.has_value();
  if (!byte_pairs) outliers = TermsOfOutliers(d, weights);
  kernels::ByteSource source =
      kernels::MakeByteSource(inputs.x, d, in, context.isa, context.isa.has_vnni() || byte_pairs);
  ProductFormatS8 format{.type = in.type,
                         .weights_type = ReadableType(weights.type),
                         .zero_point = in.quantization.zero_point(),
                         .weights_zero_point = weights.quantization.zero_point(),
                         .flips = source.flips,
                         .to_the_byte = source.to_the_byte,
                         .byte_pairs = byte_pairs,
                         .constant_right = constant_right,
                         .outliers = std::move(outliers),
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
