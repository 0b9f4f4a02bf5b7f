// The inner functions of quantized depthwise convolutions, and of those in small groups of
// channels: one row of outputs, blocks of channels.
//
// The rows of a window are interleaved, so that each 32-bit lane holds values of one channel from
// several rows, and multiplied with weights packed likewise:
//   dot products    4 rows of bytes a lane; 4 vectors of sums for a vector's worth of channels
//   pair products   2 rows of int16 a lane; 2 vectors of sums for half a vector's
// A column is interleaved once for all outputs of a tile that it belongs to. The last row of an odd
// number has no row to share the lanes of pairs with: it is interleaved with itself, one column
// further, so that 3x3 filters take 5 products of pairs instead of 6.
//
// Where groups have several channels, a lane holds neighbouring channels of one row instead: 4 (or
// 2) that the lane's output sums over, in as many steps as it takes for the group. Shuffles within
// 16 bytes bring them there, since a group's outputs lie in the 16 bytes that its inputs do.
#pragma once

#include <string>
#include <vector>

#include "jit/code/assembler.h"
#include "jit/tail/sum_tail.h"
#include "kernels/window.h"

namespace fuselite::jit {

inline constexpr int kMaxS8FilterRows = 64;
// The rows of the image that one call may be given.
inline constexpr int kMaxS8RowsOfCall = 96;

struct DepthwiseS8Spec {
  Isa isa = Isa::kAvx2;
  kernels::Window window;
  bool dot = false;  // dot products; the weights fit into int8
  // The steps, in order, that are multiplied once more with weights of their own: kx *
  // column_steps() + the step of the column.
  std::vector<int> again;
  bool is_unsigned = false;  // the activations are uint8, not int8
  int64_t pixel_bytes = 0;   // between pixels of the input
  int64_t out_pixel_bytes = 0;
  // By how many bytes less of the input and the output the row's last output is moved on.
  int64_t overlap_bytes = 0, out_overlap_bytes = 0;
  // Inputs and outputs of a group: 1 (depthwise), 2, 4 or 8.
  int group_channels = 1;
  // Dequantizations are per image, not per_row. Sums are stored in whole blocks of channels.
  SumTail tail;

  int group() const { return dot ? 4 : 2; }  // vectors of sums in a block
  int lane_values() const { return dot ? 4 : 2; }
  int lane_rows() const {
    return group_channels == 1 ? lane_values() : 1;
  }  // filter rows in a lane
  int value_bytes() const { return dot ? 1 : 2; }
  // Lanes that an output takes of a row.
  int row_steps() const {
    return group_channels <= lane_values() ? 1 : group_channels / lane_values();
  }
  // How often a column is multiplied.
  int column_steps() const {
    return (window.y.filter + lane_rows() - 1) / lane_rows() * row_steps();
  }
  // Whether the last row's columns share lanes, in the last step of a column.
  bool pairs_columns() const {
    return !dot && group_channels == 1 && window.y.filter % 2 == 1 && window.x.filter > 1;
  }
  // Of these, whether the columns of taps kx and kx + 1 are multiplied as a pair, and whether by
  // the weight of tap kx: the last one of an odd number goes with a column that has been.
  bool BeginsPair(int32_t kx) const {
    return WeighsFirst(kx) ? kx + 1 < window.x.filter : kx + 2 == window.x.filter;
  }
  static bool WeighsFirst(int32_t kx) { return kx % 2 == 0; }
  // Where groups have several channels: the first of the inputs that output `channel` of 16 bytes'
  // worth meets in step `step` of a row, among those 16 bytes.
  int LaneInput(int channel, int step) const {
    return (channel / group_channels * group_channels / lane_values() + step) * lane_values();
  }
  // Bytes are multiplied as unsigned ones: int8 activations, + 128.
  bool flips() const { return dot && !is_unsigned; }
  int64_t out_row_bytes() const { return window.x.output * out_pixel_bytes - out_overlap_bytes; }
  // A lane of activations of this value, as they are multiplied.
  uint32_t Lane(int32_t value) const;
  // What a block has with vectors of `width` bytes.
  int whole_channels(int width) const { return width / value_bytes(); }
  // A block's groups of vectors before the tail's constants: the bias and all weights.
  int weight_groups() const {
    return 1 + window.x.filter * column_steps() + static_cast<int>(again.size());
  }
  int64_t block_bytes(int width) const {
    return int64_t{width} * group() * (weight_groups() + tail.constants());
  }
};

// `count` blocks of `channels` channels each, in vectors of `width` bytes; fewer channels than such
// vectors hold come once.
struct DepthwiseS8Blocks {
  int width = 32;
  int channels = 0;
  int64_t count = 0;
  // Rows of outputs that are computed together, each in its part of the vectors, where a row's
  // channels fill no more than half of one.
  int rows = 1;
  int part_channels() const { return width / rows; }  // in bytes, as joined rows are
  friend bool operator==(const DepthwiseS8Blocks&, const DepthwiseS8Blocks&) = default;
};
// All channels: whole blocks first.
std::vector<DepthwiseS8Blocks> SplitChannels(const DepthwiseS8Spec& spec, int64_t channels);

// Divides the blocks' vectors among as many rows of outputs as fit. Leaves one row where nothing is
// gained, and without dot products, with groups of several channels, with a tail that does more
// than to make bytes, or with parts that are not whole pieces (AVX-512: whole groups of four
// channels).
DepthwiseS8Blocks JoinRows(const DepthwiseS8Spec& spec, const DepthwiseS8Blocks& blocks);

// Computes rows of output pixels that follow each other, each for `blocks` blocks of channels, or
// joined rows together. rows[ky] is where the row of the image that the filter's row ky meets has
// its first window's first tap, be it outside of the image: columns outside are not read. Rows
// outside are rows of zero points. Behind them are those of the next row of outputs, until `end`.
// `weights` holds for each block: the bias (times the image's zero
// point where rows have their own); for each filter column, for each group of rows, the weights;
// those of the steps that are taken again; the constants of the tail vector by vector. Lanes are
// those of ChannelOfLane; scales are in the order of the channels. Bytes of a lane that a step's
// rows do not fill hold the last of them again, where there are two both.
struct DepthwiseS8Args {
  const std::byte* rows[kMaxS8RowsOfCall];
  const std::byte* const* end;
  const std::byte* weights;
  std::byte* out;
  int64_t blocks;
  int64_t channel;       // 0: that of the block at hand, behind the first one's
  SumTailArgs tail;      // for the first pixel; one block at a time with a dequantization
  uint32_t zero_points;  // of the activations: what a lane holds where a column is outside
};
using DepthwiseS8Function = void(DepthwiseS8Args* args);  // the arguments are consumed

// kUnsupported where windows or strides are too large to be unrolled.
Status CheckDepthwiseS8(const DepthwiseS8Spec& spec);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const DepthwiseS8Spec& spec, const std::vector<DepthwiseS8Blocks>& blocks);
// Entry i computes blocks[i]. Precondition: CheckDepthwiseS8(spec).
Result<SharedCode> EmitDepthwiseS8(const DepthwiseS8Spec& spec,
                                   const std::vector<DepthwiseS8Blocks>& blocks,
                                   const std::string& name);
// Output pixels that are computed at once.
int DepthwiseS8Tile(const DepthwiseS8Spec& spec);

}  // namespace fuselite::jit
