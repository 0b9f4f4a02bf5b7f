#include "jit/conv2d.h"

#include <cstring>

#include "jit/aligned_constant.h"
#include "jit/byte_weights.h"
#include "jit/gemm.h"
#include "jit/padded_image.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/quantized_tail.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::Conv2DParams;
using kernels::Conv2DShape;
using kernels::OpDescription;

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kStep = 4;  // bytes that a product takes at once: a float, or four 8-bit values

class ConvKernel final : public Kernel {
 public:
  ConvKernel(Gemm gemm, PaddedImage padded, PackedWeights weights)
      : gemm_(std::move(gemm)),
        padded_(padded),
        weights_(std::move(weights)),
        name_(gemm_.name()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return padded_.needed() ? 2 : 1; }
  int64_t units(int phase) const override { return Pads(phase) ? padded_.rows() : gemm_.units(); }
  int64_t grain(int phase) const override { return Pads(phase) ? padded_.grain() : gemm_.grain(); }
  size_t shared_bytes() const override { return padded_.needed() ? padded_.bytes() : 0; }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    const auto* in = static_cast<const std::byte*>(args.inputs[0]);
    if (Pads(phase)) {
      padded_.CopyRows(in, args.shared, begin, end);
    } else {
      gemm_.Run(args.inputs, padded_.needed() ? args.shared : in, weights_->data(),
                static_cast<std::byte*>(args.outputs[0]), 0, begin, end);
    }
    return Status();
  }

 private:
  bool Pads(int phase) const { return padded_.needed() && phase == 0; }

  Gemm gemm_;
  PaddedImage padded_;
  PackedWeights weights_;
  std::string name_;
};

// Whether the output's pixels are the input's, one by one: then rows of the image are no borders.
bool PixelsFollow(const Conv2DShape& shape) {
  const auto& [y, x] = shape.window;
  return shape.window.unpadded() && shape.window.taps() == 1 && x.stride == 1 && y.stride == 1 &&
         x.output == x.input && y.output == y.input;
}

// The windows as rows of a matrix. `image` is the one that is read, `element` the bytes of a value;
// the depth's runs are still to be set.
GemmProblem ToProblem(const Conv2DShape& shape, const PaddedImage& image, int64_t out_pitch,
                      int64_t element, FusedTail tail) {
  const auto& [y, x] = shape.window;
  GemmProblem problem;
  problem.name = "conv";
  problem.channels = shape.channels_out;
  problem.out_step = out_pitch * element;
  problem.tail = std::move(tail);
  problem.depth.outer = y.filter;
  problem.depth.outer_step = y.filter > 1 ? y.dilation * image.row_bytes() : 0;
  problem.a_step = x.stride * image.pixel_bytes();
  problem.line_rows = x.output;
  problem.lines_per_image = y.output;
  problem.images = shape.batch;
  problem.line_step = y.stride * image.row_bytes();
  problem.image_step = image.image_bytes();
  if (PixelsFollow(shape)) {
    problem.line_rows *= problem.lines_per_image;
    problem.lines_per_image = 1;
    if (TailIsLinear(problem.tail.emitted)) {
      problem.line_rows *= problem.images;
      problem.images = 1;
    }
  }
  return problem;
}

// The consecutive values that windows are made of, for one row of the filter: offset and length in
// bytes.
std::vector<DepthRuns::Run> FilterRow(const Conv2DShape& shape, const PaddedImage& image,
                                      int64_t element) {
  const auto& x = shape.window.x;
  const int64_t pixel = image.pixel_bytes(), channels = shape.group_in * element;
  if (x.dilation == 1 && pixel == channels) return {{0, x.filter * channels}};
  std::vector<DepthRuns::Run> runs;
  for (int32_t kx = 0; kx < x.filter; ++kx) runs.push_back({kx * x.dilation * pixel, channels});
  return runs;
}

int64_t LineRows(const Conv2DShape& shape) {
  const auto& [y, x] = shape.window;
  return PixelsFollow(shape) ? int64_t{y.output} * x.output : x.output;
}

Result<std::unique_ptr<Kernel>> BuildFloat(const OpDescription& op, const Conv2DShape& shape,
                                           const BuildContext& context) {
  const TensorInfo& filter = op.inputs[1];
  const PaddedImage image(shape.window, shape.batch, shape.channels_in * kFloat,
                          op.inputs[0].pitch() * kFloat);
  FUSELITE_ASSIGN_OR_RETURN(FusedTail tail,
                            FuseTail(op, op.params.as<Conv2DParams>().activation, LineRows(shape)));
  GemmProblem problem = ToProblem(shape, image, op.outputs[0].pitch(), kFloat, std::move(tail));
  for (const DepthRuns::Run& run : FilterRow(shape, image, kFloat)) {
    problem.depth.runs.push_back({run.offset, run.length / kStep});
  }
  FUSELITE_ASSIGN_OR_RETURN(Gemm gemm, Gemm::Build(std::move(problem), context));
  AlignedConstant weights(filter), bias(op.has_input(2) ? op.inputs[2] : TensorInfo());
  const WeightsView view{weights.as<float>(), 1, shape.depth(), bias.as<float>()};
  const auto pack = [&](std::byte* to) {
    gemm.Pack(view, reinterpret_cast<float*>(to), 0, gemm.panels());
  };
  const PackRequest request{filter.data,  filter.bytes(), bias.source(),
                            bias.bytes(), gemm.layout(),  gemm.packed_bytes()};
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, context.Pack(request, pack));
  return std::unique_ptr<Kernel>(new ConvKernel(std::move(gemm), image, std::move(packed)));
}

Result<std::unique_ptr<Kernel>> BuildInt8(const OpDescription& op, const Conv2DShape& shape,
                                          const BuildContext& context) {
  const auto& params = op.params.as<Conv2DParams>();
  const TensorInfo& in = op.inputs[0];
  FUSELITE_ASSIGN_OR_RETURN(
      kernels::QuantizedTail quantized,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, {}, shape.channels_out));
  FUSELITE_ASSIGN_OR_RETURN(ByteWeights weights, ReadByteWeights(op, shape.channels_out));
  FUSELITE_ASSIGN_OR_RETURN(FusedTail tail, FuseQuantizedTail(quantized.tail, op.outputs[0].type,
                                                              weights.sum_bound, LineRows(shape)));
  // Steps read 4 bytes: of windows with fewer in a row, the copy has some behind it.
  const int64_t run = shape.window.x.dilation == 1 && in.pitch() == shape.channels_in
                          ? int64_t{shape.window.x.filter} * shape.channels_in
                          : shape.channels_in;
  const PaddedImage image(shape.window, shape.batch, shape.channels_in, in.pitch(),
                          in.quantization.zero_point(), run < kStep);
  GemmProblem problem = ToProblem(shape, image, op.outputs[0].pitch(), 1, std::move(tail));
  problem.type = in.type == DataType::kInt8 ? GemmType::kInt8 : GemmType::kUInt8;
  AddByteRuns(FilterRow(shape, image, 1), problem.depth, weights.view);
  FUSELITE_ASSIGN_OR_RETURN(Gemm gemm, Gemm::Build(std::move(problem), context));
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, PackByteWeights(op, gemm, weights, context));
  return std::unique_ptr<Kernel>(new ConvKernel(std::move(gemm), image, std::move(packed)));
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2D(const OpDescription& op, const BuildContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  if (shape.groups != 1) return Unsupported(shape.groups, " groups have no emitter");
  if (!op.inputs[1].constant() || (op.has_input(2) && !op.inputs[2].constant())) {
    return Unsupported("filters or biases known only at run time have no emitter");
  }
  const DataType type = op.inputs[0].type;
  if (type == DataType::kFloat32 && op.inputs[1].type != type) {
    return Unsupported("float32 with filters of ", DataTypeName(op.inputs[1].type),
                       " has no emitter");
  }
  if (type == DataType::kFloat32 && op.outputs[0].type == type) {
    return BuildFloat(op, shape, context);
  }
  if (type == DataType::kInt8 || type == DataType::kUInt8) return BuildInt8(op, shape, context);
  return Unsupported(DataTypeName(type), " has no emitter");
}

}  // namespace fuselite::jit
