// What an emitted function does with its integer sums before they are stored: the part of a tail
// that is code (SumTailEmitter), and what that code reads.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "jit/tail/dequantize_emitter.h"
#include "jit/tail/requantization.h"
#include "jit/tail/residual_emitter.h"

namespace fuselite::jit {

// At most one of the first two is set. With neither, the sums are stored as int32.
struct SumTail {
  std::optional<Requantization> requantization;
  std::optional<Dequantization> dequantization;
  std::vector<Residual> residuals;  // with a requantization; kMostResiduals at most

  bool stores_sums() const { return !requantization && !dequantization; }
  // Whether rows have zero points of their own, by which biases are multiplied.
  bool row_zero_points() const { return dequantization && dequantization->row_zero_points; }
  // The furthest from row to row of a residual.
  int64_t longest_residual_step() const;
  // The bytes of an element that is stored.
  int out_bytes() const { return requantization ? 1 : 4; }
  // Vectors of constants behind each other for each vector of channels: those of the
  // requantization, or the weights' scales.
  int constants() const {
    return requantization ? requantization->constants() : dequantization ? 1 : 0;
  }
  // Everything that decides the code.
  std::string key() const;
};

// What the code reads, for the first row and channel that it computes. Products and depthwise
// convolutions have it in their arguments; members that a tail does not read are left alone.
struct SumTailArgs {
  std::array<const std::byte*, kMostResiduals> residuals;  // the operands' elements
  const std::byte* layer;       // IntegerTail::layer, of the requantization
  const RowScale* scales;       // of the dequantization
  kernels::TailSlots operands;  // of its tail
};

// Fills them in. What it reads for bytes comes first and lies together: products are called often,
// and the weights that pass in between leave little else in L1.
class SumTailBinding {
 public:
  SumTailBinding() = default;
  // The tail's operands are addressed by rows of the output.
  explicit SumTailBinding(const SumTail& tail);
  // IntegerTail::layer, which the caller keeps.
  void set_layer(const std::byte* layer) { layer_ = layer; }

  // `scales`: the row's, of a dequantization.
  void Bind(const void* const* inputs, int64_t row, int64_t channel, const RowScale* scales,
            SumTailArgs* args) const {
    args->layer = layer_;
    for (size_t r = 0; r < residual_count_; ++r) {
      const ResidualOperand& y = residuals_[r];
      args->residuals[r] = static_cast<const std::byte*>(inputs[y.input]) + y.RowAt(row) + channel;
    }
    if (!dequantizes_) return;
    args->scales = scales;
    kernels::BindTailOperands(floats_, inputs, row, channel, &args->operands);
  }

 private:
  struct ResidualOperand {
    int64_t row_stride = 0, batch_stride = 0, rows_per_batch = INT64_MAX;
    int input = -1;

    int64_t RowAt(int64_t row) const {
      if (rows_per_batch == INT64_MAX) return row * row_stride;
      return row / rows_per_batch * batch_stride + row % rows_per_batch * row_stride;
    }
  };

  const std::byte* layer_ = nullptr;
  bool dequantizes_ = false;
  size_t residual_count_ = 0;
  std::array<ResidualOperand, kMostResiduals> residuals_;
  kernels::Tail floats_;
};

}  // namespace fuselite::jit
