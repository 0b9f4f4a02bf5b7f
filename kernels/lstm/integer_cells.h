// What a step of the int8 LSTM does beside its products, with vectors.
#pragma once

#include "kernels/lstm/integer.h"
#include "kernels/lstm/integer_products.h"

namespace fuselite::kernels {

// A step of one row of the batch, behind its products. Arrays of gates hold those that there are
// side by side, `cells` values of each. Whole vectors are read and written: there is room for one
// behind each array, and what lies there counts nowhere. (A masked store costs more than a gate's
// arithmetic where the next step waits for it.)
struct IntegerLstmStep {
  const IntegerLstm* lstm;
  int64_t cells;
  int first_gate;
  const int16_t* from_input;  // what the inputs give, in steps of the gates' values
  const int32_t* from_state;  // sums of the products with the state
  int16_t* gates;
  int16_t* c;  // the cell state, in and out
  int8_t* hidden;
  IntegerRow left;  // the same as the next product reads them

  int64_t At(int gate) const { return (gate - first_gate) * cells; }
};

// to[i] = saturated(scaled sums[i]), `rows` times of `cells` values, which begin `pitch` and
// `to_pitch` values behind those before.
struct LstmInputSums {
  const int32_t* sums;
  int64_t rows, pitch, cells;
  int16_t* to;
  int64_t to_pitch;
};

struct IntegerLstmFunctions {
  void (*from_input)(const LstmInputSums& sums, const FixedPoint& by);
  // From the sums to the hidden values, where nothing else happens to the gates' values.
  void (*whole)(const IntegerLstmStep& step);
  // The same in three parts: to the gates' values, from them to the cell state, and from that and
  // the output gate to the hidden values.
  void (*gates)(const IntegerLstmStep& step);
  void (*update)(const IntegerLstmStep& step);
  void (*output)(const IntegerLstmStep& step);
  // y[i] = quantized sums[i] of the projection, and the same as the next product reads them.
  void (*project)(const IntegerLstm& lstm, const int32_t* sums, int64_t n, int8_t* y,
                  const IntegerRow& left);
};

// The version for `isa`; null below SSSE3.
const IntegerLstmFunctions* FindIntegerLstm(Isa isa);

}  // namespace fuselite::kernels
