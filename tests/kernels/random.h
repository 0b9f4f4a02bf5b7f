// Numbers that repeat: for a seed, or for the bytes that a fuzzer mutates.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <string>

namespace fuselite::kernels::testing {

// Put SCOPED_TRACE(random.Trace()) into a random case, so that its seed is printed on failure.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed), engine_(seed) {}
  // Draws from `bytes`, a few at a time, as long as there are any: what a fuzzer changes in them
  // changes one decision. Then from a generator, so that the values of tensors need no bytes.
  explicit Random(std::span<const uint8_t> bytes)
      : seed_(bytes.size()), engine_(bytes.size()), bytes_(bytes) {}

  std::string Trace() const { return "seed " + std::to_string(seed_); }
  // The result lies in [low, high], both included.
  int64_t Int(int64_t low, int64_t high) {
    const uint64_t count = static_cast<uint64_t>(high - low + 1);
    return low + static_cast<int64_t>(count == 0 ? Draw(8) : Draw(BytesFor(count)) % count);
  }
  float Float(float low, float high) {
    return low + (high - low) * static_cast<float>(engine_() >> 40) * 0x1p-24f;
  }
  bool Chance(double p) {
    if (!bytes_.empty()) return static_cast<double>(Draw(1)) < p * 256;
    return static_cast<double>(engine_() >> 11) * 0x1p-53 < p;
  }
  template <class T>
  T Pick(std::initializer_list<T> of) {
    return *(of.begin() + Int(0, static_cast<int64_t>(of.size()) - 1));
  }

 private:
  static size_t BytesFor(uint64_t count) { return count <= 256 ? 1 : count <= 65536 ? 2 : 8; }
  uint64_t Draw(size_t bytes) {
    if (bytes_.empty()) return engine_();
    uint64_t number = 0;
    for (; bytes > 0 && !bytes_.empty(); --bytes) {
      number = number << 8 | bytes_.front();
      bytes_ = bytes_.subspan(1);
    }
    return number;
  }

  uint64_t seed_;
  std::mt19937_64 engine_;
  std::span<const uint8_t> bytes_;
};

}  // namespace fuselite::kernels::testing
