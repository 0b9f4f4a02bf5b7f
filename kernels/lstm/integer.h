// The int8 form of LSTM, resolved: what its reference and its Highway version share.
#pragma once

#include "kernels/lstm/lstm.h"
#include "kernels/numbers/quantization.h"

namespace fuselite::kernels {

// Layer normalization of a gate.
struct IntegerLstmNorm {
  FixedPoint scale;        // of the coefficients
  int32_t least_variance;  // stands for a variance below 1
};

// Scales and zero points, as TFLite derives them (in float where it does).
struct IntegerLstm {
  // Sums of products to those of a gate: 12 fractional bits, or the scale of op.intermediates[gate]
  // where it is normalized.
  FixedPoint input[kLstmGates], recurrent[kLstmGates], peephole[kLstmGates];
  IntegerLstmNorm norm[kLstmGates];
  FixedPoint hidden, projection;
  // What is added to the hidden value; where it is projected, TFLite's kernel takes the model's
  // zero point with the other sign here and adds it again in the product.
  int32_t hidden_zero_point;
  int32_t x_zero_point, h_zero_point;
  int cell_log2;       // the cell state's scale is 2^cell_log2, -15 to -9
  int32_t cell_clip;   // 32768: none
  int32_t state_clip;  // of what the projection gives: StateClip
};

Result<IntegerLstm> ResolveIntegerLstm(const OpDescription& op);

// `scale` as a multiplier and a shift; Unsupported unless it is positive.
Result<FixedPoint> PositiveScale(float scale);

// A bound of `clip` steps, whole ones, at most `largest`; `largest` + 1, which bounds nothing,
// where there is not one: TFLite takes a clip of less than a step for none.
int32_t ClipInSteps(float clip, int32_t largest);

// The bound of what the projection gives, in steps of the output; 128 where the model names none.
// Precondition: the output's scale is positive.
int32_t StateClip(const OpDescription& op);

// The form of integer_bytes.cc.
bool IsByteLstm(const OpDescription& op);
Status CheckByteLstm(const OpDescription& op);
Result<std::unique_ptr<Kernel>> BuildByteLstm(const OpDescription& op);

// gate[i] += weight times cell state, by `scale`, for the cells of row `b` of the batch. TFLite's
// kernel goes through the cells of the batch as if there were one for each output: behind a
// projection to fewer outputs, cells are given the weights of others, and the last ones none. The
// second rounding of a product takes ties upwards in whole blocks of 16 outputs, which TFLite's
// vectors compute, and away from zero behind them.
void AddPeephole(const LstmShape& shape, const int16_t* weights, const int16_t* cells, int64_t b,
                 const FixedPoint& scale, int16_t* gate);

// The gate's sums, normalized over the cells: 12 fractional bits.
void NormalizeGate(const IntegerLstmNorm& norm, const int16_t* coefficients, const int32_t* bias,
                   int64_t cells, int16_t* gate);

}  // namespace fuselite::kernels
