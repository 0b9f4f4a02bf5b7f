#include "jit/depthwise_quantized.h"

#include <algorithm>
#include <optional>

#include "jit/aligned_constant.h"
#include "jit/byte_weights.h"
#include "jit/depthwise_s8.h"
#include "jit/hybrid_kernel.h"
#include "jit/product_hybrid.h"
#include "jit/product_s8.h"
#include "jit/quantized_image.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::DepthwiseConv2DParams;
using kernels::DepthwiseConv2DShape;
using kernels::OpDescription;

// Of the input as it is, or of an image in which each channel stands once for each of its filters.
class DepthwiseInt8Kernel final : public Kernel {
 public:
  DepthwiseInt8Kernel(DepthwiseS8 depthwise, std::optional<ConvertedImage> image,
                      PackedWeights weights)
      : depthwise_(std::move(depthwise)),
        image_(image),
        weights_(std::move(weights)),
        name_(depthwise_.name()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return image_ ? 2 : 1; }
  int64_t units(int phase) const override {
    return phase + 1 < phases() ? image_->rows() : depthwise_.units();
  }
  int64_t grain(int phase) const override {
    return phase + 1 < phases() ? image_->grain() : depthwise_.grain();
  }
  size_t scratch_bytes() const override { return depthwise_.scratch_bytes(); }
  size_t shared_bytes() const override { return image_ ? image_->bytes() : 0; }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    const auto* input = static_cast<const std::byte*>(args.inputs[0]);
    if (phase + 1 < phases()) {
      image_->CopyRows(input, args.shared, begin, end);
    } else {
      depthwise_.Run({args, image_ ? args.shared : input, weights_->data()}, begin, end);
    }
    return Status();
  }

 private:
  DepthwiseS8 depthwise_;
  std::optional<ConvertedImage> image_;
  PackedWeights weights_;
  std::string name_;
};

// Whether w - zero point is an int8 for all weights.
bool FitInt8(const TensorInfo& filter) {
  const int32_t zero_point = filter.quantization.zero_point();
  if (zero_point == 0 && filter.type == DataType::kInt8) return true;
  const ByteWeights weights(filter);
  const auto* bytes = reinterpret_cast<const uint8_t*>(weights.data());
  return std::all_of(bytes, bytes + filter.elements(), [&](uint8_t byte) {
    const int32_t w =
        (filter.type == DataType::kUInt8 ? byte : static_cast<int8_t>(byte)) - zero_point;
    return w >= -128 && w <= 127;
  });
}

// The part of the problem that does not depend on where the image lies.
DepthwiseS8Problem ProblemOf(const OpDescription& op, const DepthwiseConv2DShape& shape) {
  DepthwiseS8Problem problem;
  problem.window = shape.window;
  problem.images = shape.batch;
  problem.channels = shape.channels_out;
  problem.out_pitch = op.outputs[0].pitch();
  problem.weights_type = ByteType(op.inputs[1].type);
  problem.weights_zero_point = op.inputs[1].quantization.zero_point();
  return problem;
}

Result<PackedWeights> PackFilters(const OpDescription& op, const BuildContext& context,
                                  const DepthwiseS8& depthwise, const TensorInfo& bias_info) {
  const TensorInfo& filter = op.inputs[1];
  const AlignedConstant bias(bias_info);
  const PackRequest request{filter.data,  filter.bytes(),     bias.source(),
                            bias.bytes(), depthwise.layout(), depthwise.packed_bytes()};
  return context.Pack(request, [&](std::byte* to) {
    depthwise.Pack(ByteWeights(filter).data(), bias.as<int32_t>(), to);
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DInt8(const OpDescription& op,
                                                         const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op));
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, kernels::ResolveDepthwiseConv2D(op));
  if (shape.channels_in == 1) return BuildOneChannelDepthwiseInt8(op, context, shape);
  const TensorInfo& in = op.inputs[0];
  DepthwiseS8Problem problem = ProblemOf(op, shape);
  FUSELITE_ASSIGN_OR_RETURN(
      problem.tail, kernels::MakeQuantizedTail(op, op.params.as<DepthwiseConv2DParams>().activation,
                                               DataType::kNone, {}, shape.channels_out));
  problem.name = internal::Join("depthwise ", DataTypeName(in.type));
  problem.type = in.type;
  problem.zero_point = in.quantization.zero_point();
  problem.fits_int8 = FitInt8(op.inputs[1]);
  std::optional<ConvertedImage> image;
  if (shape.multiplier > 1) {
    image.emplace(shape.window, shape.batch, shape.channels_in, in.pitch(), in.type,
                  problem.zero_point, ActivationFormat::kAsIs, shape.multiplier);
    problem.window = image->Padded(shape.window);
  }
  problem.pixel_bytes = image ? image->pixel_bytes() : in.pitch();
  problem.row_bytes = problem.pixel_bytes * problem.window.x.input;
  problem.image_bytes = problem.row_bytes * problem.window.y.input;
  const TensorInfo bias = op.has_input(2) ? op.inputs[2] : TensorInfo();
  problem.largest_bias = LargestBias(bias);
  FUSELITE_ASSIGN_OR_RETURN(DepthwiseS8 depthwise, DepthwiseS8::Build(std::move(problem), context));
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, PackFilters(op, context, depthwise, bias));
  return std::unique_ptr<Kernel>(
      new DepthwiseInt8Kernel(std::move(depthwise), image, std::move(packed)));
}

Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DHybrid(const OpDescription& op,
                                                           const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, kernels::ResolveDepthwiseConv2D(op));
  if (shape.multiplier != 1) return Unsupported("depth multiplier ", shape.multiplier);
  const auto activation = op.params.as<DepthwiseConv2DParams>().activation;
  FUSELITE_ASSIGN_OR_RETURN(kernels::HybridTail tail,
                            kernels::MakeHybridTail(op, activation, 2, shape.channels_out));
  QuantizedImage::Layout layout =
      QuantizedImage::LayoutFor(shape.window, shape.batch, shape.channels_in, op.inputs[0].pitch());
  layout.asymmetric = true;
  const QuantizedImage image(layout, context.isa);

  DepthwiseS8Problem problem = ProblemOf(op, shape);
  FUSELITE_ASSIGN_OR_RETURN(problem.floats, MakeFloatOutput(op, activation, std::move(tail),
                                                            {.line_rows = shape.window.x.output,
                                                             .row_zero_points = true,
                                                             .per_row = false}));
  problem.name = "depthwise hybrid int8";
  problem.type = DataType::kUInt8;
  problem.zero_point = 1;
  problem.tail.output = op.outputs[0];
  problem.window = layout.Padded(shape.window);
  problem.pixel_bytes = image.pixel_bytes();
  problem.row_bytes = image.row_bytes();
  problem.image_bytes = image.image_bytes();
  FUSELITE_ASSIGN_OR_RETURN(DepthwiseS8 depthwise, DepthwiseS8::Build(std::move(problem), context));
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed,
                            PackFilters(op, context, depthwise, TensorInfo()));
  return std::unique_ptr<Kernel>(
      new HybridKernel<DepthwiseS8>(std::move(depthwise), image, std::move(packed)));
}

}  // namespace fuselite::jit
