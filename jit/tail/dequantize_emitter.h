// From integer sums to float32 in registers: what a product of activations quantized at run time
// does before its float tail.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/tail/tail_emitter.h"

namespace fuselite::jit {

// How a row of activations was quantized: x ~ scale * (u - zero_point), u an unsigned byte. Of
// int16 the zero point is taken off already, and 0.
struct RowScale {
  float scale;
  int32_t zero_point;
};

// What decides the code. The weights' scales are constants in memory, a vector for each vector of
// channels.
struct Dequantization {
  // TFLite rounds sum * (scale * weights' scale), and of CONV_2D with several scales
  // (sum * weights' scale) * scale.
  bool weights_first = false;
  bool row_zero_points = false;  // zero points differ from row to row
  bool per_row = true;           // rows have scales of their own, else all the same one
  kernels::Tail tail;            // of floats, emitted wholly (FuseTail)

  int64_t row_step() const { return per_row ? sizeof(RowScale) : 0; }
  std::string key() const;
};

// What becomes of sums whose activations were quantized at run time: float32, then the tail.
struct FloatOutput {
  std::vector<float> scales;      // of the weights: one, or one for each channel
  Dequantization dequantization;  // the tail's emitted part with it
  kernels::Tail rest;             // the tail's other part
  std::string why_rest;           // the reason why there is one
};

// The scales of one vector; lane i is channel channels[i], or nothing where negative.
void PackScales(std::span<const float> scales, std::span<const int64_t> channels, float* to);

// What the code reads that brings integer sums to the output, for the tile's first row and channel.
// Products and depthwise convolutions have it in their arguments.
struct SumTailArgs {
  const std::byte* residual;  // the operand's element
  const std::byte* layer;     // IntegerTail::layer, of the requantization
  const RowScale* scales;     // of the dequantization
  TailSlots operands;         // of its tail
};

// Where the code of a tile has what EmitFloats reads and writes.
struct FloatFrame {
  Xbyak::Reg64 args;  // SumTailArgs lie `tail_at` behind it
  int tail_at = 0;
  Xbyak::Reg64 scales;      // the first row's RowScale
  Xbyak::RegExp constants;  // the weights' scales of vector 0
  Xbyak::Reg64 out;         // where the tile's first value belongs
  int64_t out_step = 0;     // bytes between its rows
  Xbyak::Reg64 pointer;     // clobbered
  int temporaries[4] = {};  // vector registers, clobbered
};

// Sums of whole vectors, those of a row side by side, become floats, go through the tail, and are
// stored; the tail's operands are moved on by `rows`, the tile's.
void EmitFloats(Assembler& a, const Dequantization& d, std::span<const TileValue> values, int rows,
                const FloatFrame& frame);

}  // namespace fuselite::jit
