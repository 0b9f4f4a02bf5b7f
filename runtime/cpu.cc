#include "runtime/cpu.h"

#include <array>
#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define FUSELITE_X86 1
#endif

namespace fuselite {
namespace {

struct Level {
  Isa isa;
  std::string_view name;
};

constexpr std::array<Level, 9> kLevels = {{
    {Isa::kScalar, "scalar"},
    {Isa::kSsse3, "ssse3"},
    {Isa::kSse4, "sse4"},
    {Isa::kAvx2, "avx2"},
    {Isa::kAvxVnni, "avxvnni"},
    {Isa::kAvx512, "avx512"},
    {Isa::kAvx512Vnni, "avx512vnni"},
    {Isa::kAvx512Bf16, "avx512bf16"},
    {Isa::kNeon, "neon"},
}};

#if defined(FUSELITE_X86)

struct CpuidLeaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidLeaf Cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  CpuidLeaf r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// The registers whose state the operating system saves: bits 1 and 2 are XMM and YMM, 5 to 7 are
// the mask registers and the two halves of ZMM.
uint64_t ReadXcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

bool HasAll(uint32_t value, std::initializer_list<int> bits) {
  for (int bit : bits) {
    if (!(value >> bit & 1)) return false;
  }
  return true;
}

// Bit i: the machine runs the level with value i. Levels ask for what compilers and Highway use
// under the same name too: AES and CLMUL with SSE4, BMI and LZCNT with AVX2.
uint32_t DetectLevels() {
  const auto bit = [](Isa isa) { return 1u << static_cast<int>(isa); };
  uint32_t levels = bit(Isa::kScalar);
  const CpuidLeaf l1 = Cpuid(1), l7 = Cpuid(7), l7_1 = Cpuid(7, 1), ext = Cpuid(0x80000001);

  if (!HasAll(l1.ecx, {0, 9})) return levels;  // SSE3, SSSE3
  levels |= bit(Isa::kSsse3);
  if (!HasAll(l1.ecx, {1, 19, 20, 23, 25})) return levels;  // CLMUL, SSE4.1, SSE4.2, POPCNT, AES
  levels |= bit(Isa::kSse4);

  const bool os_saves = HasAll(l1.ecx, {27});  // OSXSAVE: xgetbv may be executed
  const uint64_t xcr0 = os_saves ? ReadXcr0() : 0;
  if ((xcr0 & 0x6) != 0x6) return levels;
  if (!HasAll(l1.ecx, {12, 22, 28, 29})) return levels;  // FMA, MOVBE, AVX, F16C
  if (!HasAll(l7.ebx, {3, 5, 8})) return levels;         // BMI1, AVX2, BMI2
  if (!HasAll(ext.ecx, {5})) return levels;              // LZCNT
  levels |= bit(Isa::kAvx2);
  if (HasAll(l7_1.eax, {4})) levels |= bit(Isa::kAvxVnni);

  if ((xcr0 & 0xE6) != 0xE6) return levels;
  if (!HasAll(l7.ebx, {16, 17, 28, 30, 31})) return levels;  // F, DQ, CD, BW, VL
  levels |= bit(Isa::kAvx512);
  if (!HasAll(l7.ecx, {11})) return levels;
  levels |= bit(Isa::kAvx512Vnni);
  if (HasAll(l7_1.eax, {5})) levels |= bit(Isa::kAvx512Bf16);
  return levels;
}

bool DetectVbmi() { return HasAll(Cpuid(7).ecx, {1}); }

#elif defined(__aarch64__)

bool DetectVbmi() { return false; }

uint32_t DetectLevels() {
  return 1u << static_cast<int>(Isa::kScalar) | 1u << static_cast<int>(Isa::kNeon);
}

#else

bool DetectVbmi() { return false; }

uint32_t DetectLevels() { return 1u << static_cast<int>(Isa::kScalar); }

#endif

uint32_t MachineLevels() {
  static const uint32_t levels = DetectLevels();
  return levels;
}

}  // namespace

std::string_view IsaName(Isa isa) {
  for (const Level& level : kLevels) {
    if (level.isa == isa) return level.name;
  }
  return "unknown";
}

std::optional<Isa> IsaFromName(std::string_view name) {
  for (const Level& level : kLevels) {
    if (level.name == name) return level.isa;
  }
  return std::nullopt;
}

bool Includes(Isa have, Isa need) {
  if (have == need || need == Isa::kScalar) return true;
  if (have == Isa::kNeon || need == Isa::kNeon || need == Isa::kAvxVnni) return false;
  return static_cast<int>(have) >= static_cast<int>(need);
}

bool HasFeature(CpuFeature feature) {
  static const bool vbmi =
      (MachineLevels() >> static_cast<int>(Isa::kAvx512) & 1) != 0 && DetectVbmi();
  return feature == CpuFeature::kAvx512Vbmi && vbmi;
}

Isa DetectIsa() { return RunnableIsas().back(); }

std::vector<Isa> RunnableIsas() {
  std::vector<Isa> isas;
  for (const Level& level : kLevels) {
    if (MachineLevels() >> static_cast<int>(level.isa) & 1) isas.push_back(level.isa);
  }
  return isas;
}

}  // namespace fuselite
