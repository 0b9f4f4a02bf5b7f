// Fuselite's encoding against Xbyak's: the same bytes, for whatever operands.
#include "jit/code/vector_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "jit/code/assembler.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::jit {
namespace {

using kernels::testing::Random;
using Xbyak::CodeGenerator;
using Xbyak::Opmask;
using Xbyak::Xmm;
using Xbyak::Zmm;
using Bytes = std::vector<uint8_t>;

Bytes BytesOf(const CodeGenerator& code) {
  return {code.getCode(), code.getCode() + code.getSize()};
}

Place RandomPlace(Random& random) {
  const auto reg = [&] { return Xbyak::Reg64(static_cast<int>(random.Int(0, 15))); };
  Place place = reg();
  if (random.Chance(0.4)) {
    Xbyak::Reg64 index = reg();
    while (index.getIdx() == Xbyak::Operand::RSP) index = reg();
    place = place.Plus(index, random.Pick({1, 2, 4, 8}));
  }
  const int far =
      random.Pick({0, 64, 127 * 64, 128 * 64, -128 * 64, -129 * 64, 4, 508, 512, -512, -516,
                   static_cast<int>(random.Int(-20000, 20000)), INT32_MAX, INT32_MIN});
  return random.Chance(0.3) ? place : place + far;
}

// A register of `width` bytes, or memory.
template <class Use>
void WithOperand(Random& random, int width, bool broadcast, const Use& use) {
  const Memory at{RandomPlace(random), broadcast && random.Chance(0.5)};
  const Xmm& reg = VectorOf(static_cast<int>(random.Int(0, 31)), width);
  random.Chance(0.4) ? use(static_cast<const Xbyak::Operand&>(reg)) : use(at);
}

// Gives the bytes of what `emit` emits by Xbyak and by Assembler, which take the same calls.
template <class Emit>
void Compare(const Emit& emit) {
  CodeGenerator plain(4096);
  Assembler own(Isa::kAvx512);
  emit(plain);
  emit(own);
  ASSERT_EQ(BytesOf(own), BytesOf(plain));
}

TEST(VectorEncodingTest, EncodesAsXbyakDoes) {
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int width = random.Pick({16, 32, 64});
    // Half of the time those that VEX has, too.
    const int last = random.Chance(0.5) ? 15 : 31;
    const auto any = [&] { return VectorOf(static_cast<int>(random.Int(0, last)), width); };
    Xmm to = any();
    const Xmm x = any();
    const Opmask mask(static_cast<int>(random.Int(0, 7)));
    if (random.Chance(0.3)) to = to | Opmask(static_cast<int>(random.Int(1, 7)));
    if (to.getOpmaskIdx() != 0 && random.Chance(0.5)) to = to | Xbyak::EvexModifierZero();
    WithOperand(random, width, true, [&](const auto& y) {
      Compare([&](auto& a) { a.vpdpbusd(to, x, y); });
      Compare([&](auto& a) { a.vpdpbusd(to, x, y, Xbyak::EvexEncoding); });
      Compare([&](auto& a) { a.vpaddd(to, x, y); });
      Compare([&](auto& a) { a.vpxord(to, x, y); });
      Compare([&](auto& a) { a.vpmaxsd(to, x, y); });
      Compare([&](auto& a) { a.vpminsd(to, x, y); });
      Compare([&](auto& a) { a.vpternlogd(to, x, y, 0xF8); });
      Compare([&](auto& a) { a.vpackssdw(to, x, y); });
      Compare([&](auto& a) { a.vpcmpeqd(mask, x, y); });
      Compare([&](auto& a) { a.vaddps(to, x, y); });
      Compare([&](auto& a) { a.vmaxps(to, x, y); });
      Compare([&](auto& a) { a.vminps(to, x, y); });
      Compare([&](auto& a) { a.vfmadd213ps(to, x, y); });
      Compare([&](auto& a) { a.vfmadd231ps(to, x, y); });
      Compare([&](auto& a) { a.vcvtdq2ps(to, y); });
      Compare([&](auto& a) { a.vcvtps2dq(to, y); });
    });
    WithOperand(random, width, false, [&](const auto& y) {
      Compare([&](auto& a) { a.vpmaddwd(to, x, y); });
      Compare([&](auto& a) { a.vpaddsw(to, x, y); });
      Compare([&](auto& a) { a.vpacksswb(to, x, y); });
      Compare([&](auto& a) { a.vpackuswb(to, x, y); });
      Compare([&](auto& a) { a.vpunpcklbw(to, x, y); });
      Compare([&](auto& a) { a.vpunpckhbw(to, x, y); });
      Compare([&](auto& a) { a.vpunpcklwd(to, x, y); });
      Compare([&](auto& a) { a.vpunpckhwd(to, x, y); });
      Compare([&](auto& a) { a.vpermi2b(to, x, y); });
      Compare([&](auto& a) { a.vmovaps(to, y); });
      Compare([&](auto& a) { a.vmovups(to, y); });
    });
    const Memory place{RandomPlace(random)};
    const Xmm lane(static_cast<int>(random.Int(0, last)));
    Compare([&](auto& a) { a.vbroadcastss(to, place); });
    Compare([&](auto& a) { a.vpbroadcastd(to, place); });
    Compare([&](auto& a) { a.vbroadcastss(to, lane); });
    Compare([&](auto& a) { a.vpbroadcastd(to, lane); });
    Compare([&](auto& a) { a.vmovups(place, x); });
    Compare([&](auto& a) { a.vmovups(place | Opmask(2), x); });
  }
}

// Dot products of AVX-VNNI, whose vectors are the lower 16 of at most 32 bytes.
TEST(VectorEncodingTest, EncodesVexWhereItIsAskedFor) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int width = random.Pick({16, 32});
    const auto any = [&] { return VectorOf(static_cast<int>(random.Int(0, 15)), width); };
    const Xmm to = any(), x = any(), reg = any();
    const Memory place{RandomPlace(random)};
    Compare([&](auto& a) { a.vpdpbusd(to, x, reg, Xbyak::VexEncoding); });
    Compare([&](auto& a) { a.vpdpbusd(to, x, place, Xbyak::VexEncoding); });
  }
}

TEST(VectorEncodingTest, LeavesOtherOperandsToXbyak) {
  uint8_t code[kMostVectorBytes];
  const Zmm z(1);
  const Xbyak::Ymm y(1);
  const Xmm x(1);
  EXPECT_EQ(EncodeVector(vector_forms::kMove, z, nullptr, x, code), 0u);
  EXPECT_EQ(EncodeVector(vector_forms::kAdd, z, &y, z, code), 0u);
  EXPECT_EQ(EncodeVector(vector_forms::kMove, Opmask(1), nullptr, z, code), 0u);
  EXPECT_EQ(
      EncodeVector(vector_forms::kMove, z, nullptr,
                   z | Xbyak::EvexModifierRounding(Xbyak::EvexModifierRounding::T_RN_SAE), code),
      0u);
  Compare([&](auto& a) {
    Xbyak::Label label;
    a.vpaddd(z, z, a.ptr_b[a.rip + label]);
    a.vmovups(y, a.ptr[a.rip + label]);
    a.vpbroadcastd(z, Xbyak::Reg32(1));
    a.L(label);
  });
}

// An assembler whose memory is full says so as it does with other instructions.
TEST(VectorEncodingTest, StopsAtTheEndOfItsMemory) {
  Assembler a(Isa::kAvx512);
  EXPECT_THROW(
      {
        for (size_t i = 0; i <= EmissionBuffer::kBytes; ++i) a.vmovaps(Zmm(1), Zmm(2));
      },
      Xbyak::Error);
  EXPECT_LE(a.getSize(), EmissionBuffer::kBytes);
}

}  // namespace
}  // namespace fuselite::jit
