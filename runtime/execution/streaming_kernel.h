// What a kernel offers beside Run() where its time is that of reading constants from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fuselite {

// A kernel that is a StreamingKernel too reads constants front to back, once in a run: a fully
// connected layer of one row. Execution asks by dynamic_cast when it is made. Units are those of
// the last phase.
class StreamingKernel {
 public:
  virtual ~StreamingKernel() = default;
  // What units from `begin` on read, in this order: threads with nothing else to do bring the
  // first of it closer. Empty where a cache is expected to hold it.
  virtual std::span<const std::byte> StreamFrom(int64_t begin) const = 0;
};

}  // namespace fuselite
