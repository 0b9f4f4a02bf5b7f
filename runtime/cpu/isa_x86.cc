#include "runtime/cpu/isa_x86.h"

#include <initializer_list>

namespace fuselite {
namespace {

using internal::CpuidLeaf, internal::X86Machine;

bool HasAll(uint32_t value, std::initializer_list<int> bits) {
  for (int bit : bits) {
    if (!(value >> bit & 1)) return false;
  }
  return true;
}

Isa FindFeatures(const X86Machine& machine, uint32_t last) {
  Isa isa;
  constexpr uint32_t kFeatures = 1, kMoreFeatures = 7, kExtendedFeatures = 0x80000001;
  const CpuidLeaf l1 = machine.cpuid(kFeatures, 0);
  const CpuidLeaf l7 = last >= kMoreFeatures ? machine.cpuid(kMoreFeatures, 0) : CpuidLeaf();
  const CpuidLeaf l7_1 = l7.eax >= 1 ? machine.cpuid(kMoreFeatures, 1) : CpuidLeaf();
  const CpuidLeaf ext = machine.cpuid(kExtendedFeatures, 0);  // all that have 64 bits have it
  const auto add = [&](bool there, Feature feature) {
    if (there) isa = isa.with(feature);
    return there;
  };
  // SSE3, SSSE3
  if (!add(HasAll(l1.ecx, {0, 9}), Feature::kSsse3)) return isa;
  // CLMUL, SSE4.1, SSE4.2, POPCNT, AES
  if (!add(HasAll(l1.ecx, {1, 19, 20, 23, 25}), Feature::kSse4)) return isa;

  const bool os_saves = HasAll(l1.ecx, {27});  // OSXSAVE: xgetbv may be executed
  const uint64_t xcr0 = os_saves ? machine.xcr0() : 0;
  if ((xcr0 & 0x6) != 0x6) return isa;
  // FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
  const bool avx2 =
      HasAll(l1.ecx, {12, 22, 28, 29}) && HasAll(l7.ebx, {3, 5, 8}) && HasAll(ext.ecx, {5});
  if (!add(avx2, Feature::kAvx2)) return isa;
  add(HasAll(l7_1.eax, {4}), Feature::kAvxVnni);

  if ((xcr0 & 0xE6) != 0xE6) return isa;
  // F, DQ, CD, BW, VL
  if (!add(HasAll(l7.ebx, {16, 17, 28, 30, 31}), Feature::kAvx512)) return isa;
  add(HasAll(l7.ecx, {1}), Feature::kAvx512Vbmi);
  if (!add(HasAll(l7.ecx, {11}), Feature::kAvx512Vnni)) return isa;
  if (!add(HasAll(l7_1.eax, {5}), Feature::kAvx512Bf16)) return isa;
  // Bits 17 and 18 of XCR0 are the tiles' shapes and values; TILE; INT8, BF16.
  const bool tiles = (xcr0 & 0x60000) == 0x60000 && HasAll(l7.edx, {24}) && machine.may_use_tiles();
  add(tiles && HasAll(l7.edx, {25}), Feature::kAmxInt8);
  add(tiles && HasAll(l7.edx, {22}), Feature::kAmxBf16);
  return isa;
}

// Adds what the cores of the maker are like that have these features. Those of other makers have
// not been measured.
Isa WithTraits(Isa isa, uint32_t maker) {
  constexpr uint32_t kIntel = 0x756E6547, kAmd = 0x68747541;  // "Genu" and "Auth"
  if (maker == kIntel && isa.has(Feature::kAvx512)) {
    const Isa wide = isa.with(Trait::kTwoVectorPorts);
    return isa.has(Feature::kAvxVnni) ? wide.with(Trait::kLargeL2) : wide;
  }
  if (maker != kAmd || !isa.has(Feature::kAvx2)) return isa;
  // Zen 5 is the first of AMD's with AVX-VNNI.
  return isa.with(isa.has(Feature::kAvxVnni) ? Trait::kDividesFast : Trait::kFollowsStreams);
}

}  // namespace

Isa internal::DetectX86(const X86Machine& machine) {
  const CpuidLeaf first = machine.cpuid(0, 0);
  return WithTraits(FindFeatures(machine, first.eax), first.ebx);
}

}  // namespace fuselite
