// Depthwise convolutions of 8-bit integers, and those in small groups: how they are packed, and a
// line of them. The common part of quantized and hybrid layers.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/depthwise/depthwise_s8_emitter.h"
#include "jit/product/centered_weights.h"
#include "jit/tail/integer_tail.h"
#include "kernels/depthwise_conv2d/line_kernel.h"
#include "kernels/gemm/quantized_tail.h"

namespace fuselite::jit {

// sum[pixel][c] = bias[c] + sum over the window's taps of (x - zero point) * (w - weights' zero
// point) in channel c, or in all channels of its group, then the tail.
struct DepthwiseS8Problem {
  kernels::Window window;  // over the image as it is read; what is outside are zero points
  int64_t images = 0, channels = 0;
  int32_t folded_pixels = 1;   // neighbours that are the channels of one (FoldPixels)
  int32_t folded_overlap = 0;  // of these, how many the last output shares with the one before
  int group_channels = 1;      // DepthwiseS8Spec
  int64_t pixel_bytes = 0, row_bytes = 0;  // from one to the next
  int64_t out_pitch = 0;                   // elements
  DataType type = DataType::kInt8;         // int8 or uint8
  DataType weights_type = DataType::kInt8;
  int32_t zero_point = 0, weights_zero_point = 0;
  // The taps, ky * width + kx, in which some weight less its zero point fits no int8.
  std::vector<int64_t> outlier_taps;
  int64_t largest_bias = 0;      // absolute
  bool constant_filters = true;  // and biases
  kernels::QuantizedTail tail;
  // Instead of the quantized tail, of which only `output` counts. `type` is uint8, the zero point 1
  // where images have their own. No window reaches out of the image.
  std::optional<FloatOutput> floats;
  std::string name;  // "depthwise int8"

  // Whether what outliers exceed int8 by fits int8 itself, and a lane holds taps of one channel.
  bool TakesOutliers() const {
    return Centering::Divides(weights_type, weights_zero_point) && group_channels == 1;
  }
  bool TakesDotProducts(Isa isa) const {
    return isa.has_vnni() && (outlier_taps.empty() || TakesOutliers());
  }
};

// A line is a row of output pixels.
class DepthwiseS8 final : public kernels::LineConvolution {
 public:
  static Result<std::shared_ptr<const DepthwiseS8>> Plan(DepthwiseS8Problem problem, Isa isa);

  kernels::LineOutputs outputs() const;
  bool shares_outputs() const { return problem_.folded_overlap > 0; }

  std::string name() const override;  // "depthwise int8 3x3 6x64 avx512vnni jit"
  int64_t blocks() const override;
  int64_t first_channel(int64_t block) const override;
  Work work() const override;
  const kernels::TailRest& rest() const override { return tail_.rest; }
  int64_t waiting_pitch() const override { return PaddedChannels(); }

  size_t packed_bytes() const override;
  std::string layout() const override;
  // The tail adds the biases of dequantized sums.
  bool packs_bias() const override { return !spec_.tail.dequantization; }
  // `filter`: [taps][channels], of groups [channels][taps][group_channels].
  void Pack(const void* filter, const void* bias, std::byte* packed) const override;

  Result<std::shared_ptr<const LineConvolution>> Emit(const std::string& name) const override;
  void Run(const kernels::LineRun& run) const override;

 private:
  void PlanLayer(Isa isa);
  void PlanOutliers();
  // How many rows of the filter share the lanes of this step, and in which place, behind them, the
  // lanes have row `row` of these once more; -1: in none.
  int RowsOfStep(int32_t step) const;
  int PlaceOfExcess(int32_t step, int row) const;
  void PlanTail();
  const kernels::Window& window() const { return problem_.window; }
  int64_t PaddedChannels() const;  // of sums, which are stored in whole blocks
  // Filters and biases of all channels.
  void PackChannels(const std::byte* filter, const int32_t* bias, std::byte* packed) const;
  void PackBlock(const std::byte* filter, const int32_t* bias, const DepthwiseS8Blocks& block,
                 int64_t channel, std::byte* to) const;
  // Where the lanes of the channel and of its neighbours, four together, are in a block's vectors.
  std::byte* LanesOf(const DepthwiseS8Blocks& block, int channel, std::byte* to) const;
  static constexpr size_t kMaxChannels = 64;  // of a block
  using TapRow = std::array<uint8_t, kMaxChannels>;
  using TapRows = std::array<TapRow, 4>;
  using BlockSums = std::array<int32_t, kMaxChannels>;  // of each channel's weights
  // What meets a block of `channels` from `channel` on in filter column kx and this step; where
  // the step is multiplied again, what it meets then.
  TapRows RowsOf(const std::byte* filter, int64_t channel, int channels, int32_t kx,
                 int32_t step) const;
  void DivideOutliers(int32_t step, int channels, TapRows* rows) const;
  TapRows RowsAgain(const std::byte* filter, int64_t channel, int channels, int32_t at) const;
  void TakeRows(const std::byte* filter, int64_t channel, int channels, int32_t kx, int32_t step,
                TapRows* rows) const;
  void TakePair(const std::byte* filter, int64_t channel, int channels, int32_t kx,
                TapRows* rows) const;
  void TakeGroups(const std::byte* filter, int64_t channel, int channels, int32_t kx, int32_t step,
                  TapRows* rows) const;
  void PackQuads(const TapRows& rows, const DepthwiseS8Blocks& block, std::byte* to,
                 BlockSums* sums) const;
  void PackPairs(const TapRows& rows, const DepthwiseS8Blocks& block, std::byte* to,
                 BlockSums* sums) const;
  void PackConstants(const int32_t* bias, const DepthwiseS8Blocks& block, int64_t channel,
                     int32_t* first_sums, std::byte* to) const;

  // Some of a run's that follow each other.
  struct Lines {
    int32_t y;  // the first one's
    int64_t pixel;
    std::byte* out;
    int64_t count;
  };
  // Blocks of equal width.
  struct Range {
    size_t kind;             // of block
    int64_t count, channel;  // the first one
    const std::byte* weights;
    std::byte* out;
  };
  void PlanLinesOfCall();
  void RunLines(const kernels::LineRun& run, const Lines& lines) const;
  void RunBlocks(const kernels::LineRun& run, const Lines& lines, const Range& range) const;
  // The last block of `lines`, as many at a time as it joins.
  void RunJoined(const kernels::LineRun& run, const Lines& lines) const;
  // Arguments for blocks from `channel` on.
  void Point(const kernels::LineRun& run, const Lines& lines, int64_t channel,
             DepthwiseS8Args* call) const;
  // DepthwiseS8Args::rows of the lines; returns their end.
  const std::byte** PointToRows(const std::byte* image, const Lines& lines, int64_t channel,
                                const std::byte** rows) const;

  DepthwiseS8Problem problem_;
  DepthwiseS8Spec spec_;
  std::vector<int32_t> filter_rows_;  // in the order in which the code has them
  std::vector<DepthwiseS8Blocks> blocks_;
  // Stands for the last block where a run has its rows; packed behind all blocks.
  std::optional<DepthwiseS8Blocks> joined_;
  IntegerTail tail_;
  SumTailBinding binding_;
  int64_t lines_of_call_ = 1;
  int64_t stored_bytes_ = 1;                      // of an element
  std::shared_ptr<const AlignedBuffer> padding_;  // a row of zero points
  SharedCode code_;
};

}  // namespace fuselite::jit
