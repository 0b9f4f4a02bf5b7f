// How fast a decoder could be if only the memory counted.
#pragma once

#include <cstdint>

#include "interpreter/file/model.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::tools {

// Bytes of constants that the matrix products of a subgraph read in a run, as the file has them:
// block scales are counted, and weights behind DEQUANTIZE as they are before.
int64_t ProductWeightBytes(const interpreter::Model& model, int subgraph);

// Reads a block as large as a decoder's weights over and over, as fast as memory gives it: what a
// decoder that did nothing else would take for a token. The block lies as packed weights do, in
// huge pages where the system has them, and is as large, so that a cache keeps as much of it.
//
// What memory gives changes by a tenth or more from one moment to the next, where other machines
// share it. A pass is therefore to be compared with the run beside it, and the median of passes
// with the median of runs: the best of a few passes is a rate that no decoder can hold.
class WeightReader {
 public:
  // Reads with `threads` threads. `bytes` beyond 1 GiB are read as 1 GiB that many times slower.
  WeightReader(int64_t bytes, int threads);
  // Whether there is memory for the block, and anything to read.
  bool ready() const { return block_.data() != nullptr && bytes_ > 0; }
  // Seconds that one pass takes. Precondition: ready().
  double Pass() const;

 private:
  int64_t bytes_;
  int threads_;
  AlignedBuffer block_;
};

}  // namespace fuselite::tools
