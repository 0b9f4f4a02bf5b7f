#include "jit/depthwise/depthwise.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/bfloat16_cases.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::jit::testing {
namespace {

TEST(JitDepthwiseTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomDepthwiseConv2D(random, {});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const double depth = tester.op.inputs[1].shape.elements(1, 3);
    const auto bounds =
        kernels::testing::ProductBounds<kernels::DepthwiseConv2DParams>(tester, depth);
    CompareJit(tester, bounds, random);
    if (HasFailure()) return;
  }
}

// Values that are bfloat16 in memory give what float32 of the same numbers give, rounded where the
// output is bfloat16.
TEST(JitDepthwiseTest, ValuesOfBFloat16) {
  constexpr auto kJit = kernels::Candidate::OfBFloat16("jit", PlanDepthwiseConv2D);
  const Isa isa = DetectIsa();
  if (!isa.has(Feature::kAvx512Bf16)) GTEST_SKIP() << "no AVX512-BF16 on this machine";
  int compared = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomDepthwiseConv2D(random, {});
    ASSERT_TRUE(tester.Infer().ok());
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    tester.precision = kernels::Precision::kFast;
    const auto both = kernels::testing::WithBFloat16(tester, 0, random);
    const auto plan = kJit.Plan(both.floats.op, {.isa = isa});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    compared += kernels::testing::ExpectSameInMemory(both, kJit, isa, random);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 50);
}

TEST(JitGroupedTest, AgreesWithTheReference) {
  int grouped = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomSmallGroups(random, {});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const double depth = tester.op.inputs[1].shape.elements(1, 4);
    CompareJit(tester, kernels::testing::ProductBounds<kernels::Conv2DParams>(tester, depth),
               random);
    if (HasFailure()) return;
    for (const Isa isa : EmittedIsas()) {
      const auto plan = PlanConv2D(tester.op, {.isa = isa});
      ASSERT_TRUE(plan.ok()) << plan.status().ToString();
      grouped += !plan->kernel().name().starts_with("conv");
    }
  }
  EXPECT_TRUE(EmittedIsas().empty() || grouped > 150);
}

}  // namespace
}  // namespace fuselite::jit::testing
