// Winograd's algorithm in whole numbers of activations that are quantized at run time, against the
// reference to the bit.
#include "jit/product/winograd.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/hybrid_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Candidate;
using kernels::Conv2DParams;

constexpr Candidate kAnyway = {"winograd", PlanWinogradHybridAnyway};

OpTester RandomCase(Random& random, Shape image, int32_t channels_out) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.padding = random.Pick({kernels::Padding::kSame, kernels::Padding::kValid});
  params.stride_h = params.stride_w = 1;
  params.activation = kernels::testing::RandomClamp(random);
  const int32_t channels_in = image.dim(-1);
  tester.Input(kernels::testing::RandomFloats(random, image, true));
  tester.Constant(kernels::testing::RandomWeights(
      random, random.Pick({DataType::kInt8, DataType::kInt8, DataType::kInt4}),
      {channels_out, 3, 3, channels_in}, channels_out, random.Chance(0.7)));
  kernels::testing::AddFloatBias(random, tester, channels_out);
  return tester;
}

TEST(JitWinogradHybridTest, IsExact) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto size = [&](int64_t low, int64_t high) {
      return static_cast<int32_t>(random.Int(low, high));
    };
    const Shape image = {size(1, 3), size(3, 19), size(3, 40),
                         random.Pick({1, 2, 3, 7, 8, 15, 16, 17, 31, 40, 100})};
    OpTester tester =
        RandomCase(random, image, random.Pick({1, 3, 7, 8, 9, 16, 24, 63, 65, 70, 130}));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddExactTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const Isa isa : EmittedIsas()) {
      tester.threads = size(1, 9);
      const auto actual = tester.RunCandidate(kAnyway, isa, random.Int(1, 99), random.Int(0, 3));
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      kernels::testing::ExpectSame<float>((*expected)[0], (*actual)[0], IsaName(isa));
      if (HasFailure()) return;
    }
  }
}

TEST(JitWinogradHybridTest, IsForWhatItMakesFaster) {
  const auto build = [](Shape image, int32_t channels_out, Isa isa) {
    Random random(1);
    OpTester tester = RandomCase(random, image, channels_out);
    tester.params<Conv2DParams>().padding = kernels::Padding::kSame;
    EXPECT_TRUE(tester.Infer().ok());
    auto plan = PlanWinogradHybrid(tester.op, {.isa = isa});
    return plan.ok() ? std::string(plan->kernel().name()) : plan.status().ToString();
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Isa::kAvx2), HasSubstr("winograd 2x2"));
  EXPECT_THAT(build({1, 14, 14, 512}, 512, Isa::kAvx512), HasSubstr("winograd 2x2"));
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Isa::kAvxVnni), HasSubstr("dot products"));
  EXPECT_THAT(build({1, 56, 56, 3}, 8, Isa::kAvx2), HasSubstr("longer than a plain"));
  EXPECT_THAT(build({1, 5, 5, 1900}, 8, Isa::kAvx2), HasSubstr("beyond 32 bits"));
}

}  // namespace
}  // namespace fuselite::jit::testing
