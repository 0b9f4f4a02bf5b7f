// How libFuzzer changes inputs that are .tflite files: half of the time their structure, else their
// bytes.
#include <algorithm>

#include "tests/fuzz/change_model.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace fuselite::fuzz {
namespace {

// Writes into libFuzzer's buffer; 0 where it does not fit.
size_t Store(const std::vector<std::byte>& from, uint8_t* to, size_t capacity) {
  if (from.size() > capacity) return 0;
  std::ranges::copy(std::as_bytes(std::span(from)), reinterpret_cast<std::byte*>(to));
  return from.size();
}

}  // namespace
}  // namespace fuselite::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace fuselite::fuzz;
  Random random(seed);
  if (random.Chance(0.5)) {
    const auto count = static_cast<int>(random.Int(1, 4));
    const auto changed = ChangeModel(std::as_bytes(std::span(data, size)), count, random);
    if (const size_t stored = Store(changed, data, max_size)) return stored;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                            const uint8_t* second, size_t second_size, uint8_t* out,
                                            size_t max_out_size, unsigned seed) {
  using namespace fuselite::fuzz;
  Random random(seed);
  return Store(JoinModels(std::as_bytes(std::span(first, first_size)),
                          std::as_bytes(std::span(second, second_size)), random),
               out, max_out_size);
}
