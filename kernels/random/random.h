// RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL: each run draws further numbers of a
// sequence that the seeds begin. What is drawn so far is state of the interpreter's, so that these
// run there alone; here are their parameters, shapes and the sequence.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/random/counter_based.h"

namespace fuselite::kernels {

struct RandomParams {
  int64_t seed, seed2;  // both 0: another sequence for each interpreter
};

// The sequence of TensorFlow's generator: Philox keyed by `seed`, with `seed2` in the upper half of
// its counter.
class RandomSequence {
 public:
  using Words = std::array<uint32_t, 4>;
  RandomSequence() = default;
  RandomSequence(uint64_t seed, uint64_t seed2)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{0, 0, static_cast<uint32_t>(seed2), static_cast<uint32_t>(seed2 >> 32)} {}

  Words Next() {
    const Words words = Philox4x32(key_, counter_);
    Skip(1);
    return words;
  }
  // Leaves out so many times four words.
  void Skip(uint64_t count);

 private:
  std::array<uint32_t, 2> key_{};
  std::array<uint32_t, 4> counter_{};
};

// The result lies in [0, 1) and has 23 or 52 random bits.
float UniformFloat(uint32_t word);
double UniformDouble(uint32_t high, uint32_t low);
// Two numbers of the normal distribution from two words, after Box and Muller.
std::array<float, 2> NormalFloats(uint32_t first, uint32_t second);

}  // namespace fuselite::kernels
