// From integer sums to float32 in registers: what a product of activations quantized at run time
// does before its float tail.
#pragma once

#include <span>
#include <string>

#include "jit/tail/tail_emitter.h"
#include "kernels/product/source.h"

namespace fuselite::jit {

using kernels::RowScale;

// What decides the code. The weights' scales are constants in memory, a vector for each vector of
// channels.
struct Dequantization {
  // TFLite rounds sum * (scale * weights' scale), and of CONV_2D with several scales
  // (sum * weights' scale) * scale.
  bool weights_first = false;
  bool row_zero_points = false;  // zero points differ from row to row
  bool per_row = true;           // rows have scales of their own, else all the same one
  kernels::Tail tail;            // of floats, emitted wholly (DivideFloatTail)

  int64_t row_step() const { return per_row ? sizeof(RowScale) : 0; }
  std::string key() const;
};

// What becomes of sums whose activations were quantized at run time: float32, then the tail.
struct FloatOutput {
  ChannelValues<float> scales;    // of the weights: one, or one for each channel
  Dequantization dequantization;  // the tail's emitted part with it
  kernels::Tail rest;             // the tail's other part
  std::string why_rest;           // the reason why there is one
};

// The scales of one vector; lane i is channel channels[i], or nothing where negative.
void PackScales(std::span<const float> scales, std::span<const int64_t> channels, float* to);

// Sums of whole vectors, those of a row side by side, become floats. `scales` points to the tile's
// first row's RowScale, `constants` to the weights' scales of vector 0; `t0` and `t1` are vector
// registers, clobbered.
void EmitDequantization(Assembler& a, const Dequantization& d, std::span<const TileValue> values,
                        const Xbyak::Reg64& scales, const Place& constants, int t0, int t1);

}  // namespace fuselite::jit
