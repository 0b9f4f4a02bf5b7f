// The inner functions of 8-bit depthwise convolutions: one row of outputs, one block of channels.
//
// Four neighbouring columns are interleaved, so that each 32-bit lane holds four values of one
// channel and vpdpbusd multiplies four taps at once. Neighbouring outputs share the columns: each
// has its own copy of the weights, shifted to where its window lies among them.
#pragma once

#include <vector>

#include "jit/assembler.h"
#include "jit/depthwise_emitter.h"
#include "jit/tail_emitter.h"

namespace fuselite::jit {

struct DepthwiseInt8Spec {
  Isa isa = Isa::kAvx512Vnni;
  kernels::Window window;
  bool is_signed = true;  // activations: int8, else uint8
  int32_t zero_point = 0;
  int64_t pixel_bytes = 0, out_pixel_bytes = 0;
  int32_t channels = 0;
  kernels::Tail tail;  // one stage that takes int32 (FuseQuantizedTail)

  int block_channels() const { return VectorIsa(isa).bytes; }
  // Of the last block, where it is not whole.
  int partial_channels() const { return channels % block_channels(); }
};

// How neighbouring outputs share columns.
struct ColumnPlan {
  int outputs = 1;  // that share
  int quads = 1;    // groups of four columns
  std::vector<int>
      shifts;  // the filter columns that quads begin with, relative to outputs; each once
};
ColumnPlan PlanColumns(const VectorIsa& isa, const kernels::WindowAxis& x);

// The bytes of one block's weights: 4 vectors of bias, for each filter row and shift 4 vectors of
// quadruples, then the channel data of 4 vectors. Vector i of four holds in its lane 4 l + r the
// channel 16 l + 4 i + r.
int64_t DepthwiseInt8BlockBytes(const DepthwiseInt8Spec& spec);

// Computes one row of output pixels for one block of channels.
struct DepthwiseInt8Args {
  const std::byte* in;  // where the first window would start, be it outside of the image
  const std::byte* weights;
  std::byte* out;
};
using DepthwiseInt8Function = void(const DepthwiseInt8Args* args);

Status CheckDepthwiseInt8(const DepthwiseInt8Spec& spec);
// Entry 2 i computes rows of outputs whose windows have the filter rows RowPatterns()[i], for whole
// blocks; entry 2 i + 1 for the partial one.
Result<SharedCode> EmitDepthwiseInt8(const DepthwiseInt8Spec& spec, const std::string& name);

}  // namespace fuselite::jit
