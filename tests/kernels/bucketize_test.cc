#include "kernels/bucketize/bucketize.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

// Values at, next to and away from the boundaries, NaN and infinities among them.
std::vector<float> RandomValues(Random& random, const std::vector<float>& boundaries, int64_t n) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(n);
  for (float& value : values) {
    value = random.Float(-1.5f, 1.5f);
    if (!boundaries.empty() && random.Chance(0.3)) {
      value = boundaries[random.Int(0, static_cast<int64_t>(boundaries.size()) - 1)];
    }
    if (random.Chance(0.05)) {
      value = random.Pick({std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, -0.0f});
    }
  }
  return values;
}

// Numbers of boundaries around those that each ISA compares with, sizes around its vectors.
TEST(BucketizeTest, CountsBoundariesNotAbove) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    std::vector<float> boundaries(random.Pick({0, 1, 2, 5, 31, 63, 64, 65, 128, 129, 256, 300}));
    for (float& b : boundaries) b = random.Chance(0.1) ? 0.0f : random.Float(-1, 1);
    std::ranges::sort(boundaries);
    const auto n = static_cast<int32_t>(random.Int(1, 300));
    const std::vector<float> values = RandomValues(random, boundaries, n);
    OpTester tester("BUCKETIZE");
    tester.params<BucketizeParams>().boundaries = {boundaries.data(),
                                                   static_cast<int32_t>(boundaries.size())};
    tester.Input(TestTensor::Of<float>(DataType::kFloat32, {n}, values));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    std::vector<int32_t> expected;
    for (const float value : values) {
      const auto above = std::ranges::upper_bound(boundaries, value);
      expected.push_back(static_cast<int32_t>(above - boundaries.begin()));
    }
    int vectors = 0;
    for (const Candidate& candidate : tester.op.op->candidates) {
      for (const Isa isa : RunnableIsas()) {
        const auto outputs = tester.RunCandidate(candidate, isa);
        if (outputs.status().code() == StatusCode::kUnsupported) continue;
        ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
        EXPECT_EQ((*outputs)[0].values<int32_t>(), expected) << candidate.name << IsaName(isa);
        vectors += std::string_view(candidate.name) == "highway";
      }
    }
    if (boundaries.size() <= 64) {
      EXPECT_EQ(vectors > 0, DetectIsa().has_vectors());
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
