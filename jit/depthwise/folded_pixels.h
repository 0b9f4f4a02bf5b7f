// Depthwise convolutions of few channels, which leave most of a vector empty: neighbouring pixels
// as the channels of one.
//
// Where windows lie one pixel apart, the bytes that n neighbouring outputs meet in one tap follow
// each other in memory, as those outputs do. They are an output of n times as many channels, whose
// windows lie n pixels apart; filters, biases and scales stand n times behind each other. A column
// of the image is then not shared by several windows any more. Where they do not fill the row the
// last output is moved back to the row's end, and computes some of its neighbour's once more.
#pragma once

#include <vector>

#include "jit/depthwise/depthwise_s8.h"

namespace fuselite::jit {

// How many outputs to take as one; 1 where that does not pay or cannot be.
// `problem` is whole but for where the image lies, with a filter for each channel.
int32_t FoldedPixels(const DepthwiseS8Problem& problem, Isa isa);

// Makes `problem` take `pixels` outputs as one. Its image must be dense and its window unpadded.
void FoldPixels(int32_t pixels, DepthwiseS8Problem* problem);

// Each row of `channels` values, `pixels` times behind each other. Nothing where `from` is null.
template <class T>
std::vector<T> RepeatRows(const T* from, int64_t rows, int64_t channels, int32_t pixels) {
  std::vector<T> repeated;
  if (from == nullptr) return repeated;
  repeated.reserve(static_cast<size_t>(rows * channels * pixels));
  for (int64_t row = 0; row < rows; ++row, from += channels) {
    for (int32_t i = 0; i < pixels; ++i) repeated.insert(repeated.end(), from, from + channels);
  }
  return repeated;
}

}  // namespace fuselite::jit
