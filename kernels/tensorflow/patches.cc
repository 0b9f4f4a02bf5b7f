#include "kernels/tensorflow/patches.h"

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/tensorflow/node_def.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow Same(DataType type) { return {{type}, type}; }
constexpr TypeRow kTypes[] = {Same(DataType::kFloat32), Same(DataType::kFloat16),
                              Same(DataType::kInt8),    Same(DataType::kUInt8),
                              Same(DataType::kInt16),   Same(DataType::kInt32),
                              Same(DataType::kInt64)};

Status InferPatches(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() != 4) return InvalidArgument("input ", in.shape, " must have 4 dimensions");
  FUSELITE_ASSIGN_OR_RETURN(const Window window, ResolvePatches(op));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape({in.shape[0], window.y.output, window.x.output,
                                       int64_t{window.taps()} * in.shape[3]}));
  return SetOutput(op, 0, in.type, shape);
}

// Unit: the windows of one row of the output's pixels.
class Patches {
 public:
  Patches(const OpDescription& op, const Window& window)
      : window_(window), pixel_(op.inputs[0].shape[3] * BitWidth(op.inputs[0].type) / 8) {}

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto& [y, x] = window_;
    for (int64_t line = begin; line < end; ++line) {
      const auto* const image = static_cast<const std::byte*>(args.inputs[0]) +
                                line / y.output * y.input * x.input * pixel_;
      auto* out =
          static_cast<std::byte*>(args.outputs[0]) + line * x.output * window_.taps() * pixel_;
      const int32_t top = y.start(static_cast<int32_t>(line % y.output));
      for (int32_t column = 0; column < x.output; ++column) {
        for (int32_t k = 0; k < y.filter; ++k, out += x.filter * pixel_) {
          const int32_t row = top + k * y.dilation;
          const bool inside = row >= 0 && row < y.input;
          CopyTaps(inside ? image + int64_t{row} * x.input * pixel_ : nullptr, x.start(column),
                   out);
        }
      }
    }
  }

 private:
  // One row of taps, of an image's row; null: of the padding.
  void CopyTaps(const std::byte* row, int32_t start, std::byte* out) const {
    const WindowAxis& x = window_.x;
    const int32_t first = row == nullptr ? x.filter : x.first_tap(start);
    const int32_t last = row == nullptr ? x.filter : std::max(x.last_tap(start), first);
    std::memset(out, 0, first * pixel_);
    std::memset(out + last * pixel_, 0, (x.filter - last) * pixel_);
    if (first == last) return;
    const std::byte* const from = row + (start + int64_t{first} * x.dilation) * pixel_;
    if (x.dilation == 1) {
      std::memcpy(out + first * pixel_, from, (last - first) * pixel_);
      return;
    }
    for (int32_t k = first; k < last; ++k) {
      std::memcpy(out + k * pixel_, from + int64_t{k - first} * x.dilation * pixel_, pixel_);
    }
  }

  Window window_;
  int64_t pixel_;  // bytes
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("patches take no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_ASSIGN_OR_RETURN(const Window window, ResolvePatches(op));
  const Shape& out = op.outputs[0].shape;
  const int64_t lines = op.outputs[0].elements() == 0 ? 0 : int64_t{out[0]} * out[1];
  return MakeKernel("extract_image_patches",
                    {.units = lines, .grain = GrainFor(int64_t{out[2]} * out[3])},
                    Patches(op, window));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

// Reads TensorFlow's attributes `ksizes`, `strides`, `rates` and `padding`.
Status ReadPatchesOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const NodeDef node, NodeDef::Read(options));
  auto& to = *static_cast<PatchesParams*>(params);
  FUSELITE_RETURN_IF_ERROR(ReadSpatial(node, "ksizes", to.filter));
  FUSELITE_RETURN_IF_ERROR(ReadSpatial(node, "strides", to.stride));
  FUSELITE_RETURN_IF_ERROR(ReadSpatial(node, "rates", to.dilation));
  FUSELITE_ASSIGN_OR_RETURN(to.padding, ReadPadding(node));
  return Status();
}

}  // namespace

Result<Window> ResolvePatches(const OpDescription& op) {
  const auto& p = op.params.as<PatchesParams>();
  return ResolveWindow({.input_h = op.inputs[0].shape[1],
                        .input_w = op.inputs[0].shape[2],
                        .filter_h = p.filter[0],
                        .filter_w = p.filter[1],
                        .stride_h = p.stride[0],
                        .stride_w = p.stride[1],
                        .dilation_h = p.dilation[0],
                        .dilation_w = p.dilation[1],
                        .padding = p.padding});
}

const OperatorDef& FlexExtractImagePatchesOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FlexExtractImagePatches",
      .read_custom = ReadPatchesOptions,
      .params_bytes = sizeof(PatchesParams),
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferPatches,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.outputs[0].elements(); },
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
