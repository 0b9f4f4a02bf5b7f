#include "runtime/cpu/float_state.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fuselite {
namespace {

// What a thread starts with, and the sticky flags. On aarch64 those are in another register.
#if defined(__x86_64__)
constexpr uint64_t kDefault = 0x1F80, kSticky = 0x3F;
uint64_t Read() { return _mm_getcsr(); }
void Write(uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
constexpr uint64_t kDefault = 0, kSticky = 0;
uint64_t Read() {
  uint64_t state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
void Write(uint64_t state) { __asm__ volatile("msr fpcr, %0" ::"r"(state)); }
#else
constexpr uint64_t kDefault = 0, kSticky = 0;
uint64_t Read() { return kDefault; }
void Write(uint64_t) {}
#endif

}  // namespace

namespace internal {

uint64_t ReadFloatState() { return Read() & ~kSticky; }

// Writing takes longer than reading.
void WriteFloatState(uint64_t state) {
  if (state != ReadFloatState()) Write(state);
}

}  // namespace internal

// Reading takes some ten cycles: once.
DefaultFloatState::DefaultFloatState() : before_(Read()) {
  if ((before_ & ~kSticky) != kDefault) Write(kDefault);
}

DefaultFloatState::~DefaultFloatState() {
  if ((before_ & ~kSticky) != kDefault) Write(before_);
}

}  // namespace fuselite
