// Rows of two operands that broadcast, short ones joined to longer ones.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/elementwise/broadcast.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// Rows of n elements; steps and strides count elements. A step is 1, or 0 where one value is for
// the whole row. `out` may be x or y, element on element, where that has step 1.
struct RowBlock {
  const void *x, *y;
  void* out;
  int64_t x_stride, y_stride, out_stride;  // from row to row
  int x_step, y_step;
  int64_t rows, n;
};

// The rows of inputs 0 and 1, of one type, and of output 0. What a vector leaves over at a row's
// end takes as long as the vector: rows below some hundred elements are joined where their operands
// can be repeated in scratch; and where all rows that follow each other alike are so few, those of
// many such blocks. Results of joined rows of bytes that lie inside wider rows wait in scratch.
class JoinedRows {
 public:
  JoinedRows(const OpDescription& op, Isa isa);

  const BroadcastPlan& plan() const { return plan_; }
  size_t scratch_bytes() const;

  // f(block) for the blocks of units [begin, end) of the plan. Uses args.scratch.
  template <class F>
  void ForEach(const KernelArgs& args, int64_t begin, int64_t end, F f) const {
    if (is_one_block_) {
      RowBlock block = block_;
      block.x = args.inputs[0];
      block.y = args.inputs[1];
      block.out = args.outputs[0];
      return f(block);
    }
    if (blocks_together_ > 1) {
      for (int64_t unit = begin; unit < end; unit += blocks_together_) {
        f(JoinBlocks(args, unit, std::min(end, unit + blocks_together_)));
      }
      return;
    }
    const auto blocks = [&](const BroadcastPlan::Block& block) {
      const Joined joined = Join(args, block);
      for (int i = 0; i < joined.count; ++i) f(joined.blocks[i]);
      if (joined.results != nullptr) PutResults(args, block, joined.results);
    };
    draws_out_rows_ ? plan_.ForEachBlock(begin, end, blocks)
                    : plan_.ForEachLongBlock(begin, end, blocks);
  }

 private:
  // Rows of several old ones each, and what is left.
  struct Joined {
    RowBlock blocks[2];
    int count;
    const std::byte* results = nullptr;  // of all rows, where the output has gaps between them
  };
  Joined Join(const KernelArgs& args, const BroadcastPlan::Block& block) const;
  void PutResults(const KernelArgs& args, const BroadcastPlan::Block& block,
                  const std::byte* results) const;
  // Units [begin, end) as one row, operands that broadcast drawn out.
  RowBlock JoinBlocks(const KernelArgs& args, int64_t begin, int64_t end) const;
  // The rows of `block` of operand `k`, which begins at `data`, to `out`, one after the other.
  void GatherBlock(const BroadcastPlan::Block& block, int k, const std::byte* data,
                   std::byte* out) const;

  void FindOneBlock();

  // The block where one unit is all, as in the steps of unrolled recurrent networks, without its
  // addresses. It lies in front: of thousands of such steps each finds its numbers in L2 at best.
  bool is_one_block_ = false;
  RowBlock block_{};
  BroadcastPlan plan_;
  CopyLoops loops_;
  int64_t size_, out_size_;  // of an element, in bytes
  bool joins_;
  bool joins_results_;           // where the output has gaps between its rows
  bool draws_out_rows_ = false;  // row by row, to as many elements as a unit has
  int64_t blocks_together_ = 1;
  bool is_whole_[2] = {};  // operands that lie as the output does
};

}  // namespace fuselite::kernels
