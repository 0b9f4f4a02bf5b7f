// LOCAL_RESPONSE_NORMALIZATION, against sums by hand and, with vectors, against the reference.
#include <cmath>

#include "kernels/local_response_normalization/local_response_normalization.h"
#include "runtime/tflite/abi.h"
#include "tests/kernels/reference_values.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

OpTester LocalResponse(int32_t radius, const TestTensor& x) {
  OpTester tester("LOCAL_RESPONSE_NORMALIZATION");
  const tflite::TfLiteLocalResponseNormParams host = {radius, 1, 1, 1};
  EXPECT_TRUE(ImportParams(tester.op.op->fields, &host, 1, tester.op.params.data()).ok());
  tester.Input(x);
  return tester;
}

// The last neighbour within the radius is left out.
TEST(LocalResponseTest, DividesByTheSquaresOfNeighbours) {
  OpTester tester = LocalResponse(1, Floats({1, 1, 1, 3}, {1, 2, 3}));
  EXPECT_THAT(Values<float>(tester), ElementsAre(1 / 2.0F, 2 / 6.0F, 3 * (1 / 14.0F)));
}

// Radii beyond the channels, rows that fill no vectors, and powers of any kind.
TEST(LocalResponseTest, VectorsAgreeWithTheReference) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto channels = static_cast<int32_t>(random.Int(1, 300));
    TestTensor x({.type = DataType::kFloat32, .shape = {2, 1, 3, channels}});
    x.Fill(random, -3, 3);
    OpTester tester("LOCAL_RESPONSE_NORMALIZATION");
    tester.params<LocalResponseParams>() = {.radius = random.Pick({0, 1, 2, 5, 400, INT32_MAX}),
                                            .bias = random.Float(0.1F, 2),
                                            .alpha = random.Float(1e-4F, 1),
                                            .beta = random.Pick({0.0F, 0.5F, 0.75F, 1.0F, 2.3F})};
    tester.Input(x);
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok());
    for (const Isa isa : RunnableIsas()) {
      if (!isa.has_vectors()) continue;
      const auto actual = tester.Run("highway", isa, seed);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      for (int64_t i = 0; i < x.info().elements(); ++i) {
        const float y = (*expected)[0].at<float>(i);
        ASSERT_NEAR((*actual)[0].at<float>(i), y, 4e-7F * std::abs(y)) << IsaName(isa) << ' ' << i;
      }
    }
  }
}

// Budgets for strangers' files are held to it.
TEST(LocalResponseTest, CostsWhatItsRadiusAsksFor) {
  const TestTensor x = Floats({1, 2, 1, 100}, std::vector<float>(200));
  std::vector<double> costs;
  for (const int32_t radius : {0, 5, INT32_MAX}) {
    OpTester tester = LocalResponse(radius, x);
    ASSERT_TRUE(tester.Infer().ok());
    costs.push_back(tester.op.op->cost(tester.op));
  }
  EXPECT_THAT(costs, ElementsAre(32 * 200, 42 * 200, 132 * 200));
}

}  // namespace
}  // namespace fuselite::kernels::testing
