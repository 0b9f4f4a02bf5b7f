// Which instructions code may use: a set of features, and the sets that have names.
//
// The choice of a kernel and its emission take an Isa as an argument and ask the machine for
// nothing, so any test can ask for any set. A feature is a line in Feature and one in the detection
// of isa.cc; a preset, which a user names with the option `isa`, is a constant below and a row in
// isa.cc.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fuselite {

enum class Feature : uint8_t {
  // x86-64, each with what compilers and Highway use under the same name.
  kSsse3,
  kSse4,        // with CLMUL, AES and POPCNT
  kAvx2,        // with FMA, F16C, BMI and LZCNT
  kAvxVnni,     // dot products of 8 bits in their VEX form
  kAvx512,      // F, BW, CD, DQ, VL
  kAvx512Vnni,  // dot products of 8 bits in their EVEX form
  kAvx512Vbmi,  // bytes permuted across a whole vector
  kAvx512Bf16,
  kAmxInt8,  // tiles, and their products of 8 bits
  // No instruction: all arithmetic of vectors of 64 bytes shares two ports, as on Intel's cores.
  // What is spared beside the multiply-adds makes room for more of these. Zen has four ports, of
  // which multiply-adds take two.
  kTwoVectorPorts,
  // No instruction: the core's own prefetchers bring what a loop reads in order from L3 as fast as
  // L3 gives it, as on AMD's cores before Zen 5. Prefetches beside these loads take a part of their
  // time: a Zen 4 reads 100 GB/s without and 82 with them.
  kFollowsStreams,
  // aarch64
  kNeon,     // the baseline
  kDotProd,  // SDOT, UDOT
  kI8mm,     // SMMLA, UMMLA
  kBf16,
};

// A set of features. Those that a feature builds upon are in a set beside it.
class Isa {
 public:
  constexpr Isa() = default;  // no feature
  constexpr bool has(Feature feature) const { return (bits_ & Bit(feature)) != 0; }
  constexpr bool includes(Isa other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr bool has_vectors() const { return has(Feature::kSsse3) || has(Feature::kNeon); }
  constexpr Isa with(Feature feature) const { return Isa(bits_ | Bit(feature)); }
  constexpr Isa without(Feature feature) const { return Isa(bits_ & ~Bit(feature)); }
  friend constexpr Isa operator&(Isa a, Isa b) { return Isa(a.bits_ & b.bits_); }
  friend constexpr bool operator==(Isa, Isa) = default;
  // Distinct for distinct sets, for the keys of emitted code.
  constexpr uint32_t bits() const { return bits_; }

  // The presets.
  static const Isa kScalar, kSsse3, kSse4, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx,
      kNeon;

 private:
  static constexpr uint32_t Bit(Feature feature) { return 1u << static_cast<int>(feature); }
  constexpr explicit Isa(uint32_t bits) : bits_(bits) {}

  uint32_t bits_ = 0;
};

inline constexpr Isa Isa::kScalar;
inline constexpr Isa Isa::kSsse3 = Isa::kScalar.with(Feature::kSsse3);
inline constexpr Isa Isa::kSse4 = Isa::kSsse3.with(Feature::kSse4);
inline constexpr Isa Isa::kAvx2 = Isa::kSse4.with(Feature::kAvx2).with(Feature::kFollowsStreams);
inline constexpr Isa Isa::kAvxVnni = Isa::kAvx2.with(Feature::kAvxVnni);
inline constexpr Isa Isa::kAvx512 =  // Skylake's
    Isa::kAvx2.with(Feature::kAvx512).with(Feature::kTwoVectorPorts);
// Processors have these from Ice Lake and Zen 4 on. Cascade Lake, which has no VBMI, is this one
// without it.
inline constexpr Isa Isa::kAvx512Vnni =
    Isa::kAvx512.with(Feature::kAvx512Vnni).with(Feature::kAvx512Vbmi);
inline constexpr Isa Isa::kAvx512Bf16 = Isa::kAvx512Vnni.with(Feature::kAvx512Bf16);
inline constexpr Isa Isa::kAmx = Isa::kAvx512Bf16.with(Feature::kAmxInt8);
inline constexpr Isa Isa::kNeon = Isa::kScalar.with(Feature::kNeon);

// A set that has a name. It is named after one feature: machines that have it are named so, even if
// they lack others of the set.
struct IsaPreset {
  std::string_view name;  // "avx512vnni"
  Isa isa;
  std::optional<Feature> named_after{};  // nullopt for the empty set
};
// They are ordered from the least to the greatest.
std::span<const IsaPreset> IsaPresets();

// The name of the greatest preset whose feature `isa` has.
std::string_view IsaName(Isa isa);
std::optional<Isa> IsaFromName(std::string_view name);  // nullopt for an unknown name

// All that the machine has on which the process runs, the operating system's state included. Where
// there are tiles the first call asks the kernel to let the process use them, which it refuses
// where a thread's alternate signal stack has no room for their 8 KiB; then they are not in the
// set.
Isa DetectIsa();
// The presets that this machine can run, each cut to what it has, from the empty one up: what tests
// iterate over.
std::vector<Isa> RunnableIsas();
// Whether this build's architecture has features of the set, or the set is empty.
bool OfThisArchitecture(Isa isa);

}  // namespace fuselite
