#include "jit/depthwise/depthwise.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "jit/depthwise/depthwise_emitter.h"
#include "jit/product/product_f32.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/line_units.h"
#include "kernels/product/constant.h"
#include "kernels/tail/apply.h"
#include "kernels/tail/rest.h"

namespace fuselite::jit {
namespace {

using kernels::Activation;
using kernels::BuildContext;
using kernels::Conv2DParams;
using kernels::Conv2DShape;
using kernels::DepthwiseConv2DParams;
using kernels::DepthwiseConv2DShape;
using kernels::KernelPlan;
using kernels::OpDescription;
using kernels::Tail;

constexpr int64_t kFloat = sizeof(float);

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

// The lines of its units are groups of rows of output pixels (DepthwiseTile), the blocks vectors.
class DepthwiseKernel final : public Kernel {
 public:
  // `tail`, but for the part that `spec` has.
  DepthwiseKernel(const FloatLayer& layer, DepthwiseSpec spec, DividedTail tail, int threads)
      : layer_(layer), spec_(std::move(spec)), rest_(std::move(tail.rest)), isa_(spec_.isa) {
    const auto& y = layer_.window.y;
    const std::vector<RowTile> patterns = RowPatterns(spec_);
    for (int32_t row = 0; row < y.output; row += spec_.tile.rows) {
      const auto at = std::ranges::find(patterns, RowsAt(spec_, row));
      entry_of_rows_.push_back(static_cast<int>(at - patterns.begin()));
    }
    blocks_ = (layer_.channels_out + isa_.lanes() - 1) / isa_.lanes();
    units_ = kernels::LineUnits(row_groups(), blocks_, threads);
    const std::string rows = spec_.tile.rows > 1 ? internal::Join(spec_.tile.rows, 'x') : "";
    const std::string inputs = layer_.group_in > 1 ? internal::Join('x', layer_.group_in) : "";
    name_ = internal::Join(layer_.group_in > 1 ? "grouped" : "depthwise", " f32 ", y.filter, 'x',
                           layer_.window.x.filter, inputs, ' ', rows, spec_.tile.columns, 'x',
                           isa_.lanes(), ' ', isa_.name(), " jit") +
            kernels::TailApart(tail.why_rest);
    if (!rest_.empty()) apply_rest_ = kernels::ApplyTail(spec_.isa);
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return units_.count(); }
  int64_t grain(int) const override {
    constexpr double kVectorsInTime = 4e3;
    return units_.Grain(
        1.0 * spec_.tile.rows * layer_.window.x.output * layer_.window.taps() * spec_.inputs(),
        kVectorsInTime);
  }

  int64_t packed_bytes() const { return blocks_ * spec_.block_bytes(); }
  std::string layout() const {
    return internal::Join("depthwise f32 ", layer_.window.taps(), 'x', isa_.lanes(), " g",
                          layer_.group_in, '.', layer_.group_out, '.', layer_.outputs_first);
  }
  // As DepthwiseArgs says; lanes beyond the channels are zero.
  void Pack(const float* filter, const float* bias, std::byte* to) const {
    std::memset(to, 0, packed_bytes());
    for (int64_t c = 0; c < layer_.channels_out; c += isa_.lanes(), to += spec_.block_bytes()) {
      const int64_t used = std::min<int64_t>(isa_.lanes(), layer_.channels_out - c);
      if (bias != nullptr) std::memcpy(to, bias + c, used * kFloat);
      if (layer_.gathers()) PackGather(c, used, to);
      auto* weights = reinterpret_cast<float*>(to + spec_.header_bytes());
      for (int32_t tap = 0; tap < layer_.window.taps(); ++tap) {
        for (int32_t i = 0; i < layer_.group_in; ++i, weights += isa_.lanes()) {
          for (int64_t lane = 0; lane < used; ++lane) {
            weights[lane] = filter[layer_.filter_at(c + lane, tap, i)];
          }
        }
      }
    }
  }
  Status Build(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(code_, EmitDepthwise(spec_, name_));
    const TensorInfo& filter = op.inputs[1];
    const TensorInfo bias = op.has_input(2) ? op.inputs[2] : TensorInfo();
    const PackRequest request{filter.data,
                              filter.bytes(),
                              bias.absent() ? nullptr : bias.data,
                              bias.absent() ? 0 : bias.bytes(),
                              layout(),
                              static_cast<size_t>(packed_bytes())};
    FUSELITE_ASSIGN_OR_RETURN(weights_, context.Pack(request, [&](std::byte* to) {
      const kernels::ReadableConstant weights(filter), biases(bias);
      Pack(weights.as<float>(), biases.as<float>(), to);
    }));
    return Status();
  }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) RunUnit(args, units_.At(unit));
    return Status();
  }

 private:
  // Where the inputs of channels [channel, + used) are.
  void PackGather(int64_t channel, int64_t used, std::byte* to) const {
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

  // Those of all images.
  int64_t row_groups() const { return layer_.batch * static_cast<int64_t>(entry_of_rows_.size()); }

  void RunUnit(const KernelArgs& args, const kernels::LineUnits::Unit& unit) const {
    const auto& [y, x] = layer_.window;
    const auto groups_per_image = static_cast<int64_t>(entry_of_rows_.size());
    const int64_t image = unit.line / groups_per_image, at = unit.line % groups_per_image;
    const int64_t oy = at * spec_.tile.rows, row = image * y.output + oy;
    const int64_t rows = std::min<int64_t>(spec_.tile.rows, y.output - oy);
    const auto [line, first_block, last_block] = unit;
    const bool partial = spec_.partial_lanes != 0 && last_block == blocks_;
    const int64_t channel = first_block * isa_.lanes();
    const int64_t first_pixel =
        (image * y.input + y.start(static_cast<int32_t>(oy))) * x.input - x.before;
    DepthwiseArgs call{.in = static_cast<const std::byte*>(args.inputs[0]) +
                             first_pixel * spec_.pixel_bytes +
                             (layer_.gathers() ? 0 : channel * kFloat),
                       .weights = weights_->data() + first_block * spec_.block_bytes(),
                       .out = static_cast<std::byte*>(args.outputs[0]) +
                              row * x.output * spec_.out_pixel_bytes + channel * kFloat,
                       .blocks = last_block - first_block - partial,
                       .partial = partial,
                       .operands = {}};
    std::byte* const out = call.out;
    BindTailOperands(spec_.tail, args.inputs, row * x.output, channel, &call.operands);
    code_->entry<DepthwiseFunction>(entry_of_rows_[at])(&call);
    if (apply_rest_ == nullptr) return;
    const int64_t pitch = spec_.out_pixel_bytes / kFloat;
    const int64_t last_channel = std::min<int64_t>(last_block * isa_.lanes(), layer_.channels_out);
    apply_rest_(rest_, args.inputs,
                {.source = out,
                 .source_pitch = pitch,
                 .source_type = DataType::kFloat32,
                 .destination = out,
                 .destination_pitch = pitch,
                 .destination_type = DataType::kFloat32,
                 .row = row * x.output,
                 .rows = rows * x.output,
                 .channel = channel,
                 .channels = last_channel - channel});
  }

  FloatLayer layer_;
  DepthwiseSpec spec_;
  Tail rest_;  // stages that are not emitted
  kernels::ApplyTailFunction* apply_rest_ = nullptr;
  VectorIsa isa_;
  std::string name_;
  std::vector<int> entry_of_rows_;
  int64_t blocks_ = 0;
  kernels::LineUnits units_;
  SharedCode code_;
  PackedWeights weights_;
};

Status CheckFloatOperands(const OpDescription& op, Isa isa) {
  if (!VectorIsa::Supported(isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(isa), ")");
  }
  for (const DataType type : {op.inputs[0].type, op.inputs[1].type, op.outputs[0].type}) {
    if (type != DataType::kFloat32) {
      return Unsupported("only float32 is emitted, not ", DataTypeName(type));
    }
  }
  if (!op.inputs[1].constant() || (op.has_input(2) && !op.inputs[2].constant())) {
    return Unsupported("filters or biases known only at run time have no emitter");
  }
  return Status();
}

Result<KernelPlan> PlanLayer(const OpDescription& op, const FloatLayer& layer,
                             const kernels::PlanContext& context) {
  if (layer.pixels_out() == 0) return Unsupported("nothing is emitted for an empty output");
  const int64_t line = layer.window.x.output;
  FUSELITE_ASSIGN_OR_RETURN(DividedTail tail, DivideFloatTail(op, layer.activation, line));
  FUSELITE_ASSIGN_OR_RETURN(const DividedTail of_image,
                            DivideFloatTail(op, layer.activation, line * layer.window.y.output));
  const bool lines_follow = of_image.rest.stages.size() == tail.rest.stages.size();
  const VectorIsa isa(context.isa);
  DepthwiseSpec spec{
      .isa = context.isa,
      .window = layer.window,
      .tile = ChooseDepthwiseTile(layer.window, context.isa, lines_follow ? 2 : 1, layer.gathers()),
      .pixel_bytes = op.inputs[0].pitch() * kFloat,
      .out_pixel_bytes = op.outputs[0].pitch() * kFloat,
      .partial_lanes = layer.channels_out % isa.lanes(),
      .gathered = layer.gathers() ? layer.group_in : 0,
      .tail = std::move(tail.emitted)};
  FUSELITE_RETURN_IF_ERROR(CheckDepthwise(spec));
  return KernelPlan::Of(DepthwiseKernel(layer, std::move(spec), std::move(tail), context.threads),
                        [](DepthwiseKernel& kernel, const OpDescription& described,
                           const BuildContext& build) { return kernel.Build(described, build); });
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
  FUSELITE_RETURN_IF_ERROR(CheckFloatOperands(op, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, kernels::ResolveDepthwiseConv2D(op));
  if (shape.channels_in == 1 && shape.multiplier > 1) return PlanProductF32(op, context);
  return PlanLayer(op,
                   {.window = AlongTheRow(shape.window),
                    .batch = shape.batch,
                    .channels_out = shape.channels_out,
                    .group_out = shape.multiplier,
                    .activation = op.params.as<DepthwiseConv2DParams>().activation},
                   context);
}

Result<KernelPlan> PlanConv2D(const OpDescription& op, const kernels::PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, kernels::ResolveConv2D(op));
  if (CheckFloatOperands(op, context.isa).ok() && HasSmallGroups(shape, VectorIsa(context.isa))) {
    const FloatLayer layer{.window = AlongTheRow(shape.window),
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
