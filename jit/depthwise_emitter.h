// The inner functions of float32 depthwise convolutions: one row of outputs, vectors of channels.
#pragma once

#include <vector>

#include "jit/row_walker.h"
#include "jit/tail_emitter.h"

namespace fuselite::jit {

struct DepthwiseSpec {
  Isa isa = Isa::kAvx2;
  kernels::Window window;
  int64_t pixel_bytes = 0;  // between pixels of the input
  int64_t out_pixel_bytes = 0;
  int partial_lanes = 0;  // channels beyond the last whole vector
  kernels::Tail tail;     // emitted wholly (FuseTail)
};

// Computes one row of output pixels for `blocks` vectors of channels and, with `partial`, those
// beyond. `in` is where the first window would start, be it outside of the image: only taps inside
// are read. `weights` holds for each vector of channels the bias and then all taps.
struct DepthwiseArgs {
  const std::byte* in;
  const std::byte* weights;
  std::byte* out;
  int64_t blocks;
  int64_t partial;  // 0 or 1
  TailSlots operands;
};
using DepthwiseFunction = void(DepthwiseArgs* args);  // the arguments are consumed

// kUnsupported where windows or strides are too large to be unrolled.
Status CheckDepthwise(const DepthwiseSpec& spec);
// The ranges of filter rows that windows can have, each once: entry i of the code computes rows of
// outputs whose windows have the filter rows patterns[i].
std::vector<Taps> RowPatterns(const kernels::WindowAxis& y);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const DepthwiseSpec& spec);
// Precondition: CheckDepthwise(spec).
Result<SharedCode> EmitDepthwise(const DepthwiseSpec& spec, const std::string& name);
// Output pixels that are computed at once.
int DepthwiseTile(const DepthwiseSpec& spec);

}  // namespace fuselite::jit
