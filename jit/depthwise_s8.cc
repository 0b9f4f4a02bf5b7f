#include "jit/depthwise_s8.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "jit/aligned_constant.h"
#include "jit/byte_weights.h"
#include "jit/depthwise_s8_emitter.h"
#include "jit/integer_tail.h"
#include "jit/product_s8.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/gemm/quantized_tail.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::DepthwiseConv2DParams;
using kernels::DepthwiseConv2DShape;
using kernels::OpDescription;
using kernels::QuantizedTail;

// How a convolution is emitted, and what is not.
struct DepthwiseS8Plan {
  DepthwiseConv2DShape shape;
  DepthwiseS8Spec spec;
  std::vector<DepthwiseS8Blocks> blocks;
  DataType type = DataType::kInt8, output_type = DataType::kInt8;
  int32_t weights_zero_point = 0;
  int64_t out_pitch = 0;  // elements
  IntegerTail tail;
};

// One unit is a row of output pixels times a range of the blocks of channels.
class DepthwiseS8Kernel final : public Kernel {
 public:
  DepthwiseS8Kernel(DepthwiseS8Plan plan, Isa isa, int threads)
      : plan_(std::move(plan)), input_row_bytes_(plan_.spec.pixel_bytes * window().x.input) {
    const auto& [y, x] = window();
    for (const DepthwiseS8Blocks& b : plan_.blocks) blocks_ += b.count;
    const int64_t rows = int64_t{shape().batch} * y.output;
    const int64_t groups = threads > 1 && rows < 8 * threads ? std::min<int64_t>(blocks_, 4) : 1;
    group_blocks_ = (blocks_ + groups - 1) / groups;
    groups_ = (blocks_ + group_blocks_ - 1) / group_blocks_;
    name_ = internal::Join("depthwise ", DataTypeName(plan_.type), ' ', y.filter, 'x', x.filter,
                           ' ', DepthwiseS8Tile(spec()), 'x', plan_.blocks[0].channels, ' ',
                           spec().dot ? IsaName(isa) : VectorIsa(isa).name(), " jit");
    if (y.interior_begin() > 0 || y.interior_end() < y.output) {
      padding_ = AlignedBuffer(input_row_bytes_);
      std::memset(padding_.data(), spec().zero_point & 0xFF, input_row_bytes_);
    }
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return int64_t{shape().batch} * window().y.output * groups_; }
  int64_t grain(int) const override {
    const double unit =
        1.0 * window().x.output * group_blocks_ * plan_.blocks[0].channels * (window().taps() + 4);
    // About 2 microseconds, ten times a hot wait between steps.
    return std::max<int64_t>(1, static_cast<int64_t>(1e4 / unit));
  }
  size_t scratch_bytes() const override {
    if (spec().requantization) return 0;
    return static_cast<size_t>(window().x.output * PaddedChannels() * 4);
  }

  int64_t packed_bytes() const {
    int64_t bytes = 0;
    for (const DepthwiseS8Blocks& b : plan_.blocks) bytes += b.count * spec().block_bytes(b.width);
    return bytes;
  }
  std::string layout() const;
  void Pack(const std::byte* filter, const int32_t* bias, std::byte* packed) const;
  const DepthwiseS8Plan& plan() const { return plan_; }
  void SetCode(SharedCode code, PackedWeights weights) {
    code_ = std::move(code);
    weights_ = std::move(weights);
  }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % groups_ * group_blocks_;
      RunRow(args, unit / groups_, first, std::min(blocks_, first + group_blocks_));
    }
    return Status();
  }

 private:
  const DepthwiseConv2DShape& shape() const { return plan_.shape; }
  const DepthwiseS8Spec& spec() const { return plan_.spec; }
  const kernels::Window& window() const { return plan_.shape.window; }
  // Of the sums in scratch, which are stored in whole blocks.
  int64_t PaddedChannels() const {
    int64_t channels = 0;
    for (const auto& b : plan_.blocks) channels += b.count * spec().whole_channels(b.width);
    return channels;
  }

  void PackBlock(const std::byte* filter, const int32_t* bias, const DepthwiseS8Blocks& block,
                 int64_t channel, std::byte* to) const;
  void RunRow(const KernelArgs& args, int64_t row, int64_t first, int64_t last) const;
  void ApplyTail(const KernelArgs& args, int64_t row, int64_t channel, int64_t channels) const;

  DepthwiseS8Plan plan_;
  int64_t input_row_bytes_;
  std::string name_;
  int64_t blocks_ = 0, group_blocks_ = 0, groups_ = 0;
  AlignedBuffer padding_;  // a row of zero points
  SharedCode code_;
  PackedWeights weights_;
};

std::string DepthwiseS8Kernel::layout() const {
  std::string text =
      internal::Join("depthwise s8 ", window().y.filter, 'x', window().x.filter, " c",
                     shape().channels_out, " g", spec().group(), " t", static_cast<int>(plan_.type),
                     " z", spec().zero_point, '.', plan_.weights_zero_point);
  for (const auto& b : plan_.blocks) text += internal::Join(" b", b.width, '.', b.channels);
  if (!spec().requantization) return text + " sums";
  return text + spec().requantization->key() + ConstantsKey(plan_.tail.requantize);
}

void DepthwiseS8Kernel::Pack(const std::byte* filter, const int32_t* bias,
                             std::byte* packed) const {
  std::memset(packed, 0, packed_bytes());
  int64_t channel = 0;
  for (const DepthwiseS8Blocks& block : plan_.blocks) {
    for (int64_t i = 0; i < block.count; ++i) {
      PackBlock(filter, bias, block, channel, packed);
      packed += spec().block_bytes(block.width);
      channel += block.channels;
    }
  }
}

// Weights are w - their zero point; the bias takes off what the activations' zero point (that of
// flipped ones is 128 more) adds to every sum, padding included.
void DepthwiseS8Kernel::PackBlock(const std::byte* filter, const int32_t* bias,
                                  const DepthwiseS8Blocks& block, int64_t channel,
                                  std::byte* to) const {
  const auto& [y, x] = window();
  const bool is_unsigned = plan_.type == DataType::kUInt8;
  const int64_t u0 = spec().zero_point + (spec().dot && !is_unsigned ? 128 : 0);
  const int lanes = block.width / 4, vectors = spec().group();
  const int64_t constants_at =
      int64_t{vectors} * block.width * (1 + x.filter * spec().row_groups());
  for (int v = 0; v < vectors; ++v) {
    std::vector<int64_t> channels(lanes, -1);
    for (int lane = 0; lane < lanes; ++lane) {
      const int at = ChannelOfLane(vectors, v, lane);
      if (at >= block.channels) continue;
      const int64_t c = channels[lane] = channel + at;
      std::byte* lane_to = to + v * block.width + lane * 4;
      int64_t sum = 0;
      for (int32_t ky = 0; ky < y.filter; ++ky) {
        for (int32_t kx = 0; kx < x.filter; ++kx) {
          const auto byte =
              static_cast<uint8_t>(filter[(ky * x.filter + kx) * shape().channels_out + c]);
          const int32_t w =
              (is_unsigned ? byte : static_cast<int8_t>(byte)) - plan_.weights_zero_point;
          sum += w;
          const int group = ky / spec().lane_rows(), place = ky % spec().lane_rows();
          std::byte* tap =
              lane_to + int64_t{vectors} * block.width * (1 + kx * spec().row_groups() + group);
          if (spec().dot) {
            tap[place] = static_cast<std::byte>(w);
          } else {
            reinterpret_cast<int16_t*>(tap)[place] = static_cast<int16_t>(w);
          }
        }
      }
      *reinterpret_cast<int32_t*>(lane_to) =
          static_cast<int32_t>((bias != nullptr ? bias[c] : 0) - u0 * sum);
    }
    if (!spec().requantization) continue;
    PackRequantization(plan_.tail.requantize, *spec().requantization, channels,
                       reinterpret_cast<int32_t*>(to + constants_at +
                                                  int64_t{v} * spec().constants() * block.width));
  }
}

// Blocks [first, last) of one row of output pixels.
void DepthwiseS8Kernel::RunRow(const KernelArgs& args, int64_t row, int64_t first,
                               int64_t last) const {
  const auto& [y, x] = window();
  const int32_t start = y.start(static_cast<int32_t>(row % y.output));
  const auto* image =
      static_cast<const std::byte*>(args.inputs[0]) + row / y.output * y.input * input_row_bytes_;
  const std::byte* weights = weights_->data();
  int64_t block = 0, channel = 0, first_channel = -1, sums_at = 0;
  for (size_t kind = 0; kind < plan_.blocks.size(); ++kind) {
    const DepthwiseS8Blocks& b = plan_.blocks[kind];
    const int64_t skip = std::clamp<int64_t>(first - block, 0, b.count);
    const int64_t count = std::clamp<int64_t>(last - block, 0, b.count) - skip;
    if (count > 0) {
      const int64_t c = channel + skip * b.channels;
      if (first_channel < 0) first_channel = c;
      DepthwiseS8Args call{.rows = {},
                           .weights = weights + skip * spec().block_bytes(b.width),
                           .out = args.scratch + sums_at,
                           .blocks = count,
                           .residual = nullptr,
                           .table = plan_.tail.table.data()};
      if (spec().residual) {
        const kernels::TailOperand& operand = spec().residual->operand;
        call.residual = static_cast<const std::byte*>(args.inputs[operand.input]) +
                        row * x.output * operand.row_stride + c;
      }
      if (spec().requantization) {
        call.out =
            static_cast<std::byte*>(args.outputs[0]) + row * x.output * spec().out_pixel_bytes + c;
      }
      for (int32_t ky = 0; ky < y.filter; ++ky) {
        const int32_t at = start + ky * y.dilation;
        const bool inside = at >= 0 && at < y.input;
        call.rows[ky] = (inside ? image + at * input_row_bytes_ : padding_.data()) -
                        x.before * spec().pixel_bytes + c;
      }
      code_->entry<DepthwiseS8Function>(kind)(&call);
      sums_at += count * spec().whole_channels(b.width) * 4;
    }
    block += b.count;
    channel += b.count * b.channels;
    weights += b.count * spec().block_bytes(b.width);
  }
  if (plan_.tail.apply_rest == nullptr) return;
  int64_t last_channel = 0;
  int64_t rest = last;
  for (const DepthwiseS8Blocks& b : plan_.blocks) {
    last_channel += std::min(rest, b.count) * b.channels;
    rest -= std::min(rest, b.count);
  }
  ApplyTail(args, row, first_channel, last_channel - first_channel);
}

// On the sums in scratch, or in place on the bytes that were stored.
void DepthwiseS8Kernel::ApplyTail(const KernelArgs& args, int64_t row, int64_t channel,
                                  int64_t channels) const {
  const int64_t pixels = window().x.output, element = BitWidth(plan_.output_type) / 8;
  const int64_t pitch = plan_.out_pitch;
  plan_.tail.ApplyRest(args, {.out = static_cast<std::byte*>(args.outputs[0]) +
                                     (row * pixels * pitch + channel) * element,
                              .out_pitch = pitch,
                              .sums = spec().requantization ? nullptr : args.scratch,
                              .sums_pitch = spec().out_pixel_bytes / 4,
                              .row = row * pixels,
                              .rows = pixels,
                              .channel = channel,
                              .channels = channels});
}

// Whether w - zero point is an int8 for all weights.
bool FitInt8(const TensorInfo& filter) {
  const int32_t zero_point = filter.quantization.zero_point();
  if (zero_point == 0 && filter.type == DataType::kInt8) return true;
  const ByteWeights weights(filter);
  const auto* bytes = reinterpret_cast<const uint8_t*>(weights.data());
  return std::all_of(bytes, bytes + filter.elements(), [&](uint8_t byte) {
    const int32_t w =
        (filter.type == DataType::kUInt8 ? byte : static_cast<int8_t>(byte)) - zero_point;
    return w >= -128 && w <= 127;
  });
}

int64_t LargestBias(const TensorInfo& info, int64_t channels) {
  const AlignedConstant bias(info);
  int64_t largest = 0;
  for (int64_t i = 0; i < channels; ++i) {
    largest = std::max(largest, std::abs(int64_t{bias.as<int32_t>()[i]}));
  }
  return largest;
}

Result<DepthwiseS8Plan> MakePlan(const OpDescription& op, Isa isa) {
  FUSELITE_RETURN_IF_ERROR(CheckInt8Operands(op));
  DepthwiseS8Plan plan;
  FUSELITE_ASSIGN_OR_RETURN(plan.shape, kernels::ResolveDepthwiseConv2D(op));
  if (plan.shape.multiplier != 1) return Unsupported("depth multiplier ", plan.shape.multiplier);
  if (plan.shape.pixels_out() == 0) return Unsupported("nothing is emitted for an empty output");
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      kernels::MakeQuantizedTail(op, op.params.as<DepthwiseConv2DParams>().activation,
                                 DataType::kNone, {}, plan.shape.channels_out));
  const TensorInfo &in = op.inputs[0], &filter = op.inputs[1];
  plan.type = in.type;
  plan.output_type = op.outputs[0].type;
  plan.out_pitch = op.outputs[0].pitch();
  plan.weights_zero_point = filter.quantization.zero_point();
  plan.spec.isa = isa;
  plan.spec.window = plan.shape.window;
  plan.spec.dot = HasDotProduct(isa) && FitInt8(filter);
  plan.spec.is_unsigned = in.type == DataType::kUInt8;
  plan.spec.zero_point = in.quantization.zero_point();
  plan.spec.pixel_bytes = in.pitch();
  const int64_t largest_sum =
      int64_t{plan.shape.window.taps()} * 255 * 255 +
      (op.has_input(2) ? LargestBias(op.inputs[2], plan.shape.channels_out) : 0);
  const VectorIsa vectors(isa);
  const bool whole_blocks = plan.shape.channels_out % plan.spec.whole_channels(vectors.bytes) == 0;
  plan.tail =
      DivideTail(std::move(tail.tail), plan.output_type, vectors, largest_sum, whole_blocks);
  plan.spec.requantization = plan.tail.requantization;
  plan.spec.residual = plan.tail.residual;
  plan.blocks = SplitChannels(plan.spec, plan.shape.channels_out);
  plan.spec.out_pixel_bytes = plan.out_pitch;
  if (!plan.spec.requantization) {
    plan.spec.out_pixel_bytes = 0;
    for (const auto& b : plan.blocks) {
      plan.spec.out_pixel_bytes += b.count * plan.spec.whole_channels(b.width) * 4;
    }
  }
  FUSELITE_RETURN_IF_ERROR(CheckDepthwiseS8(plan.spec));
  return plan;
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDepthwiseConv2DInt8(const OpDescription& op,
                                                         const BuildContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  FUSELITE_ASSIGN_OR_RETURN(DepthwiseS8Plan plan, MakePlan(op, context.isa));
  auto kernel = std::make_unique<DepthwiseS8Kernel>(std::move(plan), context.isa, context.threads);
  if (context.judging) return std::unique_ptr<Kernel>(std::move(kernel));
  FUSELITE_ASSIGN_OR_RETURN(
      SharedCode code,
      EmitDepthwiseS8(kernel->plan().spec, kernel->plan().blocks, std::string(kernel->name())));
  const TensorInfo& filter = op.inputs[1];
  const AlignedConstant bias(op.has_input(2) ? op.inputs[2] : TensorInfo());
  const PackRequest request{filter.data,      filter.bytes(),
                            bias.source(),    bias.bytes(),
                            kernel->layout(), static_cast<size_t>(kernel->packed_bytes())};
  const auto pack = [&](std::byte* to) {
    kernel->Pack(ByteWeights(filter).data(), bias.as<int32_t>(), to);
  };
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, context.Pack(request, pack));
  kernel->SetCode(std::move(code), std::move(packed));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuselite::jit
