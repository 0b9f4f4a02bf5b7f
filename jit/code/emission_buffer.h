// Where an assembler writes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace fuselite::jit {

// Memory for the code of one assembler. One buffer is kept for the next assembler: a model takes a
// hundred of them one after the other, and new memory would be cleared by the system page by page
// each time (EfficientNet: 400 of 5,200 page faults). Thread-safe.
class EmissionBuffer {
 public:
  // Untouched pages cost nothing; code that does not fit is refused by Xbyak.
  static constexpr size_t kBytes = size_t{2} << 20;

  // The one that is kept, or a new one. Throws std::bad_alloc.
  static EmissionBuffer Take();
  EmissionBuffer(EmissionBuffer&&) = default;
  EmissionBuffer& operator=(EmissionBuffer&&) = delete;
  // Keeps it, unless another one is kept.
  ~EmissionBuffer();

  uint8_t* data() { return memory_->bytes; }

 private:
  // Aligned as no label is more, so that labels stay aligned where the code is placed.
  struct alignas(64) Memory {
    uint8_t bytes[kBytes];
  };
  explicit EmissionBuffer(std::unique_ptr<Memory> memory) : memory_(std::move(memory)) {}
  static std::atomic<Memory*>& Kept();

  std::unique_ptr<Memory> memory_;
};

}  // namespace fuselite::jit
