// Which instructions code may use and what the core is like that runs them: a set of features and
// traits, and the sets of features that have names.
//
// The choice of a kernel and its emission take an Isa as an argument and ask the machine for
// nothing, so any test can ask for any set. A feature is a line in Feature and one in the detection
// (isa_x86.cc, isa.cc), and so is a trait; a preset, which a user names with the option `isa`, is a
// constant below and a row in isa.cc.
#pragma once

#include <cstdint>
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
  kAmxBf16,  // tiles, and their products of bfloat16
  // aarch64
  kNeon,     // the baseline
  kDotProd,  // SDOT, UDOT
  kI8mm,     // SMMLA, UMMLA
  kBf16,
};

// What a core is like, where that decides between two ways to compute the same. Code of either way
// runs on every core that has its features.
enum class Trait : uint8_t {
  // All arithmetic of vectors of 64 bytes shares two ports, as on Intel's cores. What is spared
  // beside the multiply-adds makes room for more of these. Zen has four ports, of which
  // multiply-adds take two.
  kTwoVectorPorts,
  // The core's own prefetchers bring what a loop reads in order from L3 as fast as L3 gives it, as
  // on AMD's cores before Zen 5. Prefetches beside these loads take a part of their time: a Zen 4
  // reads 100 GB/s without and 82 with them.
  kFollowsStreams,
  // 16 floats are divided in about the time of five multiplications (2.6 cycles), as from Zen 5 on.
  // A Zen 4 takes 10 cycles.
  kDividesFast,
  // L2 has 2 MiB, as on Intel's cores from Sapphire Rapids on, the first with AVX-512 and AVX-VNNI.
  kLargeL2,
};

// A set of features and traits. Those that a feature builds upon are in a set beside it.
class Isa {
 public:
  constexpr Isa() = default;  // nothing
  constexpr bool has(Feature feature) const { return (bits_ & Bit(feature)) != 0; }
  constexpr bool has(Trait trait) const { return (bits_ & Bit(trait)) != 0; }
  constexpr bool includes(Isa other) const { return (bits_ & other.bits_) == other.bits_; }
  // Whether one instruction multiplies and sums four pairs of bytes in each lane of its largest
  // vector.
  constexpr bool has_vnni() const {
    return has(has(Feature::kAvx512) ? Feature::kAvx512Vnni : Feature::kAvxVnni);
  }
  constexpr bool has_vectors() const { return has(Feature::kSsse3) || has(Feature::kNeon); }
  constexpr Isa with(Feature feature) const { return Isa(bits_ | Bit(feature)); }
  constexpr Isa with(Trait trait) const { return Isa(bits_ | Bit(trait)); }
  constexpr Isa without(Feature feature) const { return Isa(bits_ & ~Bit(feature)); }
  constexpr Isa without(Trait trait) const { return Isa(bits_ & ~Bit(trait)); }
  // The features of this set that `preset` has, with all traits of this set: presets have none.
  // Nothing is left where no feature is.
  constexpr Isa CutTo(Isa preset) const {
    const uint32_t features = bits_ & preset.bits_ & kFeatures;
    return Isa(features == 0 ? 0 : features | (bits_ & ~kFeatures));
  }
  friend constexpr bool operator==(Isa, Isa) = default;
  // Distinct for distinct sets, for the keys of emitted code.
  constexpr uint32_t bits() const { return bits_; }

  // The presets.
  static const Isa kScalar, kSsse3, kSse4, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx,
      kNeon;

 private:
  static constexpr uint32_t kFeatures = 0xFFFFFF;  // their bits; those of traits are above
  static constexpr uint32_t Bit(Feature feature) { return 1u << static_cast<int>(feature); }
  static constexpr uint32_t Bit(Trait trait) { return 1u << (24 + static_cast<int>(trait)); }
  constexpr explicit Isa(uint32_t bits) : bits_(bits) {}

  uint32_t bits_ = 0;
};

inline constexpr Isa Isa::kScalar;
inline constexpr Isa Isa::kSsse3 = Isa::kScalar.with(Feature::kSsse3);
inline constexpr Isa Isa::kSse4 = Isa::kSsse3.with(Feature::kSse4);
inline constexpr Isa Isa::kAvx2 = Isa::kSse4.with(Feature::kAvx2);
inline constexpr Isa Isa::kAvxVnni = Isa::kAvx2.with(Feature::kAvxVnni);
inline constexpr Isa Isa::kAvx512 = Isa::kAvx2.with(Feature::kAvx512);  // Skylake's
// Processors have these from Ice Lake and Zen 4 on. Cascade Lake, which has no VBMI, is this one
// without it.
inline constexpr Isa Isa::kAvx512Vnni =
    Isa::kAvx512.with(Feature::kAvx512Vnni).with(Feature::kAvx512Vbmi);
inline constexpr Isa Isa::kAvx512Bf16 = Isa::kAvx512Vnni.with(Feature::kAvx512Bf16);
inline constexpr Isa Isa::kAmx = Isa::kAvx512Bf16.with(Feature::kAmxInt8).with(Feature::kAmxBf16);
inline constexpr Isa Isa::kNeon = Isa::kScalar.with(Feature::kNeon);

// A set that has a name. It is named after one feature: machines that have it are named so, even if
// they lack others of the set.
struct IsaPreset {
  std::string_view name;  // "avx512vnni"
  Isa isa;
  std::optional<Feature> named_after{};  // nullopt for the empty set
};
// All presets, ordered from the least to the greatest.
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
