// Blocks of neighbouring outputs as the channels of one convolution. A few channels fill few of a
// vector's lanes: with the outputs of a block as channels they fill more, and DEPTH_TO_SPACE brings
// them to their places. Taps that an output of a block does not meet are zeros.
#pragma once

#include "fusion/graph.h"
#include "kernels/conv2d/conv2d.h"

namespace fuselite::fusion {

// What one vector of the widest machine, or one panel of the others, holds.
inline constexpr int32_t kMostBlockChannels = 16;

// One dimension: block p stands for the outputs size p, size p + 1, ... size p + size - 1, and sees
// the inputs from stride p - before on.
struct BlockAxis {
  int32_t blocks = 0;
  int32_t taps = 0, before = 0, after = 0;  // the latter two in inputs of padding
  int32_t first_tap = 0, per_output = 0, per_tap = 0;
  // The filter's tap that output `r` of a block meets at tap `t`; none where it lies outside.
  int32_t TapOf(int32_t r, int32_t t) const { return first_tap + r * per_output + t * per_tap; }
};

struct OutputBlocks {
  BlockAxis y, x;
  int32_t size = 1;    // outputs of a block in each dimension
  int32_t stride = 1;  // inputs from one block to the next
  int32_t batch = 0, channels_in = 0, channels_out = 0;

  int32_t outputs() const { return size * size; }
  int32_t channels() const { return outputs() * channels_out; }
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

// What brings the blocks' channels, a new value, to their places in `out`.
Node PlacesOfBlocks(Graph& graph, ValueId out, const OutputBlocks& blocks,
                    const std::vector<int>& host_nodes);

}  // namespace fuselite::fusion
