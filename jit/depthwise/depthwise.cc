#include "jit/depthwise/depthwise.h"

#include <algorithm>
#include <cstring>

#include "jit/depthwise/depthwise_emitter.h"
#include "jit/product/product_f32.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/product/constant.h"
#include "kernels/product/tail_rest.h"
#include "kernels/tail/apply.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::DepthwiseConv2DParams;
using kernels::DepthwiseConv2DShape;
using kernels::OpDescription;
using kernels::Tail;

constexpr int64_t kFloat = sizeof(float);

// One unit is a group of rows of output pixels (DepthwiseTile) times a group of channel vectors.
class DepthwiseKernel final : public Kernel {
 public:
  // `tail`, but for the part that `spec` has.
  DepthwiseKernel(const DepthwiseConv2DShape& shape, DepthwiseSpec spec, DividedTail tail,
                  int threads)
      : shape_(shape), spec_(std::move(spec)), rest_(std::move(tail.rest)), isa_(spec_.isa) {
    const auto& y = shape_.window.y;
    const std::vector<RowTile> patterns = RowPatterns(spec_);
    for (int32_t row = 0; row < y.output; row += spec_.tile.rows) {
      const auto at = std::ranges::find(patterns, RowsAt(spec_, row));
      entry_of_rows_.push_back(static_cast<int>(at - patterns.begin()));
    }
    blocks_ = (shape_.channels_out + isa_.lanes() - 1) / isa_.lanes();
    // Rows are shared evenly by few threads when there are many; else their channels are, too.
    const int64_t groups = threads > 1 && row_groups() < 8 * threads ? 4 : 1;
    group_blocks_ = (blocks_ + groups - 1) / groups;
    groups_ = (blocks_ + group_blocks_ - 1) / group_blocks_;
    const std::string rows = spec_.tile.rows > 1 ? internal::Join(spec_.tile.rows, 'x') : "";
    name_ = internal::Join("depthwise f32 ", y.filter, 'x', shape_.window.x.filter, ' ', rows,
                           spec_.tile.columns, 'x', isa_.lanes(), ' ', isa_.name(), " jit") +
            kernels::TailApart(tail.why_rest);
    if (!rest_.empty()) apply_rest_ = kernels::ApplyTail(spec_.isa);
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return row_groups() * groups_; }
  int64_t grain(int) const override {
    // Multiply-adds of vectors: 4000 are about 2 microseconds, ten times a hot wait between steps.
    const double unit =
        1.0 * spec_.tile.rows * shape_.window.x.output * group_blocks_ * shape_.window.taps();
    return std::max<int64_t>(1, static_cast<int64_t>(4e3 / unit));
  }

  int64_t block_bytes() const { return int64_t{1 + shape_.window.taps()} * isa_.bytes; }
  int64_t packed_bytes() const { return blocks_ * block_bytes(); }
  std::string layout() const {
    return internal::Join("depthwise f32 ", shape_.window.taps(), 'x', isa_.lanes());
  }
  // For each vector of channels the bias, then the taps; lanes beyond the channels are zero.
  void Pack(const float* filter, const float* bias, float* to) const {
    const int64_t channels = shape_.channels_out;
    std::memset(to, 0, packed_bytes());
    for (int64_t c = 0; c < channels; c += isa_.lanes()) {
      const int64_t used = std::min<int64_t>(isa_.lanes(), channels - c);
      if (bias != nullptr) std::memcpy(to, bias + c, used * kFloat);
      to += isa_.lanes();
      for (int32_t tap = 0; tap < shape_.window.taps(); ++tap, to += isa_.lanes()) {
        std::memcpy(to, filter + tap * channels + c, used * kFloat);
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
      Pack(weights.as<float>(), biases.as<float>(), reinterpret_cast<float*>(to));
    }));
    return Status();
  }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) RunUnit(args, unit / groups_, unit % groups_);
    return Status();
  }

 private:
  // Those of all images.
  int64_t row_groups() const { return shape_.batch * static_cast<int64_t>(entry_of_rows_.size()); }

  void RunUnit(const KernelArgs& args, int64_t row_group, int64_t group) const {
    const auto& [y, x] = shape_.window;
    const auto groups_per_image = static_cast<int64_t>(entry_of_rows_.size());
    const int64_t image = row_group / groups_per_image, at = row_group % groups_per_image;
    const int64_t oy = at * spec_.tile.rows, row = image * y.output + oy;
    const int64_t rows = std::min<int64_t>(spec_.tile.rows, y.output - oy);
    const int64_t first_block = group * group_blocks_;
    const int64_t last_block = std::min(blocks_, first_block + group_blocks_);
    const bool partial = spec_.partial_lanes != 0 && last_block == blocks_;
    const int64_t channel = first_block * isa_.lanes();
    const int64_t first_pixel =
        (image * y.input + y.start(static_cast<int32_t>(oy))) * x.input - x.before;
    DepthwiseArgs call{.in = static_cast<const std::byte*>(args.inputs[0]) +
                             first_pixel * spec_.pixel_bytes + channel * kFloat,
                       .weights = weights_->data() + first_block * block_bytes(),
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
    const int64_t last_channel = std::min<int64_t>(last_block * isa_.lanes(), shape_.channels_out);
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

  DepthwiseConv2DShape shape_;
  DepthwiseSpec spec_;
  Tail rest_;  // stages that are not emitted
  kernels::ApplyTailFunction* apply_rest_ = nullptr;
  VectorIsa isa_;
  std::string name_;
  std::vector<int> entry_of_rows_;
  int64_t blocks_ = 0, group_blocks_ = 0, groups_ = 0;
  SharedCode code_;
  PackedWeights weights_;
};

}  // namespace

Result<kernels::KernelPlan> PlanDepthwiseConv2D(const OpDescription& op,
                                                const kernels::PlanContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, kernels::ResolveDepthwiseConv2D(op));
  const TensorInfo &in = op.inputs[0], &filter = op.inputs[1];
  for (const DataType type : {in.type, filter.type, op.outputs[0].type}) {
    if (type != DataType::kFloat32) {
      return Unsupported("only float32 is emitted, not ", DataTypeName(type));
    }
  }
  if (shape.channels_in == 1 && shape.multiplier > 1) return PlanProductF32(op, context);
  if (shape.multiplier != 1) return Unsupported("depth multiplier ", shape.multiplier);
  if (!filter.constant() || (op.has_input(2) && !op.inputs[2].constant())) {
    return Unsupported("filters or biases known only at run time have no emitter");
  }
  if (shape.pixels_out() == 0) return Unsupported("nothing is emitted for an empty output");
  const auto activation = op.params.as<DepthwiseConv2DParams>().activation;
  const int64_t line = shape.window.x.output;
  FUSELITE_ASSIGN_OR_RETURN(DividedTail tail, DivideFloatTail(op, activation, line));
  FUSELITE_ASSIGN_OR_RETURN(const DividedTail of_image,
                            DivideFloatTail(op, activation, line * shape.window.y.output));
  const bool lines_follow = of_image.rest.stages.size() == tail.rest.stages.size();
  const VectorIsa isa(context.isa);
  DepthwiseSpec spec{.isa = context.isa,
                     .window = shape.window,
                     .tile = ChooseDepthwiseTile(shape.window, context.isa, lines_follow ? 2 : 1),
                     .pixel_bytes = in.pitch() * kFloat,
                     .out_pixel_bytes = op.outputs[0].pitch() * kFloat,
                     .partial_lanes = shape.channels_out % isa.lanes(),
                     .tail = std::move(tail.emitted)};
  FUSELITE_RETURN_IF_ERROR(CheckDepthwise(spec));
  return kernels::KernelPlan::Of(
      DepthwiseKernel(shape, std::move(spec), std::move(tail), context.threads),
      [](DepthwiseKernel& kernel, const OpDescription& described, const BuildContext& build) {
        return kernel.Build(described, build);
      });
}

}  // namespace fuselite::jit
