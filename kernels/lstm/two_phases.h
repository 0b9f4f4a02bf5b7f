// The frame of the fast LSTM kernels.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/lstm/lstm.h"

namespace fuselite::kernels {

// Phase 0 multiplies the inputs of all steps, so that the weights are read once for many rows;
// phase 1 goes through the steps, a unit for each row of the batch. Shared memory holds the sums of
// phase 0, row after row in the order of X.
class TwoPhaseLstm : public Kernel {
 public:
  std::string_view name() const final { return name_; }
  int phases() const final { return 2; }
  int64_t units(int phase) const final;
  int64_t grain(int phase) const final;
  size_t shared_bytes() const final;
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const final;

 protected:
  // Rows of a unit of phase 0.
  static constexpr int64_t kBlockRows = 16;
  // Bytes that may be read behind the last sum of phase 0: two vectors of any target.
  static constexpr size_t kVectorRoom = 128;

  TwoPhaseLstm(const OpDescription& op, size_t sum_bytes);
  // kUnsupported where the sums of all steps take so much that the reference is to run.
  Status CheckSharedBytes() const;

  // Writes the biases of all gates side by side, as the sums of a row lie: Sum is that of op input
  // kLstmBias. Null with layer normalization, since what is normalized gets its bias afterwards.
  template <typename Sum>
  const Sum* JoinBiases(const KernelArgs& args, Sum* joined) const;

  // The products of rows [first, first + rows) of X with the input weights; rows <= kBlockRows.
  virtual void MultiplyInputs(const KernelArgs& args, int64_t first, int64_t rows) const = 0;
  // All steps of row `b` of the batch.
  virtual void RunSteps(const KernelArgs& args, int64_t b) const = 0;

  const LstmShape s_;
  const int64_t row_;  // sums of one row: those of all gates that there are, side by side
  std::string name_;

 private:
  const int64_t sum_bytes_;
};

template <typename Sum>
const Sum* TwoPhaseLstm::JoinBiases(const KernelArgs& args, Sum* joined) const {
  if (s_.layer_norm) return nullptr;
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    std::copy_n(static_cast<const Sum*>(args.inputs[kLstmBias + gate]), s_.cells,
                joined + (gate - s_.first_gate()) * s_.cells);
  }
  return joined;
}

}  // namespace fuselite::kernels
