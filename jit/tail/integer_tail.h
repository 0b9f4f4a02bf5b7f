// The tail of integer sums, divided into what is emitted and what is left.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "jit/tail/sum_tail.h"
#include "kernels/tail/rest.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::jit {

// Where something is left it runs on the bytes that were stored; where nothing is emitted, on the
// sums.
struct IntegerTail {
  SumTail emitted;
  RequantizationConstants constants;  // of emitted.requantization
  ChannelValues<float> scales;        // of the weights, with emitted.dequantization
  ChannelValues<uint8_t> table;       // of the requantization's lookup
  // What its code reads for the layer.
  std::shared_ptr<const AlignedBuffer> layer;
  kernels::TailRest rest;

  const std::byte* layer_bytes() const { return layer ? layer->data() : nullptr; }
  // The constants that the code reads for one vector (emitted.constants() of its size); lane i is
  // channel channels[i], or nothing where negative. A null bias is zeros. The requantization adds
  // to the vector's `first_sums` (RequantizationConstants::Pack).
  void PackConstants(std::span<const int64_t> channels, const int32_t* bias, int32_t* first_sums,
                     std::byte* to) const;
  // What decides them, for PackRequest::layout.
  std::string constants_key() const;
};

// `tail` takes int32 sums within `bounds`. All rows of a call of the code are among `rows_of_call`
// that follow each other, the first a multiple of as many; 0: any rows of the output.
IntegerTail DivideIntegerTail(kernels::Tail tail, DataType output, const VectorIsa& isa,
                              const SumBounds& bounds, int64_t rows_of_call);
// Finds floats and makes what the code reads, which takes too long for a plan: once, on a copy of
// what was planned, before the code is emitted.
Status PrepareTail(IntegerTail* tail, const VectorIsa& isa);
// The tail of float outputs, where a dequantization is emitted in place of a requantization.
IntegerTail FloatTail(FloatOutput floats, DataType output, Isa isa);

}  // namespace fuselite::jit
