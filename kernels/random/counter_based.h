// Random numbers as functions of a key and a counter, so that any of them can be had at once.
//
// J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace fuselite::kernels {

// Threefry with 2 words of 32 bits and 20 rounds.
inline std::array<uint32_t, 2> Threefry2x32(const std::array<uint32_t, 2>& key,
                                            const std::array<uint32_t, 2>& counter) {
  constexpr uint32_t kParity = 0x1BD11BDA;
  constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ kParity};
  uint32_t x = counter[0] + keys[0], y = counter[1] + keys[1];
  for (uint32_t round = 0; round < 20; ++round) {
    x += y;
    y = std::rotl(y, kRotations[round % 8]) ^ x;
    if (round % 4 != 3) continue;
    const uint32_t injection = round / 4 + 1;
    x += keys[injection % 3];
    y += keys[(injection + 1) % 3] + injection;
  }
  return {x, y};
}

// Philox with 4 words of 32 bits and 10 rounds.
inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 2> key,
                                          std::array<uint32_t, 4> counter) {
  constexpr uint64_t kMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t kWeyl[2] = {0x9E3779B9, 0xBB67AE85};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kMultipliers[0] * counter[0], b = kMultipliers[1] * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kWeyl[0];
    key[1] += kWeyl[1];
  }
  return counter;
}

}  // namespace fuselite::kernels
