// HashBytes against XXH3 as the header alone computes it.
#include "runtime/weights/hash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fuselite {
namespace {

// The length from which on another function may compute the hash is among them.
TEST(HashTest, IsXxh3WhateverTheLengthAndTheMachine) {
  std::minstd_rand random(1);
  std::vector<uint8_t> bytes(3 << 16);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 8);
  for (const size_t length :
       {0u, 1u, 17u, 200u, 241u, 1023u, 4095u, 4096u, 4097u, 5000u, 65536u, 65537u, 196000u}) {
    for (const size_t from : {0u, 1u, 13u}) {
      for (const uint64_t seed : {uint64_t{0}, uint64_t{0x1234567890ABCDEF}}) {
        const XXH128_hash_t expected = XXH3_128bits_withSeed(bytes.data() + from, length, seed);
        const Hash128 hash = HashBytes(bytes.data() + from, length, seed);
        EXPECT_EQ(hash.low, expected.low64) << length << " bytes from " << from;
        EXPECT_EQ(hash.high, expected.high64) << length << " bytes from " << from;
      }
    }
  }
}

}  // namespace
}  // namespace fuselite
