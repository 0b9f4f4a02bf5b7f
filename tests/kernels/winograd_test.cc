#include "kernels/winograd/winograd.h"

#include <span>

#include "kernels/simd.h"
#include "tests/kernels/winograd_cases.h"

namespace fuselite::kernels::testing {
namespace {

template <int kOutputs>
Result<KernelPlan> Plan(const OpDescription& op, const PlanContext& context) {
  return PlanHighwayWinogradWith(op, context, kOutputs);
}
constexpr Candidate kCandidates[] = {{"2x2", Plan<2>}, {"4x4", Plan<4>}};

void ExpectTheReference(int32_t stride, std::span<const Candidate> candidates) {
  const auto draw = [&](Random& random) { return RandomSmallWinogradCase(random, stride); };
  CompareRandomly(60, draw, [&](OpTester& tester, Random& random) {
    AddRandomTail(tester, random);
    const double depth = static_cast<double>(tester.op.inputs[1].shape.elements(1, 4));
    return CompareCandidates(tester, ProductBounds<Conv2DParams>(tester, depth), random,
                             candidates);
  });
}

TEST(WinogradTest, AgreesWithTheReference) { ExpectTheReference(1, kCandidates); }

TEST(WinogradTest, AgreesWithTheReferenceWithAStrideOfTwo) {
  ExpectTheReference(2, std::span(kCandidates).first(1));
}

TEST(WinogradTest, ErrsAFewHundredthsOfTheBound) {
  for (const Isa isa : RunnableIsas()) {
    if (FindWinogradTransforms({}, isa) == nullptr) continue;
    for (const int32_t channels : {16, 64, 512}) {
      EXPECT_LT(PartOfBound(kCandidates[0], channels, isa), 0.03) << IsaName(isa) << channels;
      EXPECT_LT(PartOfBound(kCandidates[1], channels, isa), 0.08) << IsaName(isa) << channels;
      EXPECT_LT(PartOfBound(kCandidates[0], channels, isa, 2), 0.03) << IsaName(isa) << channels;
    }
  }
}

// What CONV_2D takes where nothing is emitted.
TEST(WinogradTest, IsForWhatItMakesFaster) {
  const Isa isa = RunnableIsas().back();
  if (FindWinogradTransforms({}, isa) == nullptr) GTEST_SKIP() << "this machine has no vectors";
  const auto name = [&](Shape image, int32_t channels_out, Precision precision, int32_t stride = 1,
                        int32_t dilation = 1) {
    Random random(1);
    OpTester tester = RandomWinogradCase(random, image, channels_out, stride);
    auto& params = tester.params<Conv2DParams>();
    params.padding = Padding::kSame;
    params.extra_padding = {};
    params.dilation_h = params.dilation_w = dilation;
    EXPECT_TRUE(tester.Infer().ok());
    for (const Candidate& candidate : tester.op.op->candidates) {
      const auto plan = candidate.Plan(tester.op, {.isa = isa, .precision = precision});
      if (plan.ok()) return std::string(plan->kernel().name());
    }
    return std::string();
  };
  using ::testing::HasSubstr;
  using ::testing::Not;
  EXPECT_THAT(name({1, 56, 56, 64}, 64, Precision::kDefault), HasSubstr("winograd 4x4"));
  EXPECT_THAT(name({1, 56, 56, 128}, 256, Precision::kDefault, 2),
              HasSubstr("winograd 2x2 stride 2"));
  EXPECT_THAT(name({1, 28, 28, 128}, 128, Precision::kDefault, 1, 2),
              HasSubstr("winograd 4x4 dilated"));
  EXPECT_THAT(name({1, 28, 28, 64}, 64, Precision::kDefault, 2, 2), Not(HasSubstr("winograd")));
  EXPECT_THAT(name({1, 56, 56, 128}, 256, Precision::kDefault, 3), Not(HasSubstr("winograd")));
  EXPECT_THAT(name({1, 56, 56, 64}, 64, Precision::kStrict), Not(HasSubstr("winograd")));
  EXPECT_THAT(name({1, 56, 56, 3}, 8, Precision::kDefault), Not(HasSubstr("winograd")));
}

}  // namespace
}  // namespace fuselite::kernels::testing
