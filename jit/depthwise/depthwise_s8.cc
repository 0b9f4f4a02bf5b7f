#include "jit/depthwise/depthwise_s8.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/support/shared_by_key.h"

namespace fuselite::jit {

using kernels::LineRun;

namespace {

// What the lines of one call read of the image.
constexpr int64_t kImageOfCall = 32 << 10;

// At least `bytes` bytes of `value`; null where there is no memory. The layers of a network have
// rows of like lengths and mostly one zero point: those of a power of two are shared, where each
// layer's own took 120 KB of EfficientNet-B0, for each shape of its input.
std::shared_ptr<const AlignedBuffer> SharedRow(int value, size_t bytes) {
  // Outlives every static that may hold a kernel.
  static auto* const rows = new SharedByKey<std::pair<int, size_t>, AlignedBuffer>();
  const size_t length = std::bit_ceil(bytes);
  return rows->FindOrMake({value, length}, [&]() -> std::shared_ptr<const AlignedBuffer> {
    auto row = std::make_shared<AlignedBuffer>(length);
    if (row->data() == nullptr) return nullptr;
    std::memset(row->data(), value, length);
    return row;
  });
}

// The row of zero points that windows beyond the image read; null where none reaches there. It is
// no part of a plan: a layer is planned several times.
Result<std::shared_ptr<const AlignedBuffer>> PaddingOf(const DepthwiseS8Problem& problem) {
  const auto& y = problem.window.y;
  if (y.interior_begin() == 0 && y.interior_end() == y.output) {
    return std::shared_ptr<const AlignedBuffer>();
  }
  auto row = SharedRow(problem.zero_point & 0xFF, problem.row_bytes);
  if (row == nullptr) return OutOfMemory("a row of padding needs ", problem.row_bytes, " bytes");
  return row;
}

}  // namespace

Result<std::shared_ptr<const DepthwiseS8>> DepthwiseS8::Plan(DepthwiseS8Problem problem, Isa isa) {
  if (!VectorIsa::Supported(isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(isa), ")");
  }
  const auto& [y, x] = problem.window;
  if (problem.images * y.output * x.output * problem.channels == 0) {
    return Unsupported("nothing is emitted for an empty output");
  }
  auto depthwise = std::make_shared<DepthwiseS8>();
  depthwise->problem_ = std::move(problem);
  depthwise->PlanLayer(isa);
  FUSELITE_RETURN_IF_ERROR(CheckDepthwiseS8(depthwise->spec_));
  return std::shared_ptr<const DepthwiseS8>(std::move(depthwise));
}

// Pixels are those that are taken as one, as what is left of the tail counts them. Where they do
// not fill the row they are the image's.
kernels::LineOutputs DepthwiseS8::outputs() const {
  const auto& [y, x] = window();
  const int32_t overlap = problem_.folded_overlap;
  if (overlap == 0) return {problem_.images, y.output, x.output, problem_.out_pitch};
  const int32_t pixels = problem_.folded_pixels;
  return {problem_.images, y.output, x.output * pixels - overlap, problem_.out_pitch / pixels};
}

Result<std::shared_ptr<const kernels::LineConvolution>> DepthwiseS8::Emit(
    const std::string& name) const {
  auto emitted = std::make_shared<DepthwiseS8>(*this);
  FUSELITE_ASSIGN_OR_RETURN(emitted->padding_, PaddingOf(problem_));
  IntegerTail& tail = emitted->tail_;
  FUSELITE_RETURN_IF_ERROR(PrepareTail(&tail, VectorIsa(spec_.isa)));
  emitted->spec_.tail = tail.emitted;
  emitted->binding_ = SumTailBinding(tail.emitted);
  emitted->binding_.set_layer(tail.layer_bytes());
  std::vector<DepthwiseS8Blocks> kinds = blocks_;
  if (joined_) kinds.push_back(*joined_);
  FUSELITE_ASSIGN_OR_RETURN(emitted->code_, EmitDepthwiseS8(emitted->spec_, kinds, name));
  return std::shared_ptr<const LineConvolution>(std::move(emitted));
}

void DepthwiseS8::PlanLayer(Isa isa) {
  const DepthwiseS8Problem& p = problem_;
  spec_.isa = isa;
  spec_.window = p.window;
  spec_.dot = p.TakesDotProducts(isa);
  spec_.is_unsigned = p.type == DataType::kUInt8;
  spec_.pixel_bytes = p.pixel_bytes;
  spec_.group_channels = p.group_channels;
  filter_rows_.resize(p.window.y.filter);
  std::iota(filter_rows_.begin(), filter_rows_.end(), 0);
  if (spec_.dot && !p.outlier_taps.empty()) PlanOutliers();
  PlanTail();
  blocks_ = SplitChannels(spec_, p.channels);
  stored_bytes_ = BitWidth(tail_.rest.stored()) / 8;
  spec_.out_pixel_bytes = (tail_.rest.waits() ? PaddedChannels() : p.out_pitch) * stored_bytes_;
  spec_.overlap_bytes = p.folded_overlap * spec_.pixel_bytes;
  if (const DepthwiseS8Blocks joined = JoinRows(spec_, blocks_.back()); joined.rows > 1) {
    joined_ = joined;
  }
  spec_.out_overlap_bytes = p.folded_overlap * spec_.out_pixel_bytes / p.folded_pixels;
  PlanLinesOfCall();
}

// Operands whose elements differ by row follow the lines here, not in the code.
void DepthwiseS8::PlanLinesOfCall() {
  const int64_t joined = joined_ ? joined_->rows : 1;
  const auto& floats = spec_.tail.dequantization;
  const bool follow =
      spec_.tail.residuals.empty() &&
      (!floats || std::ranges::all_of(floats->tail.stages, [](const kernels::TailStage& stage) {
        return stage.operand.row_stride == 0 && stage.operand.batch_stride == 0;
      }));
  if (!follow) return;
  int64_t lines = kMaxS8RowsOfCall / window().y.filter;
  if (blocks() > 1)
    lines = std::min(lines, kImageOfCall / (window().y.stride * problem_.row_bytes));
  lines_of_call_ = std::max(joined, lines / joined * joined);
}

int DepthwiseS8::RowsOfStep(int32_t step) const {
  return std::min(spec_.lane_rows(), window().y.filter - step * spec_.lane_rows());
}

int DepthwiseS8::PlaceOfExcess(int32_t step, int row) const {
  const int rows = RowsOfStep(step);
  if (rows == spec_.lane_rows()) return -1;
  if (rows == 2) return rows + row;
  return row == rows - 1 ? rows : -1;
}

// Rows with outliers come last, where lanes have a row twice: what outliers exceed int8 by is then
// multiplied in no instruction of its own.
void DepthwiseS8::PlanOutliers() {
  const int32_t width = window().x.filter;
  std::vector<int> outliers(window().y.filter);
  for (const int64_t tap : problem_.outlier_taps) ++outliers[tap / width];
  std::ranges::stable_sort(filter_rows_, {}, [&](int32_t ky) { return outliers[ky]; });
  const auto stands_alone = [&](int32_t kx, int32_t step, int row) {
    const int64_t ky = filter_rows_[step * spec_.lane_rows() + row];
    return PlaceOfExcess(step, row) < 0 &&
           std::ranges::count(problem_.outlier_taps, ky * width + kx) > 0;
  };
  for (int32_t at = 0; at < width * spec_.column_steps(); ++at) {
    const int32_t kx = at / spec_.column_steps(), step = at % spec_.column_steps();
    int alone = 0;
    for (int row = 0; row < RowsOfStep(step); ++row) alone += stands_alone(kx, step, row);
    if (alone > 0) spec_.again.push_back(at);
  }
}

void DepthwiseS8::PlanTail() {
  DepthwiseS8Problem& p = problem_;
  const VectorIsa isa(spec_.isa);
  if (p.floats) {
    tail_ = FloatTail(std::move(*p.floats), p.tail.output.type, isa.features);
  } else {
    const SumBounds bounds{.products = int64_t{p.window.taps()} * p.group_channels * 255 * 255,
                           .bias = p.largest_bias,
                           .at_run_time = !p.constant_filters};
    tail_ = DivideIntegerTail(std::move(p.tail.tail), p.tail.output.type, isa, bounds, 0);
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

int64_t DepthwiseS8::blocks() const {
  int64_t blocks = 0;
  for (const DepthwiseS8Blocks& b : blocks_) blocks += b.count;
  return blocks;
}

int64_t DepthwiseS8::first_channel(int64_t block) const {
  int64_t channel = 0;
  for (const DepthwiseS8Blocks& b : blocks_) {
    const int64_t before = std::min(block, b.count);
    channel += before * b.channels;
    block -= before;
  }
  return channel;
}

kernels::LineConvolution::Work DepthwiseS8::work() const {
  constexpr double kTermsInTime = 1e4;
  const int64_t terms = int64_t{window().taps()} * spec_.group_channels + 4;
  return {1.0 * window().x.output * blocks_[0].channels * terms, kTermsInTime};
}

int64_t DepthwiseS8::PaddedChannels() const {
  int64_t channels = 0;
  for (const auto& b : blocks_) channels += b.count * spec_.whole_channels(b.width);
  return channels;
}

// Lines that are fewer than are joined at the end are joined with some before, computed again.
void DepthwiseS8::Run(const LineRun& run) const {
  const auto lines = [&](int64_t first, int64_t count) {
    return Lines{.y = run.y + static_cast<int32_t>(first),
                 .pixel = run.pixel + first * window().x.output,
                 .out = run.out + first * spec_.out_row_bytes(),
                 .count = count};
  };
  const bool joins = joined_ && run.last_block == blocks() && run.lines >= joined_->rows;
  const int64_t together = joins ? joined_->rows : 1;
  LineRun others = run;
  if (joins) --others.last_block;
  for (int64_t i = 0; i < run.lines; i += lines_of_call_) {
    const int64_t count = std::min(run.lines - i, lines_of_call_), whole = count / together;
    if (others.last_block > others.first_block) RunLines(others, lines(i, count));
    if (!joins) continue;
    if (whole > 0) RunJoined(run, lines(i, whole * together));
    if (whole * together < count) RunJoined(run, lines(i + count - together, together));
  }
}

void DepthwiseS8::RunJoined(const LineRun& run, const Lines& lines) const {
  const int64_t channel = problem_.channels - joined_->channels;
  DepthwiseS8Args call;  // members that the code does not read are left alone
  call.weights = run.packed + packed_bytes() - spec_.block_bytes(joined_->width);
  call.blocks = 1;
  call.out = lines.out + (channel - run.channel) * stored_bytes_;
  Point(run, lines, channel, &call);
  code_->entry<DepthwiseS8Function>(blocks_.size())(&call);
}

void DepthwiseS8::Point(const LineRun& run, const Lines& lines, int64_t channel,
                        DepthwiseS8Args* call) const {
  call->channel = 0;
  call->zero_points = spec_.Lane(problem_.zero_point);
  binding_.Bind(run.inputs, lines.pixel, channel, run.scale, &call->tail);
  call->end = PointToRows(run.image, lines, channel, call->rows);
}

void DepthwiseS8::RunLines(const LineRun& run, const Lines& lines) const {
  const std::byte* weights = run.packed;
  int64_t block = 0, channel = 0;
  for (size_t kind = 0; kind < blocks_.size(); ++kind) {
    const DepthwiseS8Blocks& b = blocks_[kind];
    const int64_t first = std::clamp<int64_t>(run.first_block - block, 0, b.count);
    const int64_t count = std::clamp<int64_t>(run.last_block - block, 0, b.count) - first;
    if (count > 0) {
      const int64_t at = channel + first * b.channels;
      RunBlocks(run, lines,
                {.kind = kind,
                 .count = count,
                 .channel = at,
                 .weights = weights + first * spec_.block_bytes(b.width),
                 .out = lines.out + (at - run.channel) * stored_bytes_});
    }
    block += b.count;
    channel += b.count * b.channels;
    weights += b.count * spec_.block_bytes(b.width);
  }
}

void DepthwiseS8::RunBlocks(const LineRun& run, const Lines& lines, const Range& range) const {
  const DepthwiseS8Blocks& b = blocks_[range.kind];
  // Operands are moved on to the next block here, not by the code.
  const bool one_by_one = spec_.tail.dequantization.has_value();
  for (int64_t i = 0; i < range.count; i += one_by_one ? 1 : range.count) {
    const int64_t channel = range.channel + i * b.channels;
    DepthwiseS8Args call;  // members that the code does not read are left alone
    call.weights = range.weights + i * spec_.block_bytes(b.width);
    call.blocks = one_by_one ? 1 : range.count;
    call.out = range.out + i * b.channels * stored_bytes_;
    Point(run, lines, channel, &call);
    code_->entry<DepthwiseS8Function>(range.kind)(&call);
  }
}

const std::byte** DepthwiseS8::PointToRows(const std::byte* image, const Lines& lines,
                                           int64_t channel, const std::byte** rows) const {
  const kernels::WindowAxis y = window().y;
  const int64_t row_bytes = problem_.row_bytes;
  const std::span<const int32_t> filter_rows = filter_rows_;
  const int64_t first = channel - window().x.before * spec_.pixel_bytes;
  const std::byte* const inside = image + first;
  const std::byte* const outside = padding_ == nullptr ? nullptr : padding_->data() + first;
  for (int32_t i = 0; i < lines.count; ++i) {
    const int32_t start = y.start(lines.y + i);
    for (const int32_t row : filter_rows) {
      const int32_t at = start + row * y.dilation;
      *rows++ = at >= 0 && at < y.input ? inside + at * row_bytes : outside;
    }
  }
  return rows;
}

}  // namespace fuselite::jit
