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
// inside are read. `weights` holds for each vector of channels the bias and then all taps.
struct DepthwiseArgs {
  const std::byte* in;
  const std::byte* weights;
  std::byte* out;
  int64_t blocks;
  int64_t partial;  // 0 or 1
  TailSlots operands;
};
using DepthwiseFunction = void(DepthwiseArgs* args);  // the arguments are consumed

// Outputs that are computed at once. The tail's operands must be at constant steps over as many
// rows of pixels (DivideFloatTail).
struct DepthwiseTile {
  int rows = 1, columns = 1;
};
// At most `rows` rows.
DepthwiseTile ChooseDepthwiseTile(const kernels::Window& window, Isa isa, int rows);

struct DepthwiseSpec {
  Isa isa = Isa::kAvx2;
  kernels::Window window;
  DepthwiseTile tile;
  int64_t pixel_bytes = 0;  // between pixels of the input
  int64_t out_pixel_bytes = 0;
  int partial_lanes = 0;  // channels beyond the last whole vector
  kernels::Tail tail;     // emitted wholly (DivideFloatTail)
};

// kUnsupported where windows or strides are too large to be unrolled.
Status CheckDepthwise(const DepthwiseSpec& spec);
// What the groups of rows have of the filter's rows, each once: entry i of the code computes groups
// whose windows have the taps patterns[i]. Groups follow each other from the first row on.
std::vector<RowTile> RowPatterns(const DepthwiseSpec& spec);
// Those of the group that begins with row `row`.
RowTile RowsAt(const DepthwiseSpec& spec, int32_t row);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const DepthwiseSpec& spec);
// Precondition: CheckDepthwise(spec).
Result<SharedCode> EmitDepthwise(const DepthwiseSpec& spec, const std::string& name);

}  // namespace fuselite::jit
