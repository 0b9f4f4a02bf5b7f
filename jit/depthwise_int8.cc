#include "jit/depthwise_int8.h"

#include <algorithm>
#include <cstring>

#include "jit/byte_weights.h"
#include "jit/depthwise_int8_emitter.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/tail/apply.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::DepthwiseConv2DParams;
using kernels::DepthwiseConv2DShape;
using kernels::OpDescription;
using kernels::Tail;

// One unit is a row of output pixels of one block of channels; a block's rows follow each other, so
// that its weights stay in L1.
class DepthwiseInt8Kernel final : public Kernel {
 public:
  DepthwiseInt8Kernel(const DepthwiseConv2DShape& shape, DepthwiseInt8Spec spec, Tail rest)
      : shape_(shape), spec_(std::move(spec)), rest_(std::move(rest)) {
    const auto& y = shape_.window.y;
    const std::vector<Taps> patterns = RowPatterns(y);
    for (int32_t i = 0; i < y.output; ++i) {
      const auto at = std::find(patterns.begin(), patterns.end(), TapsAt(y, i));
      entry_of_row_.push_back(static_cast<int>(at - patterns.begin()));
    }
    rows_ = int64_t{shape_.batch} * y.output;
    blocks_ = (shape_.channels_out + spec_.block_channels() - 1) / spec_.block_channels();
    name_ = internal::Join("depthwise ", spec_.is_signed ? "i8 " : "u8 ", y.filter, 'x',
                           shape_.window.x.filter, ' ',
                           PlanColumns(VectorIsa(spec_.isa), shape_.window.x).outputs, 'x',
                           spec_.block_channels(), ' ', IsaName(spec_.isa), " jit");
    if (!rest_.empty()) apply_rest_ = kernels::ApplyTail(spec_.isa);
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return rows_ * blocks_; }
  int64_t grain(int) const override {
    const double unit =
        1.0 * shape_.window.x.output * spec_.block_channels() * shape_.window.taps();
    return std::max<int64_t>(1, static_cast<int64_t>(2e5 / unit));
  }

  const DepthwiseInt8Spec& spec() const { return spec_; }
  int64_t packed_bytes() const { return blocks_ * DepthwiseInt8BlockBytes(spec_); }
  void SetCode(SharedCode code, PackedWeights weights) {
    code_ = std::move(code);
    weights_ = std::move(weights);
  }

  // `filter` is [taps][channels], `bias` has what the activations' offset adds.
  void Pack(const int8_t* filter, const std::vector<int32_t>& bias, std::byte* to) const {
    std::memset(to, 0, packed_bytes());
    for (int64_t block = 0; block < blocks_; ++block) {
      PackBlock(filter, bias, block, to);
      to += DepthwiseInt8BlockBytes(spec_);
    }
  }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) RunUnit(args, unit % rows_, unit / rows_);
    return Status();
  }

 private:
  // The channels of vector `i` of a block; -1 beyond the last one.
  std::vector<int64_t> ChannelsOf(int64_t block, int i) const {
    std::vector<int64_t> channels;
    for (int lane = 0; lane < spec_.block_channels() / 4; ++lane) {
      const int64_t c = block * spec_.block_channels() + lane / 4 * 16 + 4 * i + lane % 4;
      channels.push_back(c < shape_.channels_out ? c : -1);
    }
    return channels;
  }

  void PackBlock(const int8_t* filter, const std::vector<int32_t>& bias, int64_t block,
                 std::byte* to) const {
    const auto& [y, x] = shape_.window;
    const VectorIsa isa(spec_.isa);
    const ColumnPlan plan = PlanColumns(isa, x);
    for (int i = 0; i < 4; ++i) {
      const std::vector<int64_t> channels = ChannelsOf(block, i);
      std::byte* vector = to + i * isa.bytes;
      for (size_t lane = 0; lane < channels.size(); ++lane) {
        const int64_t c = channels[lane];
        if (c < 0) continue;
        std::memcpy(vector + lane * 4, &bias[c], 4);
        std::byte* quad = vector + lane * 4;
        for (int32_t ky = 0; ky < y.filter; ++ky) {
          for (const int shift : plan.shifts) {
            quad += 4 * isa.bytes;
            for (int b = 0; b < 4; ++b) {
              const int kx = shift + b;
              if (kx < 0 || kx >= x.filter) continue;
              quad[b] = static_cast<std::byte>(
                  filter[(int64_t{ky} * x.filter + kx) * shape_.channels_out + c]);
            }
          }
        }
      }
      const int data = ChannelDataVectors(spec_.tail);
      std::byte* after = to + DepthwiseInt8BlockBytes(spec_) - (4 - i) * data * isa.bytes;
      PackChannelData(spec_.tail.stages[0], isa, channels, after);
    }
  }

  void RunUnit(const KernelArgs& args, int64_t row, int64_t block) const {
    const auto& [y, x] = shape_.window;
    const int64_t image = row / y.output, oy = row % y.output;
    const int64_t channel = block * spec_.block_channels();
    const int64_t channels =
        std::min<int64_t>(spec_.block_channels(), shape_.channels_out - channel);
    const int64_t first_pixel =
        (image * y.input + y.start(static_cast<int32_t>(oy))) * x.input - x.before;
    const DepthwiseInt8Args call{
        .in = static_cast<const std::byte*>(args.inputs[0]) + first_pixel * spec_.pixel_bytes +
              channel,
        .weights = weights_->data() + block * DepthwiseInt8BlockBytes(spec_),
        .out = static_cast<std::byte*>(args.outputs[0]) + row * x.output * spec_.out_pixel_bytes +
               channel};
    const int partial = channels < spec_.block_channels();
    code_->entry<DepthwiseInt8Function>(2 * entry_of_row_[oy] + partial)(&call);
    if (apply_rest_ == nullptr) return;
    const DataType type = spec_.is_signed ? DataType::kInt8 : DataType::kUInt8;
    apply_rest_(rest_, args.inputs,
                {.source = call.out,
                 .source_pitch = spec_.out_pixel_bytes,
                 .source_type = type,
                 .destination = call.out,
                 .destination_pitch = spec_.out_pixel_bytes,
                 .destination_type = type,
                 .row = row * x.output,
                 .rows = x.output,
                 .channel = channel,
                 .channels = channels});
  }

  DepthwiseConv2DShape shape_;
  DepthwiseInt8Spec spec_;
  Tail rest_;  // stages that are not emitted
  kernels::ApplyTailFunction* apply_rest_ = nullptr;
  std::string name_;
  std::vector<int> entry_of_row_;
  int64_t rows_ = 0, blocks_ = 0;
  SharedCode code_;
  PackedWeights weights_;
};

// The filter [taps][channels] as [channels][taps], the order in which ReadByteWeights sums.
TensorInfo Transposed(const TensorInfo& filter, std::vector<int8_t>& bytes) {
  const int64_t channels = filter.shape.dim(-1), taps = filter.elements() / channels;
  const auto* from = static_cast<const int8_t*>(filter.data);
  bytes.resize(filter.elements());
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t t = 0; t < taps; ++t) bytes[c * taps + t] = from[t * channels + c];
  }
  TensorInfo result = filter;
  result.data = bytes.data();
  return result;
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDepthwiseInt8(const OpDescription& op,
                                                   const DepthwiseConv2DShape& shape,
                                                   const BuildContext& context) {
  const bool evex = Includes(context.isa, Isa::kAvx512Vnni);
  if (!evex && !Includes(context.isa, Isa::kAvxVnni)) {
    return Unsupported("8-bit products are emitted from avxvnni and avx512vnni up (isa=",
                       IsaName(context.isa), ")");
  }
  const TensorInfo& in = op.inputs[0];
  if (!evex && shape.channels_out % 32 != 0) {
    return Unsupported(shape.channels_out, " channels are no whole blocks of 32");
  }
  std::vector<int8_t> bytes;
  OpDescription transposed = op;
  transposed.inputs[1] = Transposed(op.inputs[1], bytes);
  FUSELITE_ASSIGN_OR_RETURN(ByteWeights weights, ReadByteWeights(transposed, shape.channels_out));
  FUSELITE_ASSIGN_OR_RETURN(kernels::QuantizedTail quantized,
                            MakeQuantizedTail(op, op.params.as<DepthwiseConv2DParams>().activation,
                                              DataType::kNone, {}, shape.channels_out));
  FUSELITE_ASSIGN_OR_RETURN(FusedTail tail,
                            FuseQuantizedTail(quantized.tail, op.outputs[0].type, weights.sum_bound,
                                              shape.window.x.output));
  // Operands would have to be interleaved as the channels are: their stages run over the store.
  auto& emitted = tail.emitted.stages;
  tail.rest.stages.insert(tail.rest.stages.begin(), emitted.begin() + 1, emitted.end());
  emitted.resize(1);
  DepthwiseInt8Spec spec{.isa = context.isa,
                         .window = shape.window,
                         .is_signed = in.type == DataType::kInt8,
                         .zero_point = in.quantization.zero_point(),
                         .pixel_bytes = in.pitch(),
                         .out_pixel_bytes = op.outputs[0].pitch(),
                         .channels = shape.channels_out,
                         .tail = std::move(tail.emitted)};
  FUSELITE_RETURN_IF_ERROR(CheckDepthwiseInt8(spec));
  auto kernel = std::make_unique<DepthwiseInt8Kernel>(shape, std::move(spec), std::move(tail.rest));
  if (context.judging) return std::unique_ptr<Kernel>(std::move(kernel));
  FUSELITE_ASSIGN_OR_RETURN(SharedCode code,
                            EmitDepthwiseInt8(kernel->spec(), std::string(kernel->name())));
  std::vector<int8_t> filter(weights.values.size());
  const int64_t taps = shape.window.taps(), channels = shape.channels_out;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t t = 0; t < taps; ++t) filter[t * channels + c] = weights.values[c * taps + t];
  }
  PackRequest request;
  request.source = op.inputs[1].data;
  request.source_bytes = op.inputs[1].bytes();
  if (op.has_input(2)) {
    request.source2 = op.inputs[2].data;
    request.source2_bytes = op.inputs[2].bytes();
  }
  request.layout =
      internal::Join("depthwise i8 ", shape.window.y.filter, 'x', shape.window.x.filter, " s",
                     shape.window.x.stride, " d", shape.window.x.dilation, " g",
                     PlanColumns(VectorIsa(context.isa), shape.window.x).outputs, ' ',
                     kernel->spec().block_channels(), ' ', kernel->spec().is_signed, " z",
                     kernel->spec().zero_point, ChannelDataKey(kernel->spec().tail));
  request.bytes = kernel->packed_bytes();
  FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, context.Pack(request, [&](std::byte* to) {
    kernel->Pack(filter.data(), weights.view.bias, to);
  }));
  kernel->SetCode(std::move(code), std::move(packed));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuselite::jit
