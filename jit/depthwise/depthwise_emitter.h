// The inner functions of float32 depthwise convolutions: one or two rows of outputs, vectors of
// channels. Two rows share what they have in common of the image's rows: with 3x3 windows, four
// rows come from the cache instead of six, which counts where they come from L2.
#pragma once

#include <vector>

#include "jit/depthwise/row_walker.h"
#include "jit/tail/tail_emitter.h"

namespace fuselite::jit {

// Computes a group of rows of output pixels for `blocks` vectors of channels and, with `partial`,
// those beyond. `in` is where the first window would start, be it outside of the image: only taps
// inside are read. `weights` holds for each vector of channels the bias and then all taps; where
// inputs are gathered, behind the bias the channel of each lane's first input, counted from the
// vector's first, and a mask of as many lanes as that reaches; then, in the place of a vector, the
// bytes from `in` to the vector's first input (int64); then for each tap each input's weights.
struct DepthwiseArgs {
  const std::byte* in;
  const std::byte* weights;
  std::byte* out;
  int64_t blocks;
  int64_t partial;  // 0 or 1
  kernels::TailSlots operands;
};
using DepthwiseFunction = void(DepthwiseArgs* args);  // the arguments are consumed

// Outputs that are computed at once. The tail's operands must be at constant steps over as many
// rows of pixels (DivideFloatTail).
struct DepthwiseTile {
  int rows = 1, columns = 1;
};
// The tile has at most `rows` rows; `gathers`: whether inputs are gathered.
DepthwiseTile ChooseDepthwiseTile(const kernels::Window& window, Isa isa, int rows, bool gathers);

struct DepthwiseSpec {
  Isa isa = Isa::kAvx2;
  kernels::Window window;
  DepthwiseTile tile;
  int64_t pixel_bytes = 0;  // between pixels of the input
  int64_t out_pixel_bytes = 0;
  // Values that are bfloat16 in memory, of inputs that are not gathered; `isa` has AVX512-BF16.
  bool bf16_in = false, bf16_out = false;
  int partial_lanes = 0;  // channels beyond the last whole vector
  // How many inputs, of neighbouring channels, an output sums over that are gathered from the first
  // on: of convolutions in small groups and with depth multipliers. 0: each channel is its own
  // input.
  int gathered = 0;
  kernels::Tail tail;  // emitted wholly (DivideFloatTail)

  // The bytes that one vector of channels has before its weights, and in all.
  int header_bytes() const { return (gathered > 0 ? 4 : 1) * VectorIsa(isa).bytes; }
  int inputs() const { return gathered > 0 ? gathered : 1; }
  int64_t block_bytes() const {
    return header_bytes() + int64_t{window.taps()} * inputs() * VectorIsa(isa).bytes;
  }
};

// kUnsupported where windows or strides are too large to be unrolled.
Status CheckDepthwise(const DepthwiseSpec& spec);
// What the groups of rows have of the filter's rows, each once: entry i of the code computes groups
// whose windows have the taps patterns[i]. Groups follow each other from the first row on.
std::vector<RowTile> RowPatterns(const DepthwiseSpec& spec);
// The pattern of the group that begins with row `row`.
RowTile RowsAt(const DepthwiseSpec& spec, int32_t row);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const DepthwiseSpec& spec);
// Precondition: CheckDepthwise(spec).
Result<SharedCode> EmitDepthwise(const DepthwiseSpec& spec, const std::string& name);

}  // namespace fuselite::jit
