// Blocks of neighbouring outputs as the channels of one convolution. A few channels fill few of a
// vector's lanes: with the outputs of a block as channels they fill more, and DEPTH_TO_SPACE brings
// them to their places, where they do not lie there already. Taps that an output of a block does
// not meet are zeros.
#pragma once

#include <optional>
#include <vector>

#include "fusion/graph/graph.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/tail/tail.h"
#include "kernels/window.h"

namespace fuselite::fusion {

// Whether blocks of so many outputs fill lanes that a layer of so many channels leaves empty. They
// have at most what one vector of the widest machine, or one panel of the others, holds. More
// channels than half a vector of 8 lanes fill that as they are: blocks took 1.1 to 1.3 times as
// long.
constexpr bool FillsLanes(int32_t channels, int32_t outputs) {
  return channels <= 4 && channels * outputs <= 16;
}

// One dimension: block p stands for the outputs size p, size p + 1, ... size p + size - 1, and sees
// the inputs from stride p - before on.
struct BlockAxis {
  int32_t blocks = 0;
  int32_t size = 1;                         // outputs of a block
  int32_t stride = 1;                       // inputs from one block to the next
  int32_t taps = 0, before = 0, after = 0;  // the latter two in inputs of padding
  int32_t first_tap = 0, per_output = 0, per_tap = 0;
  // The filter's tap that output `r` of a block meets at tap `t`; none where it lies outside.
  int32_t TapOf(int32_t r, int32_t t) const { return first_tap + r * per_output + t * per_tap; }
};

// A block for each input of a transposed convolution: the outputs whose positions leave all
// remainders by the stride. `axis` is the window over the convolution's output. nullopt where
// outputs are left over, or the window would not begin and end in the padding.
std::optional<BlockAxis> BlocksOfTransposed(const kernels::WindowAxis& axis);

struct OutputBlocks {
  BlockAxis y, x;
  int32_t batch = 0, channels_in = 0, channels_out = 0;

  int32_t outputs() const { return y.size * x.size; }
  int32_t channels() const { return outputs() * channels_out; }
  // All outputs, with what the last blocks reach beyond.
  Shape whole() const { return Shape({batch, y.blocks * y.size, x.blocks * x.size, channels_out}); }
  // Whether the channels of blocks lie as outputs do: those of a row, or of an only column.
  bool lie_in_place() const { return y.size == 1 || x.blocks * x.size == 1; }
  bool have_places() const { return lie_in_place() || y.size == x.size; }
};

// What the layer reads; `bias` may be kNone.
struct BlockOperands {
  ValueId x, filters, bias;
};

// Whether the constants can be taken apart and no other value is read by the tail.
bool CanTakeBlocks(const Graph& graph, const Node& node, const BlockOperands& operands);

// CONV_2D of the blocks of `node`, with its tail and without its activation; the output is left to
// the caller. Filters are [O, KH, KW, I]. Precondition: CanTakeBlocks().
Node ConvolutionOfBlocks(Graph& graph, const Node& node, const BlockOperands& operands,
                         const OutputBlocks& blocks);

// A constant bias, and a tail without operands, for channels that stand `times` times, one after
// the other.
ValueId RepeatedBias(Graph& graph, ValueId id, int64_t times);
kernels::Tail RepeatedTail(kernels::Tail tail, int64_t times);

// What brings the blocks' channels, a new value, to their places in `out`: DEPTH_TO_SPACE, which
// takes no int16, or RESHAPE where they lie there. Precondition: have_places().
Node PlacesOfBlocks(Graph& graph, ValueId out, const OutputBlocks& blocks,
                    const std::vector<int>& host_nodes);

}  // namespace fuselite::fusion
