// Memory that executions hand to each other.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/memory/aligned_buffer.h"

namespace fuselite {

// What executions that never run at the same time gave up and the next of them takes: a network
// that is compiled for many shapes takes the memory of the largest one, and another shape finds
// pages that are there already. Not for several threads.
class SpareMemory {
 public:
  // At least `bytes`, with the contract of AlignedBuffer(bytes). Where no spare piece suffices, the
  // largest one is freed: the new piece takes its place, so that there are never more pieces than
  // one execution needs.
  AlignedBuffer Take(size_t bytes);
  // Keeps a piece for a later Take(). Small ones are freed: taking them anew costs as little.
  void Give(AlignedBuffer buffer) noexcept;

 private:
  std::vector<AlignedBuffer> pieces_;  // by size, the smallest first
};

}  // namespace fuselite
