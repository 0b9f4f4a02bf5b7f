// FUSELITE_BASIC_LSTM, resolved: what its reference and its Highway version share.
#pragma once

#include "kernels/lstm/lstm.h"
#include "kernels/numbers/quantization.h"

namespace fuselite::kernels {

namespace basic_lstm {
enum Input { kX, kPrevious, kWeights, kBias, kState };
enum Output { kActivation, kStateOut, kConcatenated, kSums };
// In the order in which the weights' rows have them.
enum Gate { kIn, kNew, kForget, kOut, kGates };
}  // namespace basic_lstm

struct BasicShape {
  explicit BasicShape(const OpDescription& op)
      : batch(op.inputs[basic_lstm::kX].shape[0]),
        width(op.inputs[basic_lstm::kX].shape[1]),
        cells(op.inputs[basic_lstm::kPrevious].shape[1]),
        keeps_states(!op.op->state_inputs.empty()) {}
  int64_t depth() const { return width + cells; }
  int64_t sums() const { return basic_lstm::kGates * cells; }
  int64_t batch, width, cells;
  bool keeps_states;
};

// The bytes that stand for 0 in inputs and activations.
inline constexpr int32_t kBasicLstmZeroPoint = 128;

// From the sums of uint8 products to those with 12 fractional bits. They are rounded twice, the
// second time with ties upwards: TFLite has no portable kernel for these products, and this is what
// those of its library of products (ruy) do.
FixedPoint BasicLstmScale(const OpDescription& op);

Result<KernelPlan> PlanBasicLstmHighway(const OpDescription&, const PlanContext&);

}  // namespace fuselite::kernels
