#include "jit/conv2d.h"

#include <cstring>

#include "jit/aligned_constant.h"
#include "jit/gemm.h"
#include "jit/padded_image.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/output_tail.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::Conv2DParams;
using kernels::Conv2DShape;
using kernels::OpDescription;

constexpr int64_t kFloat = sizeof(float);

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

// The windows as rows of a matrix. `image` is the one that is read.
GemmProblem ToProblem(const Conv2DShape& shape, const PaddedImage& image, int64_t out_pitch,
                      FusedTail tail) {
  const auto& [y, x] = shape.window;
  const int64_t pixel = image.pixel_bytes();
  GemmProblem problem;
  problem.name = "conv";
  problem.channels = shape.channels_out;
  problem.out_step = out_pitch * kFloat;
  problem.tail = std::move(tail);
  if (x.dilation == 1 && pixel == shape.group_in * kFloat) {
    problem.depth.runs = {{0, int64_t{x.filter} * shape.group_in}};
  } else {
    for (int32_t kx = 0; kx < x.filter; ++kx) {
      problem.depth.runs.push_back({kx * x.dilation * pixel, shape.group_in});
    }
  }
  problem.depth.outer = y.filter;
  problem.depth.outer_step = y.filter > 1 ? y.dilation * image.row_bytes() : 0;
  problem.a_step = x.stride * pixel;
  problem.line_rows = x.output;
  problem.lines_per_image = y.output;
  problem.images = shape.batch;
  problem.line_step = y.stride * image.row_bytes();
  problem.image_step = image.image_bytes();
  if (PixelsFollow(shape.window)) {
    problem.line_rows *= problem.lines_per_image;
    problem.lines_per_image = 1;
    if (TailIsLinear(problem.tail.emitted)) {
      problem.line_rows *= problem.images;
      problem.images = 1;
    }
  }
  return problem;
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2D(const OpDescription& op, const BuildContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  const TensorInfo &in = op.inputs[0], &filter = op.inputs[1];
  for (const DataType type : {in.type, filter.type, op.outputs[0].type}) {
    if (type != DataType::kFloat32) {
      return Unsupported("only float32 is emitted, not ", DataTypeName(type));
    }
  }
  if (shape.groups != 1) return Unsupported(shape.groups, " groups have no emitter");
  if (!filter.constant() || (op.has_input(2) && !op.inputs[2].constant())) {
    return Unsupported("filters or biases known only at run time have no emitter");
  }
  const PaddedImage image(shape.window, shape.batch, shape.channels_in * kFloat,
                          in.pitch() * kFloat);
  const auto& [y, x] = shape.window;
  FUSELITE_ASSIGN_OR_RETURN(
      FusedTail tail,
      FuseTail(op, op.params.as<Conv2DParams>().activation,
               PixelsFollow(shape.window) ? int64_t{y.output} * x.output : x.output));
  FUSELITE_ASSIGN_OR_RETURN(
      Gemm gemm,
      Gemm::Build(ToProblem(shape, image, op.outputs[0].pitch(), std::move(tail)), context));
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

}  // namespace fuselite::jit
