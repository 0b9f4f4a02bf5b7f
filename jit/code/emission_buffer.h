// Where an assembler writes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace fuselite::jit {

// Memory for the code of one assembler. Some buffers are kept for the next assemblers, one for each
// of a few threads that emit at once: a model takes a hundred of them one after the other, and new
// memory would be cleared by the system page by page each time (EfficientNet: 400 of 5,200 page
// faults). Thread-safe.
class EmissionBuffer {
 public:
  // Untouched pages cost nothing; code that does not fit is refused by Xbyak.
  static constexpr size_t kBytes = size_t{2} << 20;

  // A buffer that is kept, or a new one. Throws std::bad_alloc.
  static EmissionBuffer Take();
  EmissionBuffer(EmissionBuffer&&) = default;
  EmissionBuffer& operator=(EmissionBuffer&&) = delete;
  // Keeps the buffer, unless enough are kept.
  ~EmissionBuffer();

  uint8_t* data() { return memory_->bytes; }

 private:
  // Aligned as no label is more, so that labels stay aligned where the code is placed.
  struct alignas(64) Memory {
    uint8_t bytes[kBytes];
  };
  explicit EmissionBuffer(std::unique_ptr<Memory> memory) : memory_(std::move(memory)) {}
  using Places = std::array<std::atomic<Memory*>, 8>;
  static Places& Kept();

  std::unique_ptr<Memory> memory_;
};

}  // namespace fuselite::jit
