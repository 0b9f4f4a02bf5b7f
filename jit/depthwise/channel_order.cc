#include "jit/depthwise/channel_order.h"

namespace fuselite::jit {

namespace {

// Quads are the 16 bytes of a vector: of vector v quad q, channels 4 (group q + v) and on.
constexpr uint8_t kLowQuads = 0x44, kHighQuads = 0xEE, kEvenQuads = 0x88, kOddQuads = 0xDD;
constexpr uint8_t kMiddleSwapped = 0xD8;

// Four by four quads are transposed, of which `used` vectors count.
void TransposeQuads(Assembler& a, std::span<const int> r, std::span<const int> t, size_t used) {
  const auto shuffle = [&](int to, int x, int y, uint8_t quads) {
    a.vshuff32x4(Xbyak::Zmm(to), Xbyak::Zmm(x), Xbyak::Zmm(y), quads);
  };
  shuffle(t[0], r[0], r[1], kLowQuads);
  shuffle(t[1], r[2], r[3], kLowQuads);
  if (used > 2) shuffle(t[2], r[0], r[1], kHighQuads);
  if (used > 2) shuffle(t[3], r[2], r[3], kHighQuads);
  for (size_t i = 0; i < used; ++i) {
    shuffle(r[i], t[i / 2 * 2], t[i / 2 * 2 + 1], i % 2 == 0 ? kEvenQuads : kOddQuads);
  }
}

// The quads of two vectors in turn.
void InterleaveQuads(Assembler& a, std::span<const int> r, std::span<const int> t, size_t used) {
  for (size_t i = 0; i < used; ++i) {
    a.vshuff32x4(Xbyak::Zmm(t[i]), Xbyak::Zmm(r[0]), Xbyak::Zmm(r[1]),
                 i == 0 ? kLowQuads : kHighQuads);
  }
  for (size_t i = 0; i < used; ++i) {
    a.vshuff32x4(Xbyak::Zmm(r[i]), Xbyak::Zmm(t[i]), Xbyak::Zmm(t[i]), kMiddleSwapped);
  }
}

}  // namespace

std::vector<int> EmitChannelOrder(Assembler& a, std::span<const int> regs, int width,
                                  std::span<const int> temporaries) {
  const size_t used = regs.size() * width / a.isa().bytes;
  if (a.isa().avx512) {
    (regs.size() == 4 ? TransposeQuads : InterleaveQuads)(a, regs, temporaries, used);
    return {regs.begin(), regs.begin() + static_cast<int>(used)};
  }
  // Low quads of each pair, then high ones.
  std::vector<int> low, high;
  for (size_t i = 0; i < regs.size(); i += 2) {
    const Xbyak::Ymm x(regs[i]), y(regs[i + 1]), t(temporaries[0]);
    a.vinsertf128(t, x, Xbyak::Xmm(regs[i + 1]), 1);
    a.vperm2f128(y, x, y, 0x31);
    a.vmovaps(x, t);
    low.push_back(regs[i]);
    high.push_back(regs[i + 1]);
  }
  if (used == regs.size()) low.insert(low.end(), high.begin(), high.end());
  return low;
}

}  // namespace fuselite::jit
