#include "jit/product_s8.h"

#include <algorithm>
#include <cstdlib>

#include "jit/aligned_constant.h"
#include "jit/byte_weights.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::Conv2DParams;
using kernels::Conv2DShape;
using kernels::FullyConnectedParams;
using kernels::FullyConnectedShape;
using kernels::OpDescription;
using kernels::QuantizedTail;
using kernels::Window;

constexpr int64_t kRowsPerCorrection = 64;  // of a unit

// Up to three phases: the image is converted, rows are corrected, products are summed.
class ProductS8Kernel final : public Kernel {
 public:
  ProductS8Kernel(GemmS8 gemm, std::optional<ConvertedImage> image, int64_t rows,
                  PackedWeights weights)
      : gemm_(std::move(gemm)),
        image_(image),
        rows_(rows),
        weights_(std::move(weights)),
        name_(gemm_.name()) {
    if (image_) phases_[phase_count_++] = Phase::kConvert;
    if (gemm_.corrects()) phases_[phase_count_++] = Phase::kCorrect;
    phases_[phase_count_++] = Phase::kMultiply;
  }

  std::string_view name() const override { return name_; }
  int phases() const override { return phase_count_; }
  int64_t units(int phase) const override {
    switch (phases_[phase]) {
      case Phase::kConvert: return image_->rows();
      case Phase::kCorrect: return (rows_ + kRowsPerCorrection - 1) / kRowsPerCorrection;
      default: return gemm_.units();
    }
  }
  int64_t grain(int phase) const override {
    switch (phases_[phase]) {
      case Phase::kConvert: return image_->grain();
      case Phase::kCorrect: return 4;
      default: return gemm_.grain();
    }
  }
  size_t scratch_bytes() const override { return gemm_.scratch_bytes(); }
  size_t shared_bytes() const override {
    return corrections_at() + (gemm_.corrects() ? rows_ * sizeof(int32_t) : 0);
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    const auto* input = static_cast<const std::byte*>(args.inputs[0]);
    const std::byte* a = image_ ? args.shared : input;
    auto* corrections = reinterpret_cast<int32_t*>(args.shared + corrections_at());
    switch (phases_[phase]) {
      case Phase::kConvert: image_->CopyRows(input, args.shared, begin, end); break;
      case Phase::kCorrect:
        gemm_.CorrectRows(a, corrections, begin * kRowsPerCorrection,
                          std::min(rows_, end * kRowsPerCorrection));
        break;
      default:
        gemm_.Run(
            {args, a, weights_->data(), corrections, static_cast<std::byte*>(args.outputs[0])},
            begin, end);
        break;
    }
    return Status();
  }

 private:
  enum class Phase : uint8_t { kConvert, kCorrect, kMultiply };
  size_t corrections_at() const { return image_ ? AlignUp(image_->bytes()) : 0; }

  GemmS8 gemm_;
  std::optional<ConvertedImage> image_;
  int64_t rows_;
  PackedWeights weights_;
  std::string name_;
  Phase phases_[3] = {};
  int phase_count_ = 0;
};

Result<std::unique_ptr<Kernel>> BuildProduct(const OpDescription& op, const BuildContext& context,
                                             GemmS8Problem problem, S8Weights steps,
                                             std::optional<ConvertedImage> image) {
  problem.flips = HasDotProduct(context.isa) && !image && op.inputs[0].type == DataType::kInt8;
  const int64_t rows = problem.rows() * problem.groups;
  FUSELITE_ASSIGN_OR_RETURN(GemmS8 gemm, GemmS8::Build(std::move(problem), context));
  const TensorInfo& weights = op.inputs[1];
  const AlignedConstant bias(op.has_input(2) ? op.inputs[2] : TensorInfo());
  const auto pack = [&](std::byte* to) {
    const ByteWeights bytes(weights);
    steps.values = bytes.data();
    steps.bias = bias.as<int32_t>();
    gemm.Pack(steps, to, 0, gemm.panels());
  };
  const std::string layout = internal::Join(gemm.layout(), " s", steps.k_step, '.', steps.n_step);
  const PackRequest request{weights.data, weights.bytes(), bias.source(),
                            bias.bytes(), layout,          gemm.packed_bytes()};
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, context.Pack(request, pack));
  return std::unique_ptr<Kernel>(
      new ProductS8Kernel(std::move(gemm), image, rows, std::move(packed)));
}

}  // namespace

int64_t LargestBias(const TensorInfo& bias) {
  const AlignedConstant values(bias);
  int64_t largest = 0;
  for (size_t i = 0; i < values.bytes() / sizeof(int32_t); ++i) {
    largest = std::max(largest, std::abs(int64_t{values.as<int32_t>()[i]}));
  }
  return largest;
}

GemmS8Problem ProblemOf(const OpDescription& op, int64_t channels, QuantizedTail tail,
                        const kernels::ProductInputs& inputs) {
  GemmS8Problem problem;
  problem.channels = channels;
  problem.out_pitch = op.outputs[0].pitch();
  problem.type = op.inputs[inputs.x].type;
  problem.weights_type = ByteType(op.inputs[inputs.weights].type);
  problem.zero_point = op.inputs[inputs.x].quantization.zero_point();
  problem.weights_zero_point = op.inputs[inputs.weights].quantization.zero_point();
  if (op.has_input(inputs.bias)) problem.largest_bias = LargestBias(op.inputs[inputs.bias]);
  problem.tail = std::move(tail);
  return problem;
}

void SetWindows(const Window& window, int64_t images, int64_t channels, const WindowMemory& memory,
                GemmS8Problem* problem) {
  const auto& [y, x] = window;
  const bool rows_follow = x.dilation == 1 && memory.dense;
  for (int32_t kx = 0; kx < (rows_follow ? 1 : x.filter); ++kx) {
    problem->depth.runs.push_back(
        {kx * x.dilation * memory.pixel, rows_follow ? x.filter * channels : channels});
  }
  problem->depth.outer = y.filter;
  problem->depth.outer_step = y.filter > 1 ? y.dilation * memory.row : 0;
  problem->a_step = x.stride * memory.pixel;
  problem->line_rows = x.output;
  problem->lines_per_image = y.output;
  problem->images = images;
  problem->line_step = y.stride * memory.row;
  problem->image_step = memory.image;
}

std::optional<ConvertedImage> ImageFor(const TensorInfo& in, const Window& window, int64_t batch,
                                       int64_t channels, int64_t run, Isa isa) {
  const bool dot = HasDotProduct(isa), is_signed = in.type == DataType::kInt8;
  if (dot && window.unpadded() && run % 4 == 0) return std::nullopt;
  const ActivationFormat format = !dot        ? ActivationFormat::kWide
                                  : is_signed ? ActivationFormat::kFlipped
                                              : ActivationFormat::kAsIs;
  return ConvertedImage(window, batch, channels, in.pitch(), in.type, in.quantization.zero_point(),
                        format);
}

Status CheckInt8Operands(const OpDescription& op, const kernels::ProductInputs& inputs) {
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  const TensorInfo bias = op.has_input(inputs.bias) ? op.inputs[inputs.bias] : TensorInfo();
  if ((in.type != DataType::kInt8 && in.type != DataType::kUInt8) ||
      ByteType(weights.type) != in.type) {
    return Unsupported("only int8 and uint8 have an integer emitter, not ", DataTypeName(in.type),
                       " with weights of ", DataTypeName(weights.type));
  }
  if (!weights.constant() || (!bias.absent() && !bias.constant())) {
    return Unsupported("weights or biases known only at run time have no emitter");
  }
  if (!bias.absent() && bias.type != DataType::kInt32) {
    return Unsupported("a bias of ", DataTypeName(bias.type), " has no emitter");
  }
  return Status();
}

namespace {

// `weights`: how they lie.
Result<std::unique_ptr<Kernel>> BuildConvolution(const OpDescription& op,
                                                 const BuildContext& context,
                                                 const Conv2DShape& shape, QuantizedTail tail,
                                                 const S8Weights& weights) {
  const auto& [y, x] = shape.window;
  const int64_t pitch = op.inputs[0].pitch(), channels = shape.channels_in;
  const bool one_group = shape.groups == 1;
  const bool rows_follow =
      x.dilation == 1 && one_group && (pitch == channels || !shape.window.unpadded());
  const int64_t run = rows_follow ? x.filter * channels : shape.group_in;
  const std::optional<ConvertedImage> image =
      ImageFor(op.inputs[0], shape.window, shape.batch, channels, run, context.isa);
  const int64_t pixel = image ? image->pixel_bytes() : pitch;

  GemmS8Problem problem = ProblemOf(op, shape.channels_out, std::move(tail));
  problem.name = "conv";
  problem.groups = shape.groups;
  problem.group_step = image ? pixel / shape.groups : shape.group_in;
  SetWindows(shape.window, shape.batch, shape.group_in,
             {.pixel = pixel,
              .row = image ? image->row_bytes() : pitch * x.input,
              .image = image ? image->image_bytes() : pitch * x.input * y.input,
              .dense = one_group && (image || pitch == channels)},
             &problem);
  if (PixelsFollow(shape.window)) {
    problem.line_rows *= problem.lines_per_image * problem.images;
    problem.lines_per_image = problem.images = 1;
  }
  return BuildProduct(op, context, std::move(problem), weights, image);
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2DInt8(const OpDescription& op,
                                                const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op));
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  const auto& params = op.params.as<Conv2DParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      kernels::MakeQuantizedTail(op, params.activation, params.quantized_bias_type, {},
                                 shape.channels_out));
  return BuildConvolution(op, context, shape, std::move(tail),
                          {.k_step = 1, .n_step = shape.depth()});
}

Result<std::unique_ptr<Kernel>> BuildOneChannelDepthwiseInt8(
    const OpDescription& op, const BuildContext& context,
    const kernels::DepthwiseConv2DShape& shape) {
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      kernels::MakeQuantizedTail(op, op.params.as<kernels::DepthwiseConv2DParams>().activation,
                                 DataType::kNone, {}, shape.channels_out));
  const Conv2DShape convolution = {.window = shape.window,
                                   .batch = shape.batch,
                                   .channels_in = 1,
                                   .channels_out = shape.channels_out,
                                   .groups = 1,
                                   .group_in = 1,
                                   .group_out = shape.channels_out};
  return BuildConvolution(op, context, convolution, std::move(tail),
                          {.k_step = shape.channels_out, .n_step = 1});
}

Result<std::unique_ptr<Kernel>> BuildFullyConnectedInt8(const OpDescription& op,
                                                        const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op));
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, kernels::ResolveFullyConnected(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      kernels::MakeQuantizedTail(op, params.activation, params.quantized_bias_type,
                                 {.scaling = kernels::SumScaling::kReal}, shape.units));
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  const auto rows = static_cast<int32_t>(shape.rows);
  TensorInfo rows_of = op.inputs[0];
  rows_of.row_pitch = pitch;
  Window window;  // the rows as the pixels of one line
  window.y.input = window.y.output = 1;
  window.x.input = window.x.output = rows;
  const std::optional<ConvertedImage> image =
      ImageFor(rows_of, window, 1, shape.depth, shape.depth, context.isa);
  GemmS8Problem problem = ProblemOf(op, shape.units, std::move(tail));
  problem.name = "fully_connected";
  problem.depth.runs = {{0, shape.depth}};
  problem.a_step = image ? image->pixel_bytes() : pitch;
  problem.line_rows = shape.rows;
  return BuildProduct(op, context, std::move(problem), {.k_step = 1, .n_step = shape.depth}, image);
}

}  // namespace fuselite::jit
