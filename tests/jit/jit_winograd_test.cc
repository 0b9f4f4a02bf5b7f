#include "jit/product/winograd.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Candidate;
using kernels::Conv2DParams;
using kernels::KernelPlan;
using kernels::OpDescription;
using kernels::PlanContext;

template <int kOutputs>
Result<KernelPlan> Plan(const OpDescription& op, const PlanContext& context) {
  return PlanWinogradF32With(op, context, kOutputs);
}
constexpr Candidate kCandidates[] = {{"2x2", Plan<2>}, {"4x4", Plan<4>}};

// A 3x3 convolution of stride 1 over n images of h x w, with everything else at random.
OpTester RandomCase(Random& random, Shape image, int32_t channels_out) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  kernels::testing::RandomWindow(random, params);
  params.stride_h = params.stride_w = params.dilation_h = params.dilation_w = 1;
  const int32_t channels_in = image.dim(-1);
  tester.Input(kernels::testing::RandomFloats(random, image,
                                              kernels::testing::RandomPitch(random, channels_in)));
  kernels::testing::AddWeights(tester, random, {channels_out, 3, 3, channels_in}, channels_out,
                               {.run_time_weights = false});
  return tester;
}

OpTester RandomSmallCase(Random& random) {
  const auto size = [&](int64_t low, int64_t high) {
    return static_cast<int32_t>(random.Int(low, high));
  };
  const Shape image = {size(1, 3), size(3, 19), size(3, 19),
                       random.Pick({1, 2, 3, 7, 8, 15, 16, 17, 31, 40})};
  return RandomCase(random, image, random.Pick({1, 3, 7, 8, 9, 16, 24, 63, 65, 70, 130}));
}

TEST(JitWinogradTest, AgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomSmallCase(random);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const double depth = static_cast<double>(tester.op.inputs[1].shape.elements(1, 4));
    const std::vector<float> bounds = kernels::testing::ProductBounds<Conv2DParams>(tester, depth);
    for (const Candidate& candidate : kCandidates) {
      CompareCandidate(tester, candidate, bounds, random);
      if (HasFailure()) return;
    }
  }
}

// The error of normally distributed operands, against sums in double precision, as a part of the
// bound of docs/design.md.
double PartOfBound(int outputs, int32_t channels, Isa isa) {
  std::mt19937_64 engine(7);
  std::normal_distribution<float> normal;
  const auto fill = [&](const TestTensor& tensor) {
    for (int64_t i = 0; i < tensor.info().elements(); ++i) tensor.at<float>(i) = normal(engine);
    return tensor;
  };
  constexpr int32_t kSize = 12, kChannelsOut = 16;
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.stride_h = params.stride_w = params.dilation_h = params.dilation_w = 1;
  params.padding = kernels::Padding::kValid;
  const TestTensor x =
      fill(TestTensor({.type = DataType::kFloat32, .shape = {1, kSize + 2, kSize + 2, channels}}));
  const TestTensor w =
      fill(TestTensor({.type = DataType::kFloat32, .shape = {kChannelsOut, 3, 3, channels}}));
  tester.Input(x);
  tester.Constant(w);
  EXPECT_TRUE(tester.Infer().ok());
  auto y = tester.RunCandidate(kCandidates[outputs / 4], isa, 1, 1);
  EXPECT_TRUE(y.ok()) << y.status().ToString();
  if (!y.ok()) return 1;
  double worst = 0;
  for (int64_t i = 0; i < kSize * kSize * kChannelsOut; ++i) {
    const int64_t n = i % kChannelsOut, ox = i / kChannelsOut % kSize,
                  oy = i / kChannelsOut / kSize;
    double sum = 0, magnitudes = 0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t pixel = (oy + tap / 3) * (kSize + 2) + ox + tap % 3;
      for (int64_t c = 0; c < channels; ++c) {
        const double product = double{x.at<float>(pixel * channels + c)} *
                               double{w.at<float>((n * 9 + tap) * channels + c)};
        sum += product;
        magnitudes += std::abs(product);
      }
    }
    const double bound =
        1e-5 + 4 * double{kernels::testing::kEpsilon} * std::sqrt(9.0 * channels) * magnitudes;
    worst = std::max(worst, std::abs((*y)[0].at<float>(i) - sum) / bound);
  }
  return worst;
}

TEST(JitWinogradTest, ErrsAFewHundredthsOfTheBound) {
  for (const Isa isa : EmittedIsas()) {
    for (const int32_t channels : {16, 64, 512}) {
      EXPECT_LT(PartOfBound(2, channels, isa), 0.03) << channels;
      EXPECT_LT(PartOfBound(4, channels, isa), 0.08) << channels;
    }
  }
}

TEST(JitWinogradTest, IsForWhatItMakesFaster) {
  const auto build = [](Shape image, int32_t channels_out, kernels::Precision precision) {
    Random random(1);
    OpTester tester = RandomCase(random, image, channels_out);
    tester.params<Conv2DParams>().padding = kernels::Padding::kSame;
    tester.params<Conv2DParams>().extra_padding = {};
    EXPECT_TRUE(tester.Infer().ok());
    auto plan = PlanWinogradF32(tester.op, {.isa = Isa::kAvx2, .precision = precision});
    return plan.ok() ? std::string(plan->kernel().name()) : plan.status().ToString();
  };
  using kernels::Precision;
  using ::testing::HasSubstr;
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Precision::kDefault), HasSubstr("winograd 4x4"));
  EXPECT_THAT(build({1, 7, 7, 512}, 512, Precision::kDefault), HasSubstr("winograd 2x2"));
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Precision::kStrict), HasSubstr("strict"));
  EXPECT_THAT(build({1, 56, 56, 3}, 8, Precision::kDefault), HasSubstr("longer than a plain"));
}

}  // namespace
}  // namespace fuselite::jit::testing
