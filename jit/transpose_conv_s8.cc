#include <algorithm>
#include <cstring>
#include <numeric>

#include "jit/aligned_constant.h"
#include "jit/product_s8.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::OpDescription;
using kernels::QuantizedTail;
using kernels::TransposeConvParams;
using kernels::TransposeConvShape;
using kernels::WindowAxis;

constexpr kernels::ProductInputs kInputs{.x = 2, .weights = 1, .bias = 3};

// Along one axis, the outputs whose position plus padding leaves the remainder `r` by the stride:
// they meet the taps r, r + stride, ... of the filter, and neighbours among them neighbouring
// inputs, the last tap the first input.
struct AxisPhase {
  int32_t remainder = 0, taps = 0;
  int32_t first = 0, outputs = 0;
  int32_t start = 0;  // the first output's first input in the padded image
};

// `axis` is that of the convolution that leads back: its input is our output.
int32_t PaddingBefore(const WindowAxis& axis) {
  return (axis.filter + axis.stride - 1) / axis.stride - 1;
}

AxisPhase PhaseOf(const WindowAxis& axis, int32_t r) {
  const int32_t s = axis.stride;
  AxisPhase phase{.remainder = r};
  phase.taps = r < axis.filter ? (axis.filter - r + s - 1) / s : 0;
  phase.first = ((r - axis.before) % s + s) % s;
  phase.outputs = phase.first < axis.input ? (axis.input - 1 - phase.first) / s + 1 : 0;
  phase.start = (phase.first + axis.before) / s - (phase.taps - 1) + PaddingBefore(axis);
  return phase;
}

// Our input with the padding that the phases' windows reach.
WindowAxis PaddedAxis(const WindowAxis& axis) {
  const int32_t last = (axis.input - 1 + axis.before) / axis.stride;
  WindowAxis padded;
  padded.input = axis.output;
  padded.before = PaddingBefore(axis);
  padded.output = padded.before + last + 1;
  return padded;
}

// The products of one pair of remainders.
struct Phase {
  AxisPhase y, x;
  GemmS8 gemm;
  PackedWeights weights;
  int64_t a_offset = 0, out_offset = 0;
};

class TransposeConvS8Kernel final : public Kernel {
 public:
  TransposeConvS8Kernel(std::vector<Phase> phases, std::optional<ConvertedImage> image)
      : phases_(std::move(phases)), image_(image), name_(phases_[0].gemm.name()) {
    for (const Phase& phase : phases_) units_ += phase.gemm.units();
  }

  std::string_view name() const override { return name_; }
  int phases() const override { return image_ ? 2 : 1; }
  int64_t units(int phase) const override { return Converts(phase) ? image_->rows() : units_; }
  int64_t grain(int phase) const override {
    return Converts(phase) ? image_->grain() : phases_[0].gemm.grain();
  }
  size_t shared_bytes() const override { return image_ ? image_->bytes() : 0; }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    const auto* input = static_cast<const std::byte*>(args.inputs[kInputs.x]);
    if (Converts(phase)) {
      image_->CopyRows(input, args.shared, begin, end);
      return Status();
    }
    int64_t first = 0;
    for (const Phase& p : phases_) {
      const int64_t from = std::max(begin, first), to = std::min(end, first + p.gemm.units());
      if (from < to) {
        p.gemm.Run({args, (image_ ? args.shared : input) + p.a_offset, p.weights->data(), nullptr,
                    static_cast<std::byte*>(args.outputs[0]) + p.out_offset},
                   from - first, to - first);
      }
      first += p.gemm.units();
    }
    return Status();
  }

 private:
  bool Converts(int phase) const { return image_ && phase == 0; }

  std::vector<Phase> phases_;
  std::optional<ConvertedImage> image_;
  std::string name_;
  int64_t units_ = 0;
};

// The filter's part for a phase, its taps in the order of the inputs that they meet.
std::vector<std::byte> PhaseWeights(const TransposeConvShape& shape, const std::byte* filter,
                                    const AxisPhase& py, const AxisPhase& px) {
  const auto& [y, x] = shape.window;
  const int64_t channels = shape.channels_in;
  std::vector<std::byte> weights(shape.channels_out * py.taps * px.taps * channels);
  std::byte* to = weights.data();
  for (int32_t o = 0; o < shape.channels_out; ++o) {
    for (int32_t ty = py.taps - 1; ty >= 0; --ty) {
      for (int32_t tx = px.taps - 1; tx >= 0; --tx) {
        const int64_t ky = py.remainder + ty * y.stride, kx = px.remainder + tx * x.stride;
        std::memcpy(to, filter + ((o * y.filter + ky) * x.filter + kx) * channels, channels);
        to += channels;
      }
    }
  }
  return weights;
}

class Builder {
 public:
  Builder(const OpDescription& op, const BuildContext& context) : op_(op), context_(context) {}

  Result<std::unique_ptr<Kernel>> Build() {
    FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op_, kInputs));
    FUSELITE_ASSIGN_OR_RETURN(shape_, kernels::ResolveTransposeConv(op_));
    const auto& params = op_.params.as<TransposeConvParams>();
    FUSELITE_ASSIGN_OR_RETURN(
        tail_, kernels::MakeQuantizedTail(op_, params.activation, params.quantized_bias_type,
                                          kInputs, shape_.channels_out));
    const auto& [y, x] = shape_.window;
    if (y.filter < y.stride || x.filter < x.stride) {
      return Unsupported("a filter narrower than the stride has no emitter");
    }
    kernels::Window padded;
    padded.y = PaddedAxis(y);
    padded.x = PaddedAxis(x);
    image_ =
        ImageFor(in(), padded, shape_.batch, shape_.channels_in, shape_.channels_in, context_.isa);
    std::vector<Phase> phases;
    for (int32_t ry = 0; ry < y.stride; ++ry) {
      for (int32_t rx = 0; rx < x.stride; ++rx) {
        Phase phase{.y = PhaseOf(y, ry), .x = PhaseOf(x, rx), .gemm = {}, .weights = {}};
        if (phase.y.outputs == 0 || phase.x.outputs == 0) continue;
        FUSELITE_RETURN_IF_ERROR(BuildPhase(phase));
        phases.push_back(std::move(phase));
      }
    }
    if (phases.empty()) return Unsupported("nothing is emitted for an empty output");
    return std::unique_ptr<Kernel>(new TransposeConvS8Kernel(std::move(phases), image_));
  }

 private:
  const TensorInfo& in() const { return op_.inputs[kInputs.x]; }

  GemmS8Problem Problem(Phase& phase) const {
    const auto& [y, x] = shape_.window;
    const int64_t channels = shape_.channels_in, out_pitch = op_.outputs[0].pitch();
    const int64_t pixel = image_ ? image_->pixel_bytes() : in().pitch();
    const int64_t row_bytes = image_ ? image_->row_bytes() : pixel * x.output;
    GemmS8Problem problem = ProblemOf(op_, shape_.channels_out, tail_, kInputs);
    problem.name = "transpose_conv";
    problem.flips = HasDotProduct(context_.isa) && !image_ && in().type == DataType::kInt8;
    problem.depth.outer = phase.y.taps;
    problem.depth.outer_step = row_bytes;
    if (image_ || pixel == channels) {
      problem.depth.runs = {{0, phase.x.taps * channels}};
    } else {
      for (int32_t t = 0; t < phase.x.taps; ++t) {
        problem.depth.runs.push_back({t * pixel, channels});
      }
    }
    problem.a_step = pixel;
    problem.line_rows = phase.x.outputs;
    problem.lines_per_image = phase.y.outputs;
    problem.images = shape_.batch;
    problem.line_step = row_bytes;
    problem.image_step = image_ ? image_->image_bytes() : row_bytes * y.output;
    problem.out_pitch = x.stride * out_pitch;
    problem.out_line_pitch = int64_t{y.stride} * x.input * out_pitch;
    problem.out_image_pitch = int64_t{y.input} * x.input * out_pitch;
    phase.a_offset = phase.y.start * row_bytes + phase.x.start * pixel;
    phase.out_offset = (int64_t{phase.y.first} * x.input + phase.x.first) * out_pitch;
    return problem;
  }

  Status BuildPhase(Phase& phase) const {
    FUSELITE_ASSIGN_OR_RETURN(phase.gemm, GemmS8::Build(Problem(phase), context_));
    if (phase.gemm.has_rest() || phase.gemm.corrects()) {
      return Unsupported("this requantization, tail or zero point of weights has no emitter");
    }
    const TensorInfo& filter = op_.inputs[kInputs.weights];
    const bool biased = op_.has_input(kInputs.bias);
    const AlignedConstant bias(biased ? op_.inputs[kInputs.bias] : TensorInfo());
    const PackRequest request{
        filter.data,
        filter.bytes(),
        bias.source(),
        bias.bytes(),
        phase.gemm.layout() + internal::Join(" phase ", phase.y.remainder, '/',
                                             shape_.window.y.stride, ' ', phase.x.remainder, '/',
                                             shape_.window.x.stride),
        phase.gemm.packed_bytes()};
    const auto pack = [&](std::byte* to) {
      const std::vector<std::byte> weights =
          PhaseWeights(shape_, static_cast<const std::byte*>(filter.data), phase.y, phase.x);
      const auto depth = static_cast<int64_t>(weights.size()) / shape_.channels_out;
      phase.gemm.Pack({weights.data(), 1, depth, bias.as<int32_t>()}, to, 0, phase.gemm.panels());
    };
    FUSELITE_ASSIGN_OR_RETURN(phase.weights, context_.Pack(request, pack));
    return Status();
  }

  const OpDescription& op_;
  const BuildContext& context_;
  TransposeConvShape shape_;
  QuantizedTail tail_;
  std::optional<ConvertedImage> image_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTransposeConvInt8(const OpDescription& op,
                                                       const BuildContext& context) {
  return Builder(op, context).Build();
}

}  // namespace fuselite::jit
