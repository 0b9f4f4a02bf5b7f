// Depthwise convolutions of 8-bit integers, and those in small groups: how they are packed, split
// into units and run. The common part of quantized and hybrid layers.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/depthwise/depthwise_s8_emitter.h"
#include "jit/tail/integer_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/line_units.h"
#include "kernels/operator.h"

namespace fuselite::jit {

// sum[pixel][c] = bias[c] + sum over the window's taps of (x - zero point) * (w - weights' zero
// point) in channel c, or in all channels of its group, then the tail.
struct DepthwiseS8Problem {
  kernels::Window window;  // over the image as it is read; what is outside are zero points
  int64_t images = 0, channels = 0;
  int group_channels = 1;                                   // DepthwiseS8Spec
  int64_t pixel_bytes = 0, row_bytes = 0, image_bytes = 0;  // from one to the next
  int64_t out_pitch = 0;                                    // elements
  DataType type = DataType::kInt8;                          // int8 or uint8
  DataType weights_type = DataType::kInt8;
  int32_t zero_point = 0, weights_zero_point = 0;
  bool fits_int8 = true;     // the weights, less their zero point
  int64_t largest_bias = 0;  // absolute
  kernels::QuantizedTail tail;
  // Instead of the quantized tail, of which only `output` counts. `type` is uint8, the zero point 1
  // where images have their own. No window reaches out of the image.
  std::optional<FloatOutput> floats;
  std::string name;  // "depthwise int8"

  // Whether dot products of bytes make up for what the weights are less than they should be.
  bool corrects() const {
    return !fits_int8 && weights_type == DataType::kUInt8 && weights_zero_point > 0 &&
           group_channels == 1;
  }
  bool TakesDotProducts(Isa isa) const { return HasDotProduct(isa) && (fits_int8 || corrects()); }
};

// What is computed from. `image`: the first one.
struct DepthwiseS8Product {
  const KernelArgs& args;
  const std::byte* image;
  const std::byte* packed;
  const RowScale* scales = nullptr;  // of float outputs: for each image
};

class DepthwiseS8 {
 public:
  static Result<DepthwiseS8> Plan(DepthwiseS8Problem problem, const kernels::PlanContext& context);
  // Makes the code, before the first Pack and Run.
  Status Emit();

  size_t packed_bytes() const;
  // What decides the packed bytes, for PackRequest::layout.
  std::string layout() const;
  // `filter`: [taps][channels], of groups [channels][taps][group_channels]. A null bias is zeros.
  void Pack(const std::byte* filter, const int32_t* bias, std::byte* packed) const;

  // One unit is a row of output pixels times a range of the blocks of channels.
  int64_t units() const { return units_.count(); }
  int64_t grain() const;
  std::string name() const;  // "depthwise int8 3x3 6x64 avx512vnni jit"
  // For sums that are stored before the tail.
  size_t scratch_bytes() const;

  // Computes units [begin, end).
  void Run(const DepthwiseS8Product& product, int64_t begin, int64_t end) const;

 private:
  void PlanLayer(const kernels::PlanContext& context);
  void PlanTail();
  const kernels::Window& window() const { return problem_.window; }
  int64_t PaddedChannels() const;  // of sums, which are stored in whole blocks
  void PackBlock(const std::byte* filter, const int32_t* bias, const DepthwiseS8Blocks& block,
                 int64_t channel, std::byte* to) const;
  // Where the lanes of the channel and of its neighbours, four together, are in a block's vectors.
  std::byte* LanesOf(const DepthwiseS8Blocks& block, int channel, std::byte* to) const;
  static constexpr size_t kMaxChannels = 64;  // of a block
  using TapRows = std::array<std::array<uint8_t, kMaxChannels>, 4>;
  using BlockSums = std::array<int32_t, kMaxChannels>;  // of each channel's weights
  // What meets a block of `channels` from `channel` on in filter column kx and this step.
  TapRows RowsOf(const std::byte* filter, int64_t channel, int channels, int32_t kx,
                 int32_t step) const;
  void TakeRows(const std::byte* filter, int64_t channel, int channels, int32_t kx, int32_t step,
                TapRows* rows) const;
  void TakeGroups(const std::byte* filter, int64_t channel, int channels, int32_t kx, int32_t step,
                  TapRows* rows) const;
  void PackQuads(const TapRows& rows, const DepthwiseS8Blocks& block, std::byte* to,
                 BlockSums* sums) const;
  void PackPairs(const TapRows& rows, const DepthwiseS8Blocks& block, std::byte* to,
                 BlockSums* sums) const;
  // The weights' zero point as the code has it.
  int32_t WeightsOffset() const { return spec_.corrects ? 128 : problem_.weights_zero_point; }
  void PackConstants(const int32_t* bias, const DepthwiseS8Blocks& block, int64_t channel,
                     int32_t* first_sums, std::byte* to) const;

  // Blocks of equal width, of one row of outputs.
  struct Range {
    size_t kind;  // of block
    int64_t row;
    int64_t first, count;  // of that kind
    int64_t channel;       // the first one
    const std::byte* weights;
    std::byte* sums;
  };
  // A line is a row of output pixels.
  void RunRow(const DepthwiseS8Product& product, const kernels::LineUnits::Unit& unit) const;
  void RunBlocks(const DepthwiseS8Product& product, const Range& range) const;
  void PointToRows(const DepthwiseS8Product& product, int64_t row, int64_t channel,
                   DepthwiseS8Args* call) const;
  void ApplyRest(const KernelArgs& args, int64_t row, int64_t channel, int64_t channels) const;

  DepthwiseS8Problem problem_;
  DepthwiseS8Spec spec_;
  std::vector<DepthwiseS8Blocks> blocks_;
  IntegerTail tail_;
  SumTailBinding binding_;
  kernels::LineUnits units_;
  int64_t out_bytes_ = 1;                         // of an element
  std::shared_ptr<const AlignedBuffer> padding_;  // a row of zero points
  SharedCode code_;
};

}  // namespace fuselite::jit
