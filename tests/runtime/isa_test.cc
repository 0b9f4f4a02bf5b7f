#include "runtime/cpu/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace fuselite {
namespace {

constexpr Feature kFeatures[] = {Feature::kSsse3,      Feature::kSse4,       Feature::kAvx2,
                                 Feature::kAvxVnni,    Feature::kAvx512,     Feature::kAvx512Vnni,
                                 Feature::kAvx512Vbmi, Feature::kAvx512Bf16, Feature::kAmxInt8,
                                 Feature::kAmxBf16,    Feature::kNeon,       Feature::kDotProd,
                                 Feature::kI8mm,       Feature::kBf16};
constexpr Trait kTraits[] = {Trait::kTwoVectorPorts, Trait::kFollowsStreams, Trait::kDividesFast,
                             Trait::kLargeL2};

TEST(Isa, NamesGoBothWays) {
  for (const IsaPreset& preset : IsaPresets()) {
    EXPECT_EQ(IsaFromName(preset.name), preset.isa) << preset.name;
    EXPECT_EQ(IsaName(preset.isa), preset.name);
  }
  EXPECT_EQ(IsaName(Isa::kAvx512Vnni), "avx512vnni");
  EXPECT_EQ(IsaFromName("AVX2"), std::nullopt);
  EXPECT_EQ(IsaFromName(""), std::nullopt);
}

TEST(Isa, IsASetOfFeatures) {
  std::set<uint32_t> bits = {Isa().bits()};
  for (const Feature feature : kFeatures) {
    const Isa one = Isa().with(feature);
    EXPECT_TRUE(one.has(feature));
    EXPECT_TRUE(one.includes(Isa()));
    EXPECT_FALSE(Isa().includes(one));
    EXPECT_EQ(one.without(feature), Isa());
    EXPECT_TRUE(bits.insert(one.bits()).second);
    for (const Feature other : kFeatures) EXPECT_EQ(one.has(other), other == feature);
  }
}

TEST(Isa, MultipliesBytesInTheFormOfItsLargestVectors) {
  EXPECT_TRUE(Isa::kAvxVnni.has_vnni());
  EXPECT_TRUE(Isa::kAvx512Vnni.has_vnni());
  EXPECT_FALSE(Isa::kAvx2.has_vnni());
  EXPECT_FALSE(Isa::kAvx512.with(Feature::kAvxVnni).has_vnni());
}

TEST(Isa, HasTraitsBesideFeatures) {
  for (const Trait trait : kTraits) {
    const Isa one = Isa().with(trait);
    EXPECT_TRUE(one.has(trait));
    EXPECT_EQ(one.without(trait), Isa());
    for (const Trait other : kTraits) EXPECT_EQ(one.has(other), other == trait);
    for (const Feature feature : kFeatures) EXPECT_FALSE(one.has(feature));
    for (const IsaPreset& preset : IsaPresets()) EXPECT_FALSE(preset.isa.has(trait)) << preset.name;
  }
}

TEST(Isa, IsCutToThePresetThatAUserNames) {
  EXPECT_EQ(Isa::kAvxVnni.CutTo(Isa::kAvx512), Isa::kAvx2);
  EXPECT_EQ(Isa::kNeon.CutTo(Isa::kAvx512), Isa::kScalar);
  // A core stays what it is like, whatever part of its instructions is used.
  const Isa zen4 = Isa::kAvx512Bf16.with(Trait::kFollowsStreams);
  EXPECT_EQ(zen4.CutTo(Isa::kAvx2), Isa::kAvx2.with(Trait::kFollowsStreams));
  EXPECT_EQ(zen4.CutTo(Isa::kScalar), Isa::kScalar);
}

TEST(Isa, PresetsAreNamedAfterTheFeatureThatTheyHave) {
  // Cascade Lake, and Cooper Lake, which has bfloat16 without VBMI.
  EXPECT_EQ(IsaName(Isa::kAvx512Vnni.without(Feature::kAvx512Vbmi)), "avx512vnni");
  EXPECT_EQ(IsaName(Isa::kAvx512Bf16.without(Feature::kAvx512Vbmi)), "avx512bf16");
  // Sapphire Rapids has both forms of the dot product.
  EXPECT_EQ(IsaName(Isa::kAvx512Bf16.with(Feature::kAvxVnni)), "avx512bf16");
  EXPECT_EQ(IsaName(Isa::kNeon.with(Feature::kDotProd).with(Feature::kI8mm)), "neon");
}

TEST(Isa, TheBestPresetIsTheMachinesOwn) {
  const std::vector<Isa> isas = RunnableIsas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  EXPECT_EQ(IsaName(isas.back()), IsaName(DetectIsa()));
  for (const Isa isa : isas) EXPECT_TRUE(DetectIsa().includes(isa)) << IsaName(isa);
  for (const IsaPreset& preset : IsaPresets()) {
    if (!DetectIsa().includes(preset.isa)) continue;
    EXPECT_THAT(isas, testing::Contains(DetectIsa().CutTo(preset.isa))) << preset.name;
  }
}

TEST(Isa, ArchitecturesAreToldApart) {
  EXPECT_TRUE(OfThisArchitecture(Isa::kScalar));
  EXPECT_TRUE(OfThisArchitecture(DetectIsa()));
  EXPECT_FALSE(OfThisArchitecture(Isa::kNeon) && OfThisArchitecture(Isa::kAvx2));
}

#if defined(__x86_64__)
TEST(Isa, AgreesWithTheCompilersDetection) {
  const Isa isa = DetectIsa();
  EXPECT_EQ(isa.has(Feature::kSsse3), !!__builtin_cpu_supports("ssse3"));
  EXPECT_EQ(isa.has(Feature::kAvx2),
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(isa.has(Feature::kAvx512),
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(isa.has(Feature::kAvx512Vnni), !!__builtin_cpu_supports("avx512vnni"));
  EXPECT_EQ(isa.has(Feature::kAvx512Vbmi),
            isa.has(Feature::kAvx512) && __builtin_cpu_supports("avx512vbmi"));
}
#endif

}  // namespace
}  // namespace fuselite
