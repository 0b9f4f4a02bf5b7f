// The frame of the fast LSTM kernels.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "kernels/lstm/lstm.h"

namespace fuselite::kernels {

// Phase 0 multiplies the inputs of all steps, so that the weights are read once for many rows. Then
// the steps follow, in one of two ways.
//
// In turn: one phase, a unit for each row of the batch, or for some rows together, through all
// their steps.
//
// Shared: a phase for each step, a unit for each part of the cells, for all rows of the batch, and
// a last phase that keeps the output states. Threads share each step's recurrent weights, of which
// each finds its own part in its own cache at the next step; rows of a batch read them together.
//
// Each part of the cells has weights of its own. Shared memory holds the sums of phase 0: row after
// row in the order of X, in a row part after part, in a part gate after gate.
class FastLstm : public Kernel {
 public:
  std::string_view name() const final { return name_; }
  int phases() const final;
  int64_t units(int phase) const final;
  int64_t grain(int phase) const final;
  size_t shared_bytes() const final;
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const final;

 protected:
  // A part of the cells, and where its sums begin in a row of phase 0.
  struct Part {
    int64_t first = 0, cells = 0, sums_at = 0;
    int64_t sums = 0;  // of all gates that there are
  };
  // Rows of a unit of phase 0, and at most of a product of a shared step.
  static constexpr int64_t kBlockRows = 16;
  // Bytes that may be read behind the last sum of phase 0: two vectors of any target.
  static constexpr size_t kVectorRoom = 128;

  FastLstm(const OpDescription& op, size_t sum_bytes);
  // Decides how the steps are walked, by the bytes of a recurrent weight and the threads; all below
  // is known then.
  // kUnsupported where the sums of all steps take so much that the reference is to run.
  Status DivideCells(const PlanContext& context, int64_t weight_bytes);

  std::span<const Part> parts() const { return parts_; }
  // The most cells and sums of a part, and rows of the batch that go through a step together.
  int64_t part_cells() const { return parts_.front().cells; }
  int64_t part_sums() const { return parts_.front().sums; }
  int64_t rows_together() const { return rows_together_; }

  // The rows of `part` of each gate's weights, inputs `first` + gate of `op`, which Infer has found
  // to have one shape. One product with all of them has few sums in vectors that are not full.
  std::vector<TensorInfo> GateWeights(const OpDescription& op, int first, const Part& part) const;
  // Writes the biases of the part's gates side by side, as its sums lie: Sum is that of op input
  // kLstmBias. Null with layer normalization, since what is normalized gets its bias afterwards.
  template <typename Sum>
  const Sum* JoinBiases(const KernelArgs& args, const Part& part, Sum* joined) const;

  // Whether weights are read from their end at step `step`: what the step before read last is read
  // first, so that of weights that are larger than a cache a part is found there.
  bool Backwards(const KernelArgs& args, int64_t step) const {
    return turns_ && (step % 2 == 1) != args.odd_run();
  }
  // The output state of row `b` of the batch that a shared step finds, of the state's type T.
  template <typename T>
  const T* StateBefore(const KernelArgs& args, int64_t step, int64_t b) const {
    const void* rows = step == 0 ? args.inputs[kLstmOutputState] : args.outputs[0];
    return static_cast<const T*>(rows) + (step == 0 ? b : s_.Row(step - 1, b)) * s_.outputs;
  }
  // Values from it to that of the next row.
  int64_t StatePitch(int64_t step) const {
    return step == 0 || s_.time_major ? s_.outputs : s_.steps * s_.outputs;
  }

  // The products of rows [first, first + rows) of X with the input weights of part `part`;
  // rows <= kBlockRows.
  virtual void MultiplyInputs(const KernelArgs& args, size_t part, int64_t first,
                              int64_t rows) const = 0;
  // All steps of row `b` of the batch, whose cells are one part.
  virtual void RunSteps(const KernelArgs& args, int64_t b) const = 0;
  // Step `step` of part `part` of the cells, of rows [b, b + rows); rows <= rows_together(). The
  // output states stay as they are, and are read at step 0. Not called where there are peepholes,
  // normalizations or a projection.
  virtual void RunStep(const KernelArgs& args, int64_t step, size_t part, int64_t b,
                       int64_t rows) const = 0;

  const LstmShape s_;
  const int64_t row_;  // sums of one row: those of all gates that there are
  std::string name_;

 private:
  int64_t InputBlocks() const;
  int64_t BatchBlocks() const;
  // All steps of rows [b, b + rows).
  void RunTogether(const KernelArgs& args, int64_t b, int64_t rows) const;
  // Makes the last outputs of rows [b, b + rows) their states.
  void KeepState(const KernelArgs& args, int64_t b, int64_t rows) const;

  const int64_t sum_bytes_, state_bytes_;
  std::vector<Part> parts_;
  int64_t rows_together_ = 1;
  bool shares_steps_ = false, turns_ = false;
};

template <typename Sum>
const Sum* FastLstm::JoinBiases(const KernelArgs& args, const Part& part, Sum* joined) const {
  if (s_.layer_norm) return nullptr;
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    std::copy_n(static_cast<const Sum*>(args.inputs[kLstmBias + gate]) + part.first, part.cells,
                joined + (gate - s_.first_gate()) * part.cells);
  }
  return joined;
}

}  // namespace fuselite::kernels
