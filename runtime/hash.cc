#include "runtime/hash.h"

#include <cstring>

namespace fuselite {
namespace {

__extension__ using Wide = unsigned __int128;

// Odd, with about half of the bits set: fractional parts of square roots of 2, 3, 5, 7.
constexpr uint64_t kKeys[4] = {0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B,
                               0xA54FF53A5F1D36F1};

// Both halves of the product folded: every bit of `a` reaches every bit of the result.
uint64_t Fold(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t Load64(const unsigned char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Two lanes take two words each, crosswise, so that a change of one word changes both.
struct Lanes {
  uint64_t a, b;
  void Mix(uint64_t x, uint64_t y, uint64_t key_a, uint64_t key_b) {
    a = Fold(a ^ x, key_a) + y;
    b = Fold(b ^ y, key_b) + x;
  }
};

}  // namespace

Hash128 HashBytes(const void* data, size_t bytes, uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  Lanes even{seed ^ kKeys[0], seed ^ kKeys[1]}, odd{seed ^ kKeys[2], seed ^ kKeys[3]};
  size_t left = bytes;
  // Two pairs of lanes hide the latency of the multiplications.
  for (; left >= 32; left -= 32, at += 32) {
    even.Mix(Load64(at), Load64(at + 8), kKeys[0], kKeys[1]);
    odd.Mix(Load64(at + 16), Load64(at + 24), kKeys[2], kKeys[3]);
  }
  if (left > 0) {
    unsigned char tail[32] = {};
    std::memcpy(tail, at, left);
    even.Mix(Load64(tail), Load64(tail + 8), kKeys[0], kKeys[1]);
    odd.Mix(Load64(tail + 16), Load64(tail + 24), kKeys[2], kKeys[3]);
  }
  even.Mix(odd.a, odd.b, kKeys[2], kKeys[3]);
  even.Mix(bytes, seed, kKeys[1], kKeys[0]);
  even.Mix(even.b, even.a, kKeys[3], kKeys[2]);
  return {even.a, even.b};
}

}  // namespace fuselite
