#include "jit/code/emission_buffer.h"

namespace fuselite::jit {

// It is never destroyed: threads of the host may outlive static destruction.
std::atomic<EmissionBuffer::Memory*>& EmissionBuffer::Kept() {
  static std::atomic<Memory*> kept;
  return kept;
}

EmissionBuffer EmissionBuffer::Take() {
  std::unique_ptr<Memory> kept(Kept().exchange(nullptr));
  return EmissionBuffer(kept ? std::move(kept) : std::make_unique_for_overwrite<Memory>());
}

EmissionBuffer::~EmissionBuffer() {
  Memory* none = nullptr;
  if (!memory_ || !Kept().compare_exchange_strong(none, memory_.get())) return;
  static_cast<void>(memory_.release());
}

}  // namespace fuselite::jit
