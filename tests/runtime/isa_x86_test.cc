// What is found of made-up x86 machines: each lacks one thing.
#include "runtime/cpu/isa_x86.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fuselite::internal {
namespace {

// A machine that has all there is, as registers.
struct Machine {
  uint32_t vendor = 0x756E6547, last_leaf = 32, last_subleaf = 2;
  uint32_t features = ~0u, extended = ~0u;                  // ecx of leaves 1 and 0x80000001
  uint32_t more_ebx = ~0u, more_ecx = ~0u, more_edx = ~0u;  // of leaf 7
  uint32_t subleaf_eax = ~0u;                               // of leaf 7, subleaf 1
  uint64_t xcr0 = ~uint64_t{0};
  bool tiles = true;
};

// The features that are found, and that nothing is asked for that is not there.
Isa Found(const Machine& m) {
  const auto cpuid = [&](uint32_t leaf, uint32_t subleaf) -> CpuidLeaf {
    if (leaf == 0) return {.eax = m.last_leaf, .ebx = m.vendor};
    if (leaf == 1) return {.ecx = m.features};
    if (leaf == 0x80000001) return {.ecx = m.extended};
    EXPECT_EQ(leaf, 7u);
    EXPECT_GE(m.last_leaf, 7u);
    if (subleaf == 0) return {m.last_subleaf, m.more_ebx, m.more_ecx, m.more_edx};
    EXPECT_EQ(subleaf, 1u);
    EXPECT_GE(m.last_subleaf, 1u);
    return {.eax = m.subleaf_eax};
  };
  const auto xcr0 = [&] {
    EXPECT_TRUE(m.features >> 27 & 1);
    return m.xcr0;
  };
  const auto tiles = [&] {
    EXPECT_EQ(m.xcr0 & 0x60000, 0x60000u);
    return m.tiles;
  };
  return DetectX86({cpuid, xcr0, tiles});
}

const Isa kAll =
    Isa::kAmx.with(Feature::kAvxVnni).with(Trait::kTwoVectorPorts).with(Trait::kLargeL2);
const Isa kNoAvxVnni = kAll.without(Feature::kAvxVnni).without(Trait::kLargeL2);
const Isa kNoTiles = kAll.without(Feature::kAmxInt8).without(Feature::kAmxBf16);

std::vector<int> Bits(std::initializer_list<int> bits) { return bits; }

TEST(X86Features, AreAllThereWhereAllIsThere) { EXPECT_EQ(Found({}).bits(), kAll.bits()); }

// Without one of these bits, so much is left.
TEST(X86Features, WantEachOfTheirBits) {
  struct Case {
    uint32_t Machine::*word;
    std::vector<int> bits;
    Isa left;
  };
  const Isa no_bf16 = kNoTiles.without(Feature::kAvx512Bf16);
  const Case cases[] = {
      {&Machine::features, Bits({0, 9}), Isa()},
      {&Machine::features, Bits({1, 19, 20, 23, 25}), Isa::kSsse3},
      {&Machine::features, Bits({12, 22, 27, 28, 29}), Isa::kSse4},
      {&Machine::more_ebx, Bits({3, 5, 8}), Isa::kSse4},
      {&Machine::extended, Bits({5}), Isa::kSse4},
      {&Machine::subleaf_eax, Bits({4}), kNoAvxVnni},
      {&Machine::more_ebx, Bits({16, 17, 28, 30, 31}), Isa::kAvxVnni},
      {&Machine::more_ecx, Bits({1}), kAll.without(Feature::kAvx512Vbmi)},
      {&Machine::more_ecx, Bits({11}), no_bf16.without(Feature::kAvx512Vnni)},
      {&Machine::subleaf_eax, Bits({5}), no_bf16},
      {&Machine::more_edx, Bits({24}), kNoTiles},
      {&Machine::more_edx, Bits({25}), kAll.without(Feature::kAmxInt8)},
      {&Machine::more_edx, Bits({22}), kAll.without(Feature::kAmxBf16)},
  };
  for (const Case& c : cases) {
    for (const int bit : c.bits) {
      Machine machine;
      machine.*c.word &= ~(1u << bit);
      EXPECT_EQ(Found(machine).bits(), c.left.bits()) << "case " << &c - cases << ", bit " << bit;
    }
  }
}

TEST(X86Features, WantASystemThatSavesTheirRegisters) {
  for (const auto& [bit, left] : {std::pair{1, Isa::kSse4},
                                  {2, Isa::kSse4},
                                  {5, Isa::kAvxVnni},
                                  {6, Isa::kAvxVnni},
                                  {7, Isa::kAvxVnni},
                                  {17, kNoTiles},
                                  {18, kNoTiles}}) {
    Machine machine;
    machine.xcr0 &= ~(uint64_t{1} << bit);
    EXPECT_EQ(Found(machine).bits(), left.bits()) << bit;
  }
  Machine machine;
  machine.tiles = false;
  EXPECT_EQ(Found(machine).bits(), kNoTiles.bits());
}

TEST(X86Features, AreAskedOfLeavesThatThereAre) {
  Machine old;
  old.last_leaf = 6;
  EXPECT_EQ(Found(old).bits(), Isa(Isa::kSse4).bits());
  Machine few;
  few.last_subleaf = 0;
  EXPECT_EQ(Found(few).bits(), kNoTiles.without(Feature::kAvxVnni)
                                   .without(Trait::kLargeL2)
                                   .without(Feature::kAvx512Bf16)
                                   .bits());
}

// Cores of other makers are taken for what they have been seen to be.
TEST(X86Features, TellTheMaker) {
  Machine machine;
  machine.vendor = 0x68747541;  // "Auth", of AuthenticAMD
  const Isa zen5 = kAll.without(Trait::kTwoVectorPorts).without(Trait::kLargeL2);
  EXPECT_EQ(Found(machine).bits(), zen5.with(Trait::kDividesFast).bits());
  machine.subleaf_eax &= ~(1u << 4);
  const Isa zen4 = zen5.without(Feature::kAvxVnni);
  EXPECT_EQ(Found(machine).bits(), zen4.with(Trait::kFollowsStreams).bits());
  machine.vendor = 0x746E6543;  // "Cent", of CentaurHauls
  EXPECT_EQ(Found(machine).bits(), zen4.bits());
  // A core without vectors has no trait.
  machine.vendor = 0x68747541;
  machine.xcr0 = 0;
  EXPECT_EQ(Found(machine).bits(), Isa(Isa::kSse4).bits());
}

}  // namespace
}  // namespace fuselite::internal
