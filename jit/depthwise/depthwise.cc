#include "jit/depthwise/depthwise.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "jit/depthwise/depthwise_emitter.h"
#include "jit/product/float_operands.h"
#include "jit/product/product_f32.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/line_kernel.h"
#include "kernels/depthwise_conv2d/parted_lines.h"
#include "kernels/rows/along_one_line.h"
#include "kernels/widened.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::jit {
namespace {

using kernels::Activation;
using kernels::Conv2DParams;
using kernels::Conv2DShape;
using kernels::DepthwiseConv2DParams;
using kernels::DepthwiseConv2DShape;
using kernels::KernelPlan;
using kernels::LineConvolution;
using kernels::OpDescription;

constexpr int64_t kFloat = sizeof(float), kBf16 = sizeof(uint16_t);

// Output `o` sums over the inputs [o / group_out * group_in, + group_in).
struct FloatLayer {
  kernels::Window window;
  int32_t batch = 0, channels_out = 0;
  int32_t group_in = 1, group_out = 1;
  bool outputs_first = false;  // filters: [out][taps][group_in], else [taps][out]
  Activation activation = Activation::kNone;

  int64_t pixels_out() const { return int64_t{batch} * window.y.output * window.x.output; }
  // Whether an output's inputs are other channels than its own.
  bool gathers() const { return group_in > 1 || group_out > 1; }
  int32_t first_input(int64_t output) const {
    return static_cast<int32_t>(output / group_out * group_in);
  }
  int64_t filter_at(int64_t output, int32_t tap, int32_t input) const {
    return outputs_first ? (output * window.taps() + tap) * group_in + input
                         : tap * int64_t{channels_out} + output;
  }
};

// Lines are groups of rows of output pixels (DepthwiseTile), blocks vectors.
class FloatLines final : public LineConvolution {
 public:
  // `tail`, but for the part that `spec` has.
  FloatLines(const FloatLayer& layer, DepthwiseSpec spec, const DividedTail& tail)
      : layer_(layer),
        spec_(std::move(spec)),
        rest_(tail.RestOnFloats(spec_.isa)),
        isa_(spec_.isa),
        blocks_(CeilDiv(layer_.channels_out, isa_.lanes())) {
    const auto& y = layer_.window.y;
    const std::vector<RowTile> patterns = RowPatterns(spec_);
    for (int32_t row = 0; row < y.output; row += spec_.tile.rows) {
      const auto at = std::ranges::find(patterns, RowsAt(spec_, row));
      entry_of_line_.push_back(static_cast<int>(at - patterns.begin()));
    }
  }

  std::string name() const override {
    const auto& [y, x] = layer_.window;
    const std::string rows = spec_.tile.rows > 1 ? internal::Join(spec_.tile.rows, 'x') : "";
    const std::string inputs = layer_.group_in > 1 ? internal::Join('x', layer_.group_in) : "";
    return internal::Join(layer_.group_in > 1 ? "grouped" : "depthwise", ' ', types(), ' ',
                          y.filter, 'x', x.filter, inputs, ' ', rows, spec_.tile.columns, 'x',
                          isa_.lanes(), ' ', isa_.name(), " jit") +
           kernels::TailApart(rest_.why);
  }
  int64_t rows() const override { return spec_.tile.rows; }
  int64_t blocks() const override { return blocks_; }
  int64_t first_channel(int64_t block) const override {
    return std::min<int64_t>(block * isa_.lanes(), layer_.channels_out);
  }
  Work work() const override {
    constexpr double kVectorsInTime = 4e3;
    return {1.0 * spec_.tile.rows * layer_.window.x.output * layer_.window.taps() * spec_.inputs(),
            kVectorsInTime};
  }
  const kernels::TailRest& rest() const override { return rest_; }

  size_t packed_bytes() const override {
    return static_cast<size_t>(blocks_ * spec_.block_bytes());
  }
  std::string layout() const override {
    return internal::Join("depthwise f32 ", layer_.window.taps(), 'x', isa_.lanes(), " g",
                          layer_.group_in, '.', layer_.group_out, '.', layer_.outputs_first);
  }
  void Pack(const void* filter, const void* bias, std::byte* to) const override;

  Result<std::shared_ptr<const LineConvolution>> Emit(const std::string& name) const override {
    auto emitted = std::make_shared<FloatLines>(*this);
    FUSELITE_ASSIGN_OR_RETURN(emitted->code_, EmitDepthwise(spec_, name));
    return std::shared_ptr<const LineConvolution>(std::move(emitted));
  }
  void Run(const kernels::LineRun& run) const override;

 private:
  std::string types() const {
    const auto type = [](bool bf16) { return bf16 ? DataType::kBFloat16 : DataType::kFloat32; };
    return kernels::FloatsInMemory(type(spec_.bf16_in), type(spec_.bf16_out));
  }
  void PackGather(int64_t channel, int64_t used, std::byte* to) const;

  FloatLayer layer_;
  DepthwiseSpec spec_;
  kernels::TailRest rest_;
  VectorIsa isa_;
  int64_t blocks_;
  std::vector<int> entry_of_line_;  // of an image
  SharedCode code_;
};

// As DepthwiseArgs says; lanes beyond the channels are zero.
void FloatLines::Pack(const void* filter, const void* bias, std::byte* to) const {
  std::memset(to, 0, packed_bytes());
  for (int64_t c = 0; c < layer_.channels_out; c += isa_.lanes(), to += spec_.block_bytes()) {
    const int64_t used = std::min<int64_t>(isa_.lanes(), layer_.channels_out - c);
    if (bias != nullptr) std::memcpy(to, static_cast<const float*>(bias) + c, used * kFloat);
    if (layer_.gathers()) PackGather(c, used, to);
    auto* weights = reinterpret_cast<float*>(to + spec_.header_bytes());
    for (int32_t tap = 0; tap < layer_.window.taps(); ++tap) {
      for (int32_t i = 0; i < layer_.group_in; ++i, weights += isa_.lanes()) {
        const float* const first = static_cast<const float*>(filter) + layer_.filter_at(c, tap, i);
        const int64_t step = layer_.filter_at(c + 1, tap, i) - layer_.filter_at(c, tap, i);
        if (step == 1) {
          std::memcpy(weights, first, used * kFloat);
          continue;
        }
        for (int64_t lane = 0; lane < used; ++lane) weights[lane] = first[lane * step];
      }
    }
  }
}

// Where the inputs of channels [channel, + used) are.
void FloatLines::PackGather(int64_t channel, int64_t used, std::byte* to) const {
  auto* const indices = reinterpret_cast<int32_t*>(to + isa_.bytes);
  auto* const mask = indices + isa_.lanes();
  const int32_t first = layer_.first_input(channel);
  for (int64_t lane = 0; lane < used; ++lane) {
    indices[lane] = layer_.first_input(channel + lane) - first;
  }
  std::fill_n(mask, indices[used - 1] + 1, -1);
  const int64_t bytes = first * kFloat;
  std::memcpy(to + int64_t{3} * isa_.bytes, &bytes, sizeof(bytes));
}

void FloatLines::Run(const kernels::LineRun& run) const {
  const auto& [window_y, window_x] = layer_.window;
  const bool partial = spec_.partial_lanes != 0 && run.last_block == blocks_;
  const int32_t rows = spec_.tile.rows;
  int64_t pixel = run.pixel;
  std::byte* out = run.out;
  for (int64_t i = 0; i < run.lines; ++i) {
    const int32_t y = run.y + static_cast<int32_t>(i) * rows;
    const int64_t first_pixel = int64_t{window_y.start(y)} * window_x.input - window_x.before;
    DepthwiseArgs call;  // operands that the tail does not have are left alone
    call.in = run.image + first_pixel * spec_.pixel_bytes +
              (layer_.gathers() ? 0 : run.channel * (spec_.bf16_in ? kBf16 : kFloat));
    call.weights = run.packed + run.first_block * spec_.block_bytes();
    call.out = out;
    call.blocks = run.last_block - run.first_block - partial;
    call.partial = partial;
    BindTailOperands(spec_.tail, run.inputs, pixel, run.channel, &call.operands);
    code_->entry<DepthwiseFunction>(entry_of_line_[y / rows])(&call);
    pixel += rows * window_x.output;
    out += rows * window_x.output * spec_.out_pixel_bytes;
  }
}

Status CheckFloatOperands(const OpDescription& op, const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckFloats(op, op.inputs[0], context));
  if (op.inputs[1].type == DataType::kFloat32) return Status();
  return Unsupported("takes weights of float32, not ", DataTypeName(op.inputs[1].type));
}

Result<KernelPlan> PlanLayer(const OpDescription& op, const FloatLayer& layer,
                             const kernels::PlanContext& context) {
  if (layer.pixels_out() == 0) return Unsupported("nothing is emitted for an empty output");
  const int64_t line = layer.window.x.output;
  FUSELITE_ASSIGN_OR_RETURN(DividedTail tail, DivideFloatTail(op, layer.activation, line));
  const Result<DividedTail> of_image =
      DivideFloatTail(op, layer.activation, line * layer.window.y.output);
  if (layer.gathers() && kernels::HasBFloat16Values(op)) {
    return Unsupported("groups of channels of bfloat16 are not gathered");
  }
  const bool lines_follow =
      of_image.ok() && of_image->rest.stages.size() == tail.rest.stages.size();
  DepthwiseSpec spec{.isa = context.isa,
                     .window = layer.window,
                     .tile = {},
                     .pixel_bytes = op.inputs[0].pitch() * BitWidth(op.inputs[0].type) / 8,
                     .out_pixel_bytes = op.outputs[0].pitch() * BitWidth(op.outputs[0].type) / 8,
                     .bf16_in = op.inputs[0].type == DataType::kBFloat16,
                     .bf16_out = op.outputs[0].type == DataType::kBFloat16,
                     .partial_lanes = layer.channels_out % VectorIsa(context.isa).lanes(),
                     .gathered = layer.gathers() ? layer.group_in : 0,
                     .tail = std::move(tail.emitted)};
  const auto plan =
      [&](const kernels::Window& window) -> Result<std::shared_ptr<const LineConvolution>> {
    FloatLayer part = layer;
    part.window = spec.window = window;
    spec.tile = ChooseDepthwiseTile(window, context.isa, lines_follow ? 2 : 1, layer.gathers());
    FUSELITE_RETURN_IF_ERROR(CheckDepthwise(spec));
    return std::shared_ptr<const LineConvolution>(
        std::make_shared<const FloatLines>(part, spec, tail));
  };
  const auto& [y, x] = layer.window;
  const int64_t pixel = spec.pixel_bytes, row = pixel * x.input;
  FUSELITE_ASSIGN_OR_RETURN(
      auto lines, kernels::PlanInParts(layer.window, layer.batch, pixel, context.threads, plan));
  return PlanLineKernel(
      op, {layer.batch, y.output, x.output, op.outputs[0].pitch()},
      std::make_shared<const kernels::InputSource>(
          0, kernels::ImageMemory{.pixel = pixel, .row = row, .image = row * y.input}),
      std::move(lines), context);
}

// Several groups of few outputs, such that the inputs of a vector of outputs fit into a vector.
bool HasSmallGroups(const Conv2DShape& shape, const VectorIsa& isa) {
  if (shape.groups == 1 || shape.group_out >= isa.lanes()) return false;
  // Vectors begin in their first group at multiples of what lanes and outputs have in common.
  const int32_t furthest = shape.group_out - std::gcd(isa.lanes(), shape.group_out);
  const int32_t more_groups = (furthest + isa.lanes() - 1) / shape.group_out;
  return more_groups * shape.group_in < isa.lanes();
}

}  // namespace

Result<KernelPlan> PlanDepthwiseConv2D(const OpDescription& op,
                                       const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckFloatOperands(op, context));
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, kernels::ResolveDepthwiseConv2D(op));
  if (shape.channels_in == 1 && shape.multiplier > 1) return PlanProductF32(op, context);
  return PlanLayer(op,
                   {.window = kernels::AlongOneLine(shape.window),
                    .batch = shape.batch,
                    .channels_out = shape.channels_out,
                    .group_out = shape.multiplier,
                    .activation = op.params.as<DepthwiseConv2DParams>().activation},
                   context);
}

Result<KernelPlan> PlanConv2D(const OpDescription& op, const kernels::PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  if (CheckFloatOperands(op, context).ok() && HasSmallGroups(shape, VectorIsa(context.isa))) {
    const FloatLayer layer{.window = kernels::AlongOneLine(shape.window),
                           .batch = shape.batch,
                           .channels_out = shape.channels_out,
                           .group_in = shape.group_in,
                           .group_out = shape.group_out,
                           .outputs_first = true,
                           .activation = op.params.as<Conv2DParams>().activation};
    Result<KernelPlan> plan = PlanLayer(op, layer, context);
    if (plan.ok()) return plan;
  }
  return PlanProductF32(op, context);
}

}  // namespace fuselite::jit
