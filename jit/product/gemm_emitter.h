// The inner function of every float32 matrix product: tiles of rows x channels accumulated in
// registers over the whole depth, then bias and tail, then stored. Values and weights are float32,
// or bfloat16 that are multiplied in pairs; sums, bias and tail are float32 either way.
#pragma once

#include <span>
#include <string>

#include "jit/product/depth_walker.h"
#include "jit/tail/tail_emitter.h"
#include "kernels/product/micro_kernel.h"
#include "kernels/tail/tail.h"

namespace fuselite::jit {

using kernels::Tile;

// What all tiles of one matrix product share. Strides are in bytes.
struct GemmSpec {
  Isa isa = Isa::kAvx2;
  bool bf16 = false;  // the rows' values are bfloat16; `isa` has AVX512-BF16
  DepthRuns depth;
  int64_t a_step = 0;       // from a row of a tile to the next of its run
  kernels::RowRuns a_runs;  // a tile has whole ones
  int64_t out_step = 0;
  bool bf16_out = false;          // the output is rounded to bfloat16; `isa` has AVX512-BF16
  bool across = false;            // tiles go across: panels are as long as a tile reads of one
  bool rolled = false;            // loops take one step at a time (RollsLoops)
  bool prefetch_weights = false;  // they come from beyond L2
  // AMX (gemm_amx_bf16_emitter.h): the rows of a block. 0: sums are in vector registers.
  int amx_rows = 0;
  int fetched_parts = 1;  // with `prefetch_weights`, AmxWalker::Ahead::parts
  kernels::Tail tail;     // emitted wholly (DivideFloatTail)

  // Bytes between the channels of two vectors in the output.
  int out_vector_bytes() const { return VectorIsa(isa).lanes() * (bf16_out ? 2 : 4); }
  // The values that a lane multiplies at a time, which are four bytes.
  int64_t step_values() const { return bf16 ? 2 : 1; }
  int64_t steps() const { return depth.steps(step_values()); }
};

// Computes `tiles` tiles in the order of TileOrder. `panel` holds, for `vectors` vectors of
// channels, the bias and then the weights of each step in the order of DepthRuns (bfloat16: a pair
// in each lane, zero behind a run of odd length); lanes beyond last_lanes are there, and ignored.
// 64-byte alignment of panels is faster, nothing needs it. Nothing outside of the rows' values is
// read, nothing outside of the tiles' channels is written.
struct GemmArgs {
  const std::byte* a;
  const std::byte* panel;
  std::byte* out;
  int64_t tiles;
  const std::byte* ahead;       // the code's own
  kernels::TailSlots operands;  // of the tail, at the first tile
};
using GemmFunction = void(GemmArgs* args);  // the arguments are consumed

// Stores a value of a tile whose first one belongs at `out`. Clobbers its register, and
// `temporary`.
void StoreTileValue(Assembler& assembler, const GemmSpec& spec, const Place& out,
                    const TileValue& value, int temporary);

// The most rows that a tile of `vectors` vectors can have.
int MaxTileRows(const VectorIsa& isa, int vectors);

// kUnsupported where strides do not fit instructions.
Status CheckGemm(const GemmSpec& spec);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const GemmSpec& spec, std::span<const Tile> tiles);
// Entry i computes tiles[i]. Precondition: CheckGemm(spec).
Result<SharedCode> EmitGemm(const GemmSpec& spec, std::span<const Tile> tiles,
                            const std::string& name);

}  // namespace fuselite::jit
