// The walk of a tile of a matrix product over the depth: where the rows' values and the weights lie
// at each step. What a step computes is its emitter's.
#pragma once

#include <cstdint>
#include <functional>

#include "jit/code/assembler.h"
#include "kernels/product/rows.h"

namespace fuselite::jit {

using kernels::DepthRuns;

// Whether the loops of a product of lines of so many rows by so many bytes of weights take one step
// at a time. A single row waits for weights from beyond L1, which the prefetcher brings that
// follows the addresses of each load instruction: those of an unrolled loop are a page and more
// apart, those of a rolled one as far as a step's weights. On a Zen 5 (L1 of 48 KiB) dot products
// of 512 by 512 take 1.05 us rolled, 1.7 us in loops of 4 or 8 steps; weights within L1 take 2%
// longer rolled.
bool RollsLoops(int64_t line_rows, int64_t weights_bytes);

// Whether the code of a walk over `depth` fits an emission buffer and can address what it reads.
// `values`: of a step, of `value_bytes` bytes each; `extent`: how many bytes a tile spans beside
// the depth.
Status CheckDepth(const DepthRuns& depth, int64_t values, int64_t value_bytes, int64_t extent);

class DepthWalker {
 public:
  static constexpr int kBases = 4;        // row base registers
  static constexpr int kRowsPerBase = 5;  // base + {0, 1, 2, 3, 4} steps
  static constexpr int kMaxRows = kBases * kRowsPerBase;
  static constexpr int kStepBytes = 4;  // of values that a step reads

  struct Registers {
    Xbyak::Reg64 a;        // the tile's first row
    Xbyak::Reg64 weights;  // those of the next step
    Xbyak::Reg64 step, step3;
    Xbyak::Reg64 bases[kBases];
    Xbyak::Reg64 count, outer;  // of loops
  };
  // `values` values make a step. `rolled`: loops take one step at a time, as single rows want whose
  // weights come from beyond L1 (RollsLoops).
  DepthWalker(Assembler& assembler, const DepthRuns& depth, int64_t values, bool rolled,
              const Registers& registers)
      : a_(assembler), depth_(depth), values_(values), rolled_(rolled), r_(registers) {}

  // Call once in each function, for rows `row_step` bytes apart, in `runs`.
  void Prepare(int64_t row_step, const kernels::RowRuns& runs);
  // Call before each tile: the rows are those at `a`, the weights those at `weights`.
  void Start(int rows);
  // Calls `step` for every step, in order; it reads `values` values, of which the last step of a
  // run may have fewer, and adds to the sums of one of `chains` chains. `accumulators`: of the
  // tile, those of all chains.
  using Step = std::function<void(int64_t displacement, int64_t values, int chain)>;
  void Walk(int accumulators, int chains, const Step& step);
  // Calls it for a step of `values` values at `displacement`, behind all others.
  void Once(int64_t displacement, int64_t values, const Step& step) const {
    step(displacement - a_offset_, values, 0);
  }
  // Call behind the last step: the register `weights` is then where Weights(0) is.
  void Settle() { Flush(a_offset_); }

  // Within a step: the values of a row; `offset` bytes behind the next weights.
  Place RowValue(int row, int64_t displacement) const;
  Place Weights(int64_t offset) const { return Place(r_.weights) + (w_offset_ + offset); }
  // The next weights are `bytes` further.
  void SkipWeights(int64_t bytes) { w_offset_ += bytes; }

 private:
  void WalkRun(int64_t origin, const DepthRuns::Run& run, int accumulators, int chains,
               const Step& step);
  // Moves the row bases to `a_offset`, and the weights' register to the next weights.
  void Flush(int64_t a_offset);
  void MoveBases(int64_t bytes);

  // Rows in runs are addressed from the first: their distances fit no multiples of one step.
  int bases() const { return runs_.rows != 0 ? 1 : (rows_ + kRowsPerBase - 1) / kRowsPerBase; }

  int64_t Unroll(int64_t steps, int accumulators) const;

  Assembler& a_;
  const DepthRuns& depth_;
  int64_t values_;
  bool rolled_;
  Registers r_;
  int64_t row_step_ = 0;
  kernels::RowRuns runs_;
  int rows_ = 0;
  // The next weights, relative to the register; where the bases stand, relative to their rows'
  // values.
  int64_t w_offset_ = 0, a_offset_ = 0;
};

}  // namespace fuselite::jit
