#include "jit/depthwise/depthwise_s8.h"

#include <algorithm>
#include <cstring>

#include "kernels/tail/rest.h"

namespace fuselite::jit {

using kernels::PlanContext;

Result<DepthwiseS8> DepthwiseS8::Plan(DepthwiseS8Problem problem, const PlanContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  const auto& [y, x] = problem.window;
  if (problem.images * y.output * x.output * problem.channels == 0) {
    return Unsupported("nothing is emitted for an empty output");
  }
  DepthwiseS8 depthwise;
  depthwise.problem_ = std::move(problem);
  depthwise.PlanLayer(context);
  FUSELITE_RETURN_IF_ERROR(CheckDepthwiseS8(depthwise.spec_));
  return depthwise;
}

Status DepthwiseS8::Emit() {
  FUSELITE_RETURN_IF_ERROR(PrepareTail(&tail_, VectorIsa(spec_.isa)));
  spec_.tail = tail_.emitted;
  binding_ = SumTailBinding(tail_.emitted);
  binding_.set_layer(tail_.layer_bytes());
  FUSELITE_ASSIGN_OR_RETURN(code_, EmitDepthwiseS8(spec_, blocks_, name()));
  return Status();
}

void DepthwiseS8::PlanLayer(const PlanContext& context) {
  const DepthwiseS8Problem& p = problem_;
  spec_.isa = context.isa;
  spec_.window = p.window;
  spec_.dot = p.TakesDotProducts(context.isa);
  spec_.corrects = spec_.dot && p.corrects();
  spec_.is_unsigned = p.type == DataType::kUInt8;
  spec_.pixel_bytes = p.pixel_bytes;
  spec_.group_channels = p.group_channels;
  PlanTail();
  blocks_ = SplitChannels(spec_, p.channels);
  out_bytes_ = BitWidth(p.tail.output.type) / 8;
  spec_.out_pixel_bytes =
      spec_.tail.stores_sums() ? PaddedChannels() * 4 : p.out_pitch * out_bytes_;
  int64_t blocks = 0;
  for (const DepthwiseS8Blocks& b : blocks_) blocks += b.count;
  units_ = kernels::LineUnits(p.images * p.window.y.output, blocks, context.threads);
  const auto& y = p.window.y;
  if (y.interior_begin() > 0 || y.interior_end() < y.output) {
    auto row = std::make_shared<AlignedBuffer>(p.row_bytes);
    std::memset(row->data(), p.zero_point & 0xFF, p.row_bytes);
    padding_ = std::move(row);
  }
}

void DepthwiseS8::PlanTail() {
  DepthwiseS8Problem& p = problem_;
  const VectorIsa isa(spec_.isa);
  if (p.floats) {
    tail_ = FloatTail(std::move(*p.floats), p.tail.output.type, isa.features);
  } else {
    tail_ =
        DivideIntegerTail(std::move(p.tail.tail), p.tail.output.type, isa,
                          {int64_t{p.window.taps()} * p.group_channels * 255 * 255, p.largest_bias},
                          p.channels % spec_.whole_channels(isa.bytes) == 0);
  }
  spec_.tail = tail_.emitted;
}

std::string DepthwiseS8::name() const {
  const std::string group =
      spec_.group_channels > 1 ? internal::Join('x', spec_.group_channels) : "";
  return internal::Join(problem_.name, ' ', window().y.filter, 'x', window().x.filter, group, ' ',
                        DepthwiseS8Tile(spec_), 'x', blocks_[0].channels, ' ',
                        spec_.dot ? VectorIsa(spec_.isa).dot_name() : VectorIsa(spec_.isa).name(),
                        " jit") +
         kernels::TailApart(tail_.rest.why);
}

int64_t DepthwiseS8::grain() const {
  constexpr double kTermsInTime = 1e4;
  return units_.Grain(
      1.0 * window().x.output * blocks_[0].channels * (window().taps() * spec_.group_channels + 4),
      kTermsInTime);
}

int64_t DepthwiseS8::PaddedChannels() const {
  int64_t channels = 0;
  for (const auto& b : blocks_) channels += b.count * spec_.whole_channels(b.width);
  return channels;
}

size_t DepthwiseS8::scratch_bytes() const {
  if (!spec_.tail.stores_sums()) return 0;
  return static_cast<size_t>(window().x.output * PaddedChannels() * 4);
}

void DepthwiseS8::Run(const DepthwiseS8Product& product, int64_t begin, int64_t end) const {
  for (int64_t unit = begin; unit < end; ++unit) RunRow(product, units_.At(unit));
}

void DepthwiseS8::RunRow(const DepthwiseS8Product& product,
                         const kernels::LineUnits::Unit& unit) const {
  const auto [row, first, last] = unit;
  Range range{.kind = 0,
              .row = row,
              .first = 0,
              .count = 0,
              .channel = 0,
              .weights = product.packed,
              .sums = product.args.scratch};
  int64_t block = 0, channel = 0, first_channel = -1, last_channel = 0;
  for (const DepthwiseS8Blocks& b : blocks_) {
    range.first = std::clamp<int64_t>(first - block, 0, b.count);
    range.count = std::clamp<int64_t>(last - block, 0, b.count) - range.first;
    if (range.count > 0) {
      range.channel = channel + range.first * b.channels;
      if (first_channel < 0) first_channel = range.channel;
      last_channel = range.channel + range.count * b.channels;
      RunBlocks(product, range);
      range.sums += range.count * spec_.whole_channels(b.width) * 4;
    }
    block += b.count;
    channel += b.count * b.channels;
    range.weights += b.count * spec_.block_bytes(b.width);
    ++range.kind;
  }
  if (tail_.rest.apply == nullptr) return;
  ApplyRest(product.args, row, first_channel, last_channel - first_channel);
}

void DepthwiseS8::RunBlocks(const DepthwiseS8Product& product, const Range& range) const {
  const DepthwiseS8Blocks& b = blocks_[range.kind];
  const int64_t pixel = range.row * window().x.output;  // of the output
  // Operands are moved on to the next block here, not by the code.
  const bool one_by_one = spec_.tail.dequantization.has_value();
  for (int64_t i = 0; i < range.count; i += one_by_one ? 1 : range.count) {
    const int64_t channel = range.channel + i * b.channels;
    DepthwiseS8Args call;  // members that the code does not read are left alone
    call.weights = range.weights + (range.first + i) * spec_.block_bytes(b.width);
    call.blocks = one_by_one ? 1 : range.count;
    call.zero_points = spec_.Lane(problem_.zero_point);
    call.out = range.sums;
    if (!spec_.tail.stores_sums()) {
      call.out = static_cast<std::byte*>(product.args.outputs[0]) + pixel * spec_.out_pixel_bytes +
                 channel * out_bytes_;
    }
    const RowScale* scale =
        product.scales == nullptr ? nullptr : product.scales + range.row / window().y.output;
    binding_.Bind(product.args.inputs, pixel, channel, scale, &call.tail);
    PointToRows(product, range.row, channel, &call);
    code_->entry<DepthwiseS8Function>(range.kind)(&call);
  }
}

void DepthwiseS8::PointToRows(const DepthwiseS8Product& product, int64_t row, int64_t channel,
                              DepthwiseS8Args* call) const {
  const auto& [y, x] = window();
  const int32_t start = y.start(static_cast<int32_t>(row % y.output));
  const std::byte* image = product.image + row / y.output * problem_.image_bytes;
  for (int32_t ky = 0; ky < y.filter; ++ky) {
    const int32_t at = start + ky * y.dilation;
    const bool inside = at >= 0 && at < y.input;
    call->rows[ky] = (inside ? image + at * problem_.row_bytes : padding_->data()) -
                     x.before * spec_.pixel_bytes + channel;
  }
}

// On the sums in scratch, or in place on what was stored.
void DepthwiseS8::ApplyRest(const KernelArgs& args, int64_t row, int64_t channel,
                            int64_t channels) const {
  const int64_t pixels = window().x.output, pitch = problem_.out_pitch;
  std::byte* out =
      static_cast<std::byte*>(args.outputs[0]) + (row * pixels * pitch + channel) * out_bytes_;
  const bool on_sums = tail_.rest.waits();
  tail_.rest.Apply(args, {.stored = on_sums ? args.scratch : out,
                          .pitch = on_sums ? spec_.out_pixel_bytes / 4 : pitch,
                          .out = out,
                          .out_pitch = pitch,
                          .row = row * pixels,
                          .rows = pixels,
                          .channel = channel,
                          .channels = channels});
}

}  // namespace fuselite::jit
