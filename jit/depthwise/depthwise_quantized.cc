#include "jit/depthwise/depthwise_quantized.h"

#include <numeric>

#include "jit/depthwise/depthwise_s8.h"
#include "jit/depthwise/folded_pixels.h"
#include "jit/depthwise/row_walker.h"
#include "jit/product/product_hybrid.h"
#include "jit/product/product_s8.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/parted_lines.h"
#include "kernels/filter_operands.h"
#include "kernels/product/constant.h"
#include "kernels/rows/along_one_line.h"
#include "kernels/source/image_source.h"

namespace fuselite::jit {
namespace {

using kernels::Activation;
using kernels::ActivationFormat;
using kernels::Conv2DParams;
using kernels::Conv2DShape;
using kernels::ConvertedImage;
using kernels::DepthwiseConv2DParams;
using kernels::DepthwiseConv2DShape;
using kernels::KernelPlan;
using kernels::LineConvolution;
using kernels::OpDescription;
using kernels::QuantizedImage;
using kernels::QuantizedSource;
using kernels::Source;

// What the planning of both operators starts from.
struct Layer {
  kernels::Window window;
  int32_t batch = 0, channels_in = 0, channels_out = 0;
  int32_t group_channels = 1;
  Activation activation = Activation::kNone;
};

// Rows of one output each take calls of their own; a few of them repay that by multiplying four
// rows at a time.
kernels::Window LayerWindow(const kernels::Window& window) {
  return window.y.output > 3 ? kernels::AlongOneLine(window) : window;
}

Layer LayerOf(const OpDescription& op, const DepthwiseConv2DShape& shape) {
  return {LayerWindow(shape.window), shape.batch, shape.channels_in,
          shape.channels_out,        1,           op.params.as<DepthwiseConv2DParams>().activation};
}

// A group's outputs lie in the 16 bytes that its inputs do. Groups of 16 fill a vector of sums in
// products, too.
bool HasSmallGroups(const Conv2DShape& shape) {
  const int32_t group = shape.group_in;
  return shape.groups > 1 && group == shape.group_out && (group == 2 || group == 4 || group == 8);
}

Layer LayerOf(const OpDescription& op, const Conv2DShape& shape) {
  return {LayerWindow(shape.window), shape.batch,    shape.channels_in,
          shape.channels_out,        shape.group_in, op.params.as<Conv2DParams>().activation};
}

// The part of the problem that does not depend on where the image lies.
DepthwiseS8Problem ProblemOf(const OpDescription& op, const Layer& layer) {
  DepthwiseS8Problem problem;
  problem.window = layer.window;
  problem.images = layer.batch;
  problem.channels = layer.channels_out;
  problem.group_channels = layer.group_channels;
  problem.out_pitch = op.outputs[0].pitch();
  problem.weights_type = kernels::ReadableType(op.inputs[1].type);
  problem.weights_zero_point = op.inputs[1].quantization.zero_point();
  problem.constant_filters = kernels::HasConstants(op, 1, 2);
  return problem;
}

// DepthwiseS8Problem::outlier_taps. Filters of groups have their taps otherwise: of those, the
// first one stands for all.
std::vector<int64_t> OutlierTaps(const DepthwiseS8Problem& problem, const TensorInfo& filter) {
  if (Centering::IsNone(problem.weights_type, problem.weights_zero_point)) return {};
  const int64_t taps = problem.group_channels == 1 ? problem.window.taps() : 1;
  if (!filter.constant()) {  // any may be one
    std::vector<int64_t> all(taps);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const kernels::ReadableConstant weights(filter);
  const Centering centering(problem.weights_type, problem.weights_zero_point);
  const int64_t channels = filter.elements() / taps;
  std::vector<int64_t> outliers;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const auto* const of_tap = weights.as<uint8_t>() + tap * channels;
    if (centering.HasExcess(of_tap, channels)) outliers.push_back(tap);
  }
  return outliers;
}

std::unique_ptr<Source> InputItself(const TensorInfo& in, const kernels::Window& window) {
  const int64_t pixel = in.pitch(), row = pixel * window.x.input, image = row * window.y.input;
  return std::make_unique<kernels::InputSource>(
      0, kernels::ImageMemory{pixel, row, image, pixel == in.shape[3]});
}

// `problem`, whole but for where the image lies: that is `source`.
Result<KernelPlan> PlanLines(const OpDescription& op, DepthwiseS8Problem problem,
                             std::shared_ptr<const Source> source,
                             const kernels::PlanContext& context) {
  problem.pixel_bytes = source->memory().pixel;
  problem.row_bytes = source->memory().row;
  const auto& [y, x] = problem.window;
  kernels::LineOutputs outputs{problem.images, y.output, x.output, problem.out_pitch};
  const auto plan =
      [&](const kernels::Window& window) -> Result<std::shared_ptr<const LineConvolution>> {
    DepthwiseS8Problem part = problem;
    part.window = window;
    FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const DepthwiseS8> lines,
                              DepthwiseS8::Plan(std::move(part), context.isa));
    if (!lines->shares_outputs()) return std::shared_ptr<const LineConvolution>(std::move(lines));
    if (lines->rest().apply != nullptr) {
      return Unsupported("what is left of the tail would meet some outputs twice");
    }
    outputs = lines->outputs();
    return std::shared_ptr<const LineConvolution>(std::move(lines));
  };
  const int threads = problem.folded_pixels > 1 ? 1 : context.threads;
  FUSELITE_ASSIGN_OR_RETURN(auto lines, kernels::PlanInParts(problem.window, problem.images,
                                                             problem.pixel_bytes, threads, plan));
  return PlanLineKernel(op, outputs, std::move(source), std::move(lines), context);
}

// What `problem` is but for where the image lies, with `pixels` taken as one: of the input itself
// where windows do not leave it, else of a copy with its padding.
Result<KernelPlan> PlanFolded(const OpDescription& op, const Layer& layer,
                              DepthwiseS8Problem problem, int32_t pixels,
                              const kernels::PlanContext& context) {
  const TensorInfo& in = op.inputs[0];
  std::unique_ptr<Source> source = InputItself(in, layer.window);
  if (!layer.window.unpadded() || !source->memory().dense) {
    const ConvertedImage image(layer.window, layer.batch, layer.channels_in, in.pitch(), in.type,
                               problem.zero_point, ActivationFormat::kAsIs, context.isa);
    problem.window = image.Padded(layer.window);
    source = kernels::RepeatedSource(0, image);
  }
  FoldPixels(pixels, &problem);
  return PlanLines(op, std::move(problem), std::move(source), context);
}

// Plans a layer of 8-bit activations. Channels with several filters are read from a copy that
// repeats them, and windows that are too large to be unrolled for each border from a padded one.
Result<KernelPlan> PlanInt8(const OpDescription& op, const Layer& layer,
                            kernels::QuantizedTail tail, const char* name,
                            const kernels::PlanContext& context) {
  const TensorInfo& in = op.inputs[0];
  DepthwiseS8Problem problem = ProblemOf(op, layer);
  problem.tail = std::move(tail);
  problem.name = internal::Join(name, ' ', DataTypeName(in.type));
  problem.type = in.type;
  problem.zero_point = in.quantization.zero_point();
  problem.outlier_taps = OutlierTaps(problem, op.inputs[1]);
  const TensorInfo bias = op.has_input(2) ? op.inputs[2] : TensorInfo();
  problem.largest_bias = LargestBias(bias);
  const int32_t repeat = layer.channels_out / layer.channels_in;
  if (repeat == 1) {
    if (const int32_t pixels = FoldedPixels(problem, context.isa); pixels > 1) {
      Result<KernelPlan> plan = PlanFolded(op, layer, problem, pixels, context);
      if (plan.ok()) return plan;
    }
    Result<KernelPlan> direct = PlanLines(op, problem, InputItself(in, layer.window), context);
    if (direct.ok()) return direct;
  }
  // Windows over a copy with its padding need no code of their own at the borders.
  const ConvertedImage image(layer.window, layer.batch, layer.channels_in, in.pitch(), in.type,
                             problem.zero_point, ActivationFormat::kAsIs, context.isa, repeat);
  problem.window = image.Padded(layer.window);
  return PlanLines(op, std::move(problem), kernels::RepeatedSource(0, image), context);
}

Result<KernelPlan> PlanGroupedInt8(const OpDescription& op, const Layer& layer,
                                   const kernels::PlanContext& context) {
  const DataType bias_type = op.params.as<Conv2DParams>().quantized_bias_type;
  FUSELITE_ASSIGN_OR_RETURN(
      kernels::QuantizedTail tail,
      kernels::MakeQuantizedTail(op, layer.activation, bias_type, layer.channels_out));
  return PlanInt8(op, layer, std::move(tail), "grouped", context);
}

// Plans a layer of float32 activations, which are quantized asymmetrically image by image, and
// repeated for channels with several filters.
Result<KernelPlan> PlanHybrid(const OpDescription& op, const Layer& layer, kernels::HybridTail tail,
                              const char* name, const kernels::PlanContext& context) {
  QuantizedImage::Layout layout =
      QuantizedImage::LayoutFor(layer.window, layer.batch, layer.channels_in, op.inputs[0].pitch());
  layout.asymmetric = true;
  layout.repeat = layer.channels_out / layer.channels_in;
  auto source = std::make_unique<QuantizedSource>(0, layout, context.isa);

  DepthwiseS8Problem problem = ProblemOf(op, layer);
  FUSELITE_ASSIGN_OR_RETURN(problem.floats, MakeFloatOutput(op, layer.activation, std::move(tail),
                                                            {.line_rows = layer.window.x.output,
                                                             .row_zero_points = true,
                                                             .per_row = false}));
  problem.name = internal::Join(name, " hybrid int8");
  problem.type = DataType::kUInt8;
  problem.zero_point = 1;
  problem.tail.output = op.outputs[0];
  problem.window = layout.Padded(layer.window);
  return PlanLines(op, std::move(problem), std::move(source), context);
}

}  // namespace

Result<KernelPlan> PlanDepthwiseConv2DInt8(const OpDescription& op,
                                           const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op));
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, kernels::ResolveDepthwiseConv2D(op));
  if (shape.channels_in == 1) return PlanProductS8(op, context);
  const Layer layer = LayerOf(op, shape);
  FUSELITE_ASSIGN_OR_RETURN(
      kernels::QuantizedTail tail,
      kernels::MakeQuantizedTail(op, layer.activation, DataType::kNone, layer.channels_out));
  return PlanInt8(op, layer, std::move(tail), "depthwise", context);
}

Result<KernelPlan> PlanDepthwiseConv2DHybrid(const OpDescription& op,
                                             const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, kernels::ResolveDepthwiseConv2D(op));
  const Layer layer = LayerOf(op, shape);
  FUSELITE_ASSIGN_OR_RETURN(kernels::HybridTail tail,
                            kernels::MakeHybridTail(op, layer.activation, layer.channels_out));
  return PlanHybrid(op, layer, std::move(tail), "depthwise", context);
}

// Windows too large to be unrolled are left to products.
Result<KernelPlan> PlanConv2DInt8(const OpDescription& op, const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op));
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  if (HasSmallGroups(shape)) {
    Result<KernelPlan> plan = PlanGroupedInt8(op, LayerOf(op, shape), context);
    if (plan.ok()) return plan;
  }
  return PlanProductS8(op, context);
}

Result<KernelPlan> PlanConv2DHybrid(const OpDescription& op, const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  if (HasSmallGroups(shape)) {
    FUSELITE_ASSIGN_OR_RETURN(kernels::HybridTail tail, kernels::MakeConv2DHybridTail(op, shape));
    Result<KernelPlan> plan =
        PlanHybrid(op, LayerOf(op, shape), std::move(tail), "grouped", context);
    if (plan.ok()) return plan;
  }
  return PlanProductHybrid(op, context);
}

}  // namespace fuselite::jit
