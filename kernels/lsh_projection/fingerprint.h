// FarmHash's fingerprint of 64 bits, whose values never change: LSH_PROJECTION's hash function.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fuselite::kernels {

// Keys may have any length; the machine is little-endian.
class Fingerprint {
 public:
  static uint64_t Of(const std::byte* s, size_t length) {
    if (length <= 16) return UpTo16(s, length);
    if (length <= 32) return UpTo32(s, length);
    return length <= 64 ? UpTo64(s, length) : Longer(s, length);
  }

 private:
  static constexpr uint64_t kA = 0xC3A5C85C97CB3127, kB = 0xB492B66FBE98F273,
                            kC = 0x9AE16A3B2F90404F;

  struct Pair {
    uint64_t first = 0, second = 0;
  };

  template <class T>
  static T Load(const std::byte* s) {
    T value;
    std::memcpy(&value, s, sizeof value);
    return value;
  }
  static uint64_t Word(const std::byte* s) { return Load<uint64_t>(s); }
  static uint64_t Mix(uint64_t x) { return x ^ (x >> 47); }
  static uint64_t Join(uint64_t x, uint64_t y, uint64_t factor) {
    const uint64_t a = Mix((x ^ y) * factor);
    return Mix((y ^ a) * factor) * factor;
  }
  static uint64_t Factor(size_t length) { return kC + length * 2; }

  static uint64_t UpTo16(const std::byte* s, size_t length) {
    if (length >= 8) {
      const uint64_t a = Word(s) + kC, b = Word(s + length - 8), factor = Factor(length);
      const uint64_t c = std::rotr(b, 37) * factor + a;
      return Join(c, (std::rotr(a, 25) + b) * factor, factor);
    }
    if (length >= 4) {
      const uint64_t a = Load<uint32_t>(s), b = Load<uint32_t>(s + length - 4);
      return Join(length + (a << 3), b, Factor(length));
    }
    if (length == 0) return kC;
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(s[i]); };
    const uint32_t y = byte(0) + (byte(length / 2) << 8);
    const uint32_t z = static_cast<uint32_t>(length) + (byte(length - 1) << 2);
    return Mix(y * kC ^ z * kA) * kC;
  }

  // What keys of up to 64 bytes make of four of their words.
  static Pair Quarters(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t added) {
    return {std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + added, 18) + c};
  }

  static uint64_t UpTo32(const std::byte* s, size_t length) {
    const uint64_t factor = Factor(length);
    const Pair x = Quarters(Word(s) * kB, Word(s + 8), Word(s + length - 8) * factor,
                            Word(s + length - 16) * kC, kC);
    return Join(x.first, x.second, factor);
  }

  static uint64_t UpTo64(const std::byte* s, size_t length) {
    const uint64_t factor = Factor(length), a = Word(s) * kC;
    const Pair ends =
        Quarters(a, Word(s + 8), Word(s + length - 8) * factor, Word(s + length - 16) * kC, kC);
    const uint64_t z = Join(ends.first, ends.second, factor);
    const Pair x =
        Quarters(Word(s + 16) * factor, Word(s + 24), (ends.first + Word(s + length - 32)) * factor,
                 (z + Word(s + length - 24)) * factor, a);
    return Join(x.first, x.second, factor);
  }

  // 32 bytes into a pair.
  static Pair Absorb(const std::byte* s, uint64_t a, uint64_t b) {
    a += Word(s);
    b = std::rotr(b + a + Word(s + 24), 21);
    const uint64_t c = a;
    a += Word(s + 8) + Word(s + 16);
    return {a + Word(s + 24), b + std::rotr(a, 44) + c};
  }

  struct State {
    uint64_t x, y, z;
    Pair v{}, w{};

    // 64 bytes; the last ones count `weight` times, which is 1 before the end.
    void Take(const std::byte* s, uint64_t factor, uint64_t weight) {
      x = std::rotr(x + y + v.first + Word(s + 8), 37) * factor;
      y = std::rotr(y + v.second + Word(s + 48), 42) * factor;
      x ^= w.second * weight;
      y += v.first * weight + Word(s + 40);
      z = std::rotr(z + w.first, 33) * factor;
      v = Absorb(s, v.second * factor, x + w.first);
      w = Absorb(s + 32, z + w.second, y + Word(s + 16));
      const uint64_t swapped = x;
      x = z;
      z = swapped;
    }
  };

  static uint64_t Longer(const std::byte* s, size_t length) {
    constexpr uint64_t kSeed = 81;
    const uint64_t y = kSeed * kB + 113;
    State state{kSeed * kC + Word(s), y, Mix(y * kC + 113) * kC};
    const size_t rest = (length - 1) % 64;
    const std::byte* const end = s + (length - 1) / 64 * 64;
    for (; s != end; s += 64) state.Take(s, kB, 1);
    const uint64_t factor = kB + ((state.z & 0xFF) << 1);
    state.w.first += rest;
    state.v.first += state.w.first;
    state.w.first += state.v.first;
    state.Take(end + rest - 63, factor, 9);
    return Join(Join(state.v.first, state.w.first, factor) + Mix(state.y) * kA + state.z,
                Join(state.v.second, state.w.second, factor) + state.x, factor);
  }
};

}  // namespace fuselite::kernels
