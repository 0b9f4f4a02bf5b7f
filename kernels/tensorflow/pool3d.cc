#include "kernels/tensorflow/pool3d.h"

#include <algorithm>
#include <limits>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/tensorflow/node_def.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kFloat32}, DataType::kFloat32}};

Status InferPool3D(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  if (in.rank() != 5) return InvalidArgument("input ", in, " must have 5 dimensions");
  FUSELITE_ASSIGN_OR_RETURN(const Window3D window, ResolvePool3D(op));
  const auto& [depth, y, x] = window.axes;
  return SetOutput(op, 0, DataType::kFloat32,
                   Shape({in[0], depth.output, y.output, x.output, in[4]}));
}

// The positions of the input that a window covers.
struct Range {
  Range(const WindowAxis& axis, int64_t position)
      : begin(std::max(axis.start(static_cast<int32_t>(position)), 0)),
        end(std::min(axis.start(static_cast<int32_t>(position)) + axis.filter, axis.input)) {}
  int64_t begin, end;
};

// Unit: one element of the output's volume, all of its channels.
class Pool3D {
 public:
  Pool3D(const OpDescription& op, const Window3D& window)
      : window_(window), channels_(op.inputs[0].shape[4]), maxima_(TakesMaxima(*op.op)) {}

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto& [z, y, x] = window_.axes;
    for (int64_t unit = begin; unit < end; ++unit) {
      auto* const out = static_cast<float*>(args.outputs[0]) + unit * channels_;
      const int64_t line = unit / x.output, plane = line / y.output;
      const Range depth(z, plane % z.output);
      const Range rows(y, line % y.output), columns(x, unit % x.output);
      const int64_t volume = plane / z.output * z.input;
      std::fill_n(out, channels_, maxima_ ? -std::numeric_limits<float>::infinity() : 0.0f);
      for (int64_t d = depth.begin; d < depth.end; ++d) {
        for (int64_t h = rows.begin; h < rows.end; ++h) {
          const int64_t row = ((volume + d) * y.input + h) * x.input;
          for (int64_t w = columns.begin; w < columns.end; ++w) {
            Take(static_cast<const float*>(args.inputs[0]) + (row + w) * channels_, out);
          }
        }
      }
      if (maxima_) continue;
      const auto taps = static_cast<float>((depth.end - depth.begin) * (rows.end - rows.begin) *
                                           (columns.end - columns.begin));
      for (int64_t c = 0; c < channels_; ++c) out[c] /= taps;
    }
  }

 private:
  void Take(const float* x, float* out) const {
    if (maxima_) {
      for (int64_t c = 0; c < channels_; ++c) out[c] = std::max(out[c], x[c]);
    } else {
      for (int64_t c = 0; c < channels_; ++c) out[c] += x[c];
    }
  }

  Window3D window_;
  int64_t channels_;
  bool maxima_;
};

int64_t Taps(const OpDescription& op) {
  const auto& p = op.params.as<Pool3DParams>();
  return int64_t{p.filter[0]} * p.filter[1] * p.filter[2];
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("pools of volumes take no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_ASSIGN_OR_RETURN(const Window3D window, ResolvePool3D(op));
  const int64_t channels = op.inputs[0].shape[4];
  const int64_t units = channels == 0 ? 0 : op.outputs[0].elements() / channels;
  return MakeKernel(TakesMaxima(*op.op) ? "max_pool3d f32 reference" : "avg_pool3d f32 reference",
                    {.units = units, .grain = GrainFor(Taps(op) * channels)}, Pool3D(op, window));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

// Reads TensorFlow's attributes `ksize`, `strides`, `padding` and `data_format`.
Status ReadPool3DOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const NodeDef node, NodeDef::Read(options));
  auto& to = *static_cast<Pool3DParams*>(params);
  FUSELITE_RETURN_IF_ERROR(ReadSpatial(node, "ksize", to.filter));
  FUSELITE_RETURN_IF_ERROR(ReadSpatial(node, "strides", to.stride));
  if (node.Text("data_format").value_or("NDHWC") != "NDHWC") {
    return Unsupported("does not take another order of dimensions than NDHWC");
  }
  FUSELITE_ASSIGN_OR_RETURN(to.padding, ReadPadding(node));
  return Status();
}

constexpr OperatorDef MakePool3D(std::string_view name) {
  OperatorDef def;
  def.name = name;
  def.read_custom = ReadPool3DOptions;
  def.params_bytes = sizeof(Pool3DParams);
  def.types = kTypes;
  def.limits = "rank 5, NDHWC";
  def.infer = InferPool3D;
  def.candidates = kCandidates;
  def.cost = [](const OpDescription& op) {
    return static_cast<double>(op.outputs[0].elements()) * static_cast<double>(Taps(op));
  };
  def.samples = SampleRule::kApart;
  return def;
}

}  // namespace

Result<Window3D> ResolvePool3D(const OpDescription& op) {
  const auto& p = op.params.as<Pool3DParams>();
  const Shape& in = op.inputs[0].shape;
  return ResolveWindow3D({.input = {in[1], in[2], in[3]},
                          .filter = {p.filter[0], p.filter[1], p.filter[2]},
                          .stride = {p.stride[0], p.stride[1], p.stride[2]},
                          .padding = p.padding});
}

bool TakesMaxima(const OperatorDef& op) { return op.name == "FlexMaxPool3D"; }

const OperatorDef& FlexMaxPool3DOperator() {
  static constexpr OperatorDef kDef = MakePool3D("FlexMaxPool3D");
  return kDef;
}
const OperatorDef& FlexAvgPool3DOperator() {
  static constexpr OperatorDef kDef = MakePool3D("FlexAvgPool3D");
  return kDef;
}

}  // namespace fuselite::kernels
