// Winograd's algorithm in whole numbers of activations that are quantized at run time, against the
// reference to the bit.
#include "jit/product/winograd.h"
#include "tests/jit/winograd_cases.h"
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
  ExpectExactLayers<float>(kAnyway, 40, RandomCase,
                           [](OpTester& tester, Random& random) { AddExactTail(tester, random); });
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
  ExpectOnlyFasterLayers(build);
}

}  // namespace
}  // namespace fuselite::jit::testing
