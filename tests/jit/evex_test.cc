// Our encoding against Xbyak's: the same bytes, for whatever operands.
#include "jit/code/evex.h"

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
using Xbyak::Zmm;
using Bytes = std::vector<uint8_t>;

Bytes BytesOf(const CodeGenerator& code) {
  return {code.getCode(), code.getCode() + code.getSize()};
}

Xbyak::RegExp RandomPlace(Random& random) {
  const auto reg = [&] { return Xbyak::Reg64(static_cast<int>(random.Int(0, 15))); };
  Xbyak::RegExp place = reg();
  if (random.Chance(0.4)) {
    Xbyak::Reg64 index = reg();
    while (index.getIdx() == Xbyak::Operand::RSP) index = reg();
    place = place + index * random.Pick({1, 2, 4, 8});
  }
  const int far =
      random.Pick({0, 64, 127 * 64, 128 * 64, -128 * 64, -129 * 64, 4, 508, 512, -512, -516,
                   static_cast<int>(random.Int(-20000, 20000)), INT32_MAX, INT32_MIN});
  return random.Chance(0.3) ? place : place + far;
}

// A register of a width, or memory.
template <class Use>
void WithOperand(Random& random, bool broadcast, const Use& use) {
  const Xbyak::Address at(512, broadcast && random.Chance(0.5), RandomPlace(random));
  const Zmm reg(static_cast<int>(random.Int(0, 31)));
  random.Chance(0.4) ? use(static_cast<const Xbyak::Operand&>(reg))
                     : use(static_cast<const Xbyak::Operand&>(at));
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

TEST(EvexTest, EncodesAsXbyakDoes) {
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto any = [&] { return static_cast<int>(random.Int(0, 31)); };
    Zmm to(any());
    const Zmm x(any());
    const Opmask mask(static_cast<int>(random.Int(0, 7)));
    if (random.Chance(0.3)) to = to | Opmask(static_cast<int>(random.Int(1, 7)));
    if (to.getOpmaskIdx() != 0 && random.Chance(0.5)) to = to | Xbyak::EvexModifierZero();
    WithOperand(random, true, [&](const Xbyak::Operand& y) {
      Compare([&](auto& a) { a.vpdpbusd(to, x, y); });
      Compare([&](auto& a) { a.vpdpbusd(to, x, y, Xbyak::EvexEncoding); });
      Compare([&](auto& a) { a.vpaddd(to, x, y); });
      Compare([&](auto& a) { a.vpxord(to, x, y); });
      Compare([&](auto& a) { a.vpackssdw(to, x, y); });
      Compare([&](auto& a) { a.vpcmpeqd(mask, x, y); });
      Compare([&](auto& a) { a.vfmadd213ps(to, x, y); });
      Compare([&](auto& a) { a.vfmadd231ps(to, x, y); });
      Compare([&](auto& a) { a.vcvtdq2ps(to, y); });
      Compare([&](auto& a) { a.vcvtps2dq(to, y); });
    });
    WithOperand(random, false, [&](const Xbyak::Operand& y) {
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
    const Xbyak::Address place(512, false, RandomPlace(random));
    Compare([&](auto& a) { a.vbroadcastss(to, place); });
    const Xbyak::Xmm lane(any());
    Compare([&](auto& a) { a.vbroadcastss(to, lane); });
    Compare([&](auto& a) { a.vmovups(place, x); });
    Compare([&](auto& a) { a.vmovups(place | Opmask(2), x); });
  }
}

TEST(EvexTest, LeavesOtherOperandsToXbyak) {
  uint8_t code[kMostEvexBytes];
  const Zmm z(1);
  const Xbyak::Ymm y(1);
  const Xbyak::Xmm x(1);
  EXPECT_EQ(EncodeEvex(evex::kMove, y, nullptr, y, code), 0u);
  EXPECT_EQ(EncodeEvex(evex::kMove, z, nullptr, x, code), 0u);
  EXPECT_EQ(EncodeEvex(evex::kAdd, z, &y, z, code), 0u);
  EXPECT_EQ(EncodeEvex(evex::kMove, Opmask(1), nullptr, z, code), 0u);
  EXPECT_EQ(
      EncodeEvex(evex::kMove, z, nullptr,
                 z | Xbyak::EvexModifierRounding(Xbyak::EvexModifierRounding::T_RN_SAE), code),
      0u);
  Compare([&](auto& a) {
    Xbyak::Label label;
    a.vpaddd(z, z, a.ptr_b[a.rip + label]);
    a.vmovups(y, a.ptr[a.rax + 8]);
    a.vmovaps(x, x);
    a.vpaddd(y, y, y);
    a.L(label);
  });
}

// An assembler whose memory is full says so as it does with other instructions.
TEST(EvexTest, StopsAtTheEndOfItsMemory) {
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
