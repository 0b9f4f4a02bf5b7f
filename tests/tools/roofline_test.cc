#include "tools/measure/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tools/common/session.h"
#include "tools/measure/machine_peak.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using ::testing::HasSubstr;

TEST(MachinePeakTest, IsThereForEveryLevelAndGrowsWithThreads) {
  for (const Isa isa : RunnableIsas()) {
    // Every core does more than 0.1 GFLOP/s, none does 100 TFLOP/s.
    EXPECT_GT(MeasureFloatPeak(isa), 1e8) << IsaName(isa);
    EXPECT_LT(MeasureFloatPeak(isa), 1e14) << IsaName(isa);
    if (isa == Isa::kScalar) continue;
    EXPECT_GT(MeasureInt8Peak(isa), 1e8) << IsaName(isa);
  }
  EXPECT_GT(MeasureFloatPeak(DetectIsa(), 2), 1e8);
  EXPECT_GT(MeasureCopyBandwidth(1024), 1e8);
  EXPECT_GT(MeasureCopyBandwidth(size_t{1} << 20, 2), 1e8);
}

TEST(RooflineTest, TakesTheBandwidthOfTheSmallestSetThatHoldsTheBytes) {
  MachinePeaks peaks;
  EXPECT_EQ(peaks.BandwidthFor(1), 0);
  peaks.bandwidths = {{100, 9}, {1000, 5}, {10000, 2}};
  EXPECT_EQ(peaks.BandwidthFor(0), 9);
  EXPECT_EQ(peaks.BandwidthFor(100), 9);
  EXPECT_EQ(peaks.BandwidthFor(101), 5);
  EXPECT_EQ(peaks.BandwidthFor(1 << 20), 2);
}

// MobileNetV2 of the zoo, run three times.
void Profile(partitioner::Options options, std::shared_ptr<partitioner::DelegateState>* state) {
  options.num_threads = 1;
  options.keep_profile = true;
  const auto model = OpenModel("zoo:mobilenet_v2");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Result<Session> session = OpenSession(*model, {.num_threads = 1}, {.fuselite = &options});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(session->inputs.Fill(*session->interpreter, 1).ok());
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->interpreter->Invoke().ok());
  *state = session->delegate->state();
}

TEST(RooflineTest, HasEveryStepAndItsLimit) {
  partitioner::Options options;
  options.isa = DetectIsa();
  std::shared_ptr<partitioner::DelegateState> state;
  ASSERT_NO_FATAL_FAILURE(Profile(options, &state));
  const Roofline roofline = MakeRoofline(*state, 1.0);
  ASSERT_EQ(roofline.steps.size(), state->Explain().graphs[0].partitions[0].report.steps.size());
  double operations = 0;
  for (const RooflineStep& step : roofline.steps) {
    EXPECT_GT(step.seconds, 0) << step.ops;
    EXPECT_GT(step.bytes, 0) << step.ops;
    EXPECT_GT(step.least_seconds, 0) << step.ops;
    EXPECT_NE(step.bound, Bound::kUnknown) << step.ops;
    EXPECT_NE(step.bound, Bound::kInt8) << step.ops;
    EXPECT_LE(step.lost(), step.seconds);
    operations += step.operations;
  }
  // MobileNetV2's 300 million multiply-adds, at two operations each.
  EXPECT_NEAR(operations, 6.0e8, 0.1e8);
  EXPECT_EQ(roofline.steps.back().operations, 0) << "a softmax has no products";
  std::ostringstream text;
  PrintRoofline(roofline, text);
  EXPECT_THAT(text.str(), HasSubstr("Measured peaks of 1 thread"));
  EXPECT_THAT(text.str(), HasSubstr("between the steps"));
}

TEST(RooflineTest, MeasuresProductsOfBfloat16AtTheirOwnPeak) {
  partitioner::Options options;
  options.isa = DetectIsa();
  if (FUSELITE_JIT == 0 || !options.isa.has(Feature::kAvx512Bf16)) {
    GTEST_SKIP() << "no products of bfloat16 here";
  }
  options.precision = kernels::Precision::kFast;
  std::shared_ptr<partitioner::DelegateState> state;
  ASSERT_NO_FATAL_FAILURE(Profile(options, &state));
  const Roofline roofline = MakeRoofline(*state, 1.0);
  EXPECT_GT(roofline.peaks.bf16_operations, 0);
  int in_bf16 = 0;
  for (const RooflineStep& step : roofline.steps) {
    if (step.kernel.find(" bf16 ") == std::string::npos) continue;
    // Memory bounds them where a sanitizer watches what copies it.
    EXPECT_NE(step.bound, Bound::kFloat) << step.ops;
    ++in_bf16;
  }
  EXPECT_GT(in_bf16, 0);
  std::ostringstream text;
  PrintRoofline(roofline, text);
  EXPECT_THAT(text.str(), HasSubstr("GFLOP/s, bf16 "));
}

}  // namespace
}  // namespace fuselite::tools
