#include "runtime/cpu/isa.h"

#include "runtime/cpu/isa_x86.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#define FUSELITE_X86 1
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace fuselite {
namespace {

constexpr IsaPreset kPresets[] = {
    {"scalar", Isa::kScalar},
    {"ssse3", Isa::kSsse3, Feature::kSsse3},
    {"sse4", Isa::kSse4, Feature::kSse4},
    {"avx2", Isa::kAvx2, Feature::kAvx2},
    {"avxvnni", Isa::kAvxVnni, Feature::kAvxVnni},
    {"avx512", Isa::kAvx512, Feature::kAvx512},
    {"avx512vnni", Isa::kAvx512Vnni, Feature::kAvx512Vnni},
    {"avx512bf16", Isa::kAvx512Bf16, Feature::kAvx512Bf16},
    {"amx", Isa::kAmx, Feature::kAmxInt8},
    {"neon", Isa::kNeon, Feature::kNeon},
};

bool NamedWithin(const IsaPreset& preset, Isa isa) {
  return !preset.named_after || isa.has(*preset.named_after);
}

#if defined(FUSELITE_X86)

// Some feature of every set that has any.
constexpr Isa kArchitecture = Isa::kSsse3;

using internal::CpuidLeaf;

// Precondition: the processor has the leaf. Virtual machines trap the instruction, which then takes
// some 8 microseconds: __get_cpuid_count() executes it twice.
CpuidLeaf Cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidLeaf r;
  __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

// The registers whose state the operating system saves: bits 1 and 2 are XMM and YMM, 5 to 7 are
// the mask registers and the two halves of ZMM.
uint64_t ReadXcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// Whether the process may use the state of tiles. Linux allocates it only for those that asked
// (since 5.16), and threads and children inherit the permission.
bool MayUseTiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

Isa Detect() {
  return internal::DetectX86({[](uint32_t leaf, uint32_t subleaf) { return Cpuid(leaf, subleaf); },
                              [] { return ReadXcr0(); }, [] { return MayUseTiles(); }});
}

#elif defined(__aarch64__)

constexpr Isa kArchitecture = Isa::kNeon;

Isa Detect() {
  Isa isa = Isa::kNeon;
#if defined(__linux__)
  // Bits of the kernel's <asm/hwcap.h>, of which older headers lack the last two.
  if (getauxval(AT_HWCAP) >> 20 & 1) isa = isa.with(Feature::kDotProd);
  const unsigned long more = getauxval(AT_HWCAP2);
  if (more >> 13 & 1) isa = isa.with(Feature::kI8mm);
  if (more >> 14 & 1) isa = isa.with(Feature::kBf16);
#endif
  return isa;
}

#else

constexpr Isa kArchitecture;

Isa Detect() { return Isa(); }

#endif

}  // namespace

std::span<const IsaPreset> IsaPresets() { return kPresets; }

std::string_view IsaName(Isa isa) {
  std::string_view name;
  for (const IsaPreset& preset : kPresets) {
    if (NamedWithin(preset, isa)) name = preset.name;
  }
  return name;
}

std::optional<Isa> IsaFromName(std::string_view name) {
  for (const IsaPreset& preset : kPresets) {
    if (preset.name == name) return preset.isa;
  }
  return std::nullopt;
}

Isa DetectIsa() {
  static const Isa isa = Detect();
  return isa;
}

std::vector<Isa> RunnableIsas() {
  std::vector<Isa> isas;
  for (const IsaPreset& preset : kPresets) {
    if (NamedWithin(preset, DetectIsa())) isas.push_back(DetectIsa().CutTo(preset.isa));
  }
  return isas;
}

bool OfThisArchitecture(Isa isa) { return isa == Isa() || isa.includes(kArchitecture); }

}  // namespace fuselite
