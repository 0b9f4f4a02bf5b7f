// The tail of integer sums, divided into what is emitted and what is left.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/tail/dequantize_emitter.h"
#include "jit/tail/integer_tail_emitter.h"
#include "jit/tail/residual_emitter.h"
#include "kernels/product/tail_rest.h"
#include "runtime/aligned_buffer.h"

namespace fuselite::jit {

// Where something is left it runs on the bytes that were stored; where nothing is emitted, on the
// sums.
struct IntegerTail {
  std::optional<Requantization> requantization;
  std::optional<Residual> residual;   // with a requantization
  RequantizationConstants constants;  // of `requantization`
  std::vector<uint8_t> table;         // of requantization->lookup
  // What the code of `requantization` reads for the layer.
  std::shared_ptr<const AlignedBuffer> layer;
  kernels::TailRest rest;
};

// How large sums get: without their bias, and biases.
struct SumBounds {
  int64_t products = 0, bias = 0;
};

// `tail` takes int32 sums within `bounds`. `whole_vectors`: groups of sums are of whole vectors,
// all through the channels.
IntegerTail DivideTail(kernels::Tail tail, DataType output, const VectorIsa& isa,
                       const SumBounds& bounds, bool whole_vectors);
// Finds floats and makes what the code reads, which takes too long for a plan: once, on a copy of
// what was planned, before the code is emitted.
Status PrepareTail(IntegerTail* tail, const VectorIsa& isa);
// What is left of float outputs: their dequantization is emitted in place of a requantization.
IntegerTail FloatTail(const FloatOutput& floats, DataType output, Isa isa);

// What decides the constants of a tail that are packed with weights, for PackRequest::layout. Null
// `floats`: `tail` was divided from an integer one.
std::string ConstantsKey(const FloatOutput* floats, const IntegerTail& tail);

}  // namespace fuselite::jit
