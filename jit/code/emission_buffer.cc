#include "jit/code/emission_buffer.h"

namespace fuselite::jit {

// They are never destroyed: threads of the host may outlive static destruction.
EmissionBuffer::Places& EmissionBuffer::Kept() {
  static Places kept;
  return kept;
}

EmissionBuffer EmissionBuffer::Take() {
  for (std::atomic<Memory*>& place : Kept()) {
    if (Memory* kept = place.exchange(nullptr))
      return EmissionBuffer(std::unique_ptr<Memory>(kept));
  }
  return EmissionBuffer(std::make_unique_for_overwrite<Memory>());
}

EmissionBuffer::~EmissionBuffer() {
  if (!memory_) return;
  for (std::atomic<Memory*>& place : Kept()) {
    Memory* none = nullptr;
    if (!place.compare_exchange_strong(none, memory_.get())) continue;
    static_cast<void>(memory_.release());
    return;
  }
}

}  // namespace fuselite::jit
