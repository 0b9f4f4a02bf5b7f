#include "jit/product/winograd.h"

#include <span>

#include "tests/jit/jit_cases.h"
#include "tests/kernels/winograd_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Candidate;
using kernels::Conv2DParams;
using kernels::KernelPlan;
using kernels::OpDescription;
using kernels::PlanContext;
using kernels::testing::PartOfBound;

template <int kOutputs>
Result<KernelPlan> Plan(const OpDescription& op, const PlanContext& context) {
  return PlanWinogradF32With(op, context, kOutputs);
}
constexpr Candidate kCandidates[] = {{"2x2", Plan<2>}, {"4x4", Plan<4>}};

void ExpectTheReference(int32_t stride, std::span<const Candidate> candidates) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomSmallWinogradCase(random, stride);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const double depth = static_cast<double>(tester.op.inputs[1].shape.elements(1, 4));
    const std::vector<float> bounds = kernels::testing::ProductBounds<Conv2DParams>(tester, depth);
    for (const Candidate& candidate : candidates) {
      CompareCandidate(tester, candidate, bounds, random);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(JitWinogradTest, AgreesWithTheReference) { ExpectTheReference(1, kCandidates); }

TEST(JitWinogradTest, AgreesWithTheReferenceWithAStrideOfTwo) {
  ExpectTheReference(2, std::span(kCandidates).first(1));
}

TEST(JitWinogradTest, ErrsAFewHundredthsOfTheBound) {
  for (const Isa isa : EmittedIsas()) {
    for (const int32_t channels : {16, 64, 512}) {
      EXPECT_LT(PartOfBound(kCandidates[0], channels, isa), 0.03) << channels;
      EXPECT_LT(PartOfBound(kCandidates[1], channels, isa), 0.08) << channels;
      EXPECT_LT(PartOfBound(kCandidates[0], channels, isa, 2), 0.03) << channels;
    }
  }
}

TEST(JitWinogradTest, IsForWhatItMakesFaster) {
  const auto build = [](Shape image, int32_t channels_out, kernels::Precision precision,
                        int32_t stride = 1, int32_t dilation = 1) {
    Random random(1);
    OpTester tester = kernels::testing::RandomWinogradCase(random, image, channels_out, stride);
    auto& params = tester.params<kernels::Conv2DParams>();
    params.padding = kernels::Padding::kSame;
    params.extra_padding = {};
    params.dilation_h = params.dilation_w = dilation;
    EXPECT_TRUE(tester.Infer().ok());
    auto plan = PlanWinogradF32(tester.op, {.isa = Isa::kAvx2, .precision = precision});
    return plan.ok() ? std::string(plan->kernel().name()) : plan.status().ToString();
  };
  using kernels::Precision;
  using ::testing::HasSubstr;
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Precision::kDefault), HasSubstr("winograd 4x4"));
  EXPECT_THAT(build({1, 7, 7, 512}, 512, Precision::kDefault), HasSubstr("winograd 2x2"));
  EXPECT_THAT(build({1, 56, 56, 128}, 256, Precision::kDefault, 2),
              HasSubstr("winograd 2x2 stride 2"));
  EXPECT_THAT(build({1, 28, 28, 128}, 128, Precision::kDefault, 1, 2),
              HasSubstr("winograd 4x4 dilated"));
  // A few outputs for each remainder fill no tiles.
  EXPECT_THAT(build({1, 9, 9, 128}, 128, Precision::kDefault, 1, 8), HasSubstr("longer than a"));
  EXPECT_THAT(build({1, 28, 28, 64}, 64, Precision::kDefault, 2, 2), HasSubstr("with a stride"));
  EXPECT_THAT(build({1, 56, 56, 16}, 32, Precision::kDefault, 2), HasSubstr("longer than a plain"));
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Precision::kDefault, 3), HasSubstr("strides of 3 and 3"));
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Precision::kStrict), HasSubstr("strict"));
  EXPECT_THAT(build({1, 56, 56, 3}, 8, Precision::kDefault), HasSubstr("longer than a plain"));
}

}  // namespace
}  // namespace fuselite::jit::testing
