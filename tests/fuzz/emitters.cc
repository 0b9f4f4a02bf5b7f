// The emitters' kernels against the references: convolutions, products and chains of any shape,
// with any tail.
#include "jit/candidates.h"
#include "tests/fuzz/target.h"
#include "tests/jit/int8_cases.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/hybrid_cases.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/quantized_product_cases.h"

namespace fuselite::fuzz {
namespace {

using namespace kernels;
using namespace kernels::testing;
namespace jt = jit::testing;

constexpr ProductCases kPlain{.groups = false, .run_time_weights = false};

// Every emitted kernel that takes it, at every level, against the reference to the bit, or nearly.
void Compare(const OpTester& tester, bool exact, Random& random) {
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  float largest = 1;
  if (!exact) {
    for (float value : (*expected)[0].values<float>()) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  for (Isa isa : jt::EmittedIsas()) {
    for (const Candidate& candidate : jit::CandidatesFor(*tester.op.op)) {
      const auto actual = tester.RunCandidate(candidate, isa, 3, random.Int(0, 3));
      if (!actual.ok()) {
        EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported) << actual.status().ToString();
        continue;
      }
      const std::string what = std::string(candidate.name) + " " + std::string(IsaName(isa));
      if (exact) {
        ExpectSame<uint8_t>((*expected)[0], (*actual)[0], what);
      } else {
        ExpectNear((*expected)[0], (*actual)[0], [&](int64_t) { return 2e-4f * largest; }, what);
      }
    }
  }
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  Random random(bytes);
  OpTester tester("ADD");
  const int64_t kind = random.Int(0, 9);
  SCOPED_TRACE("kind " + std::to_string(kind));
  bool exact = false;
  switch (kind) {
    case 0: tester = RandomConv2D(random, kPlain); break;
    case 1: tester = RandomDepthwiseConv2D(random, kPlain); break;
    case 2: tester = RandomFullyConnected(random); break;
    case 3: tester = RandomBatchMatMul(random, random.Chance(0.5)); break;
    case 4: tester = RandomHybridConv2D(random, {DataType::kInt8}, true); break;
    case 5: tester = RandomHybridFullyConnected(random, {DataType::kInt8}); break;
    case 6: tester = RandomQuantizedConv2D(random, jt::kBytes); break;
    case 7: tester = RandomQuantizedDepthwise(random, jt::kBytes); break;
    case 8: tester = RandomQuantizedFullyConnected(random, jt::kBytes); break;
    default: tester = RandomQuantizedBatchMatMul(random, jt::kBytes); break;
  }
  if (!tester.Infer().ok()) return;
  exact = kind >= 6;
  if (exact) {
    jt::AddInt8Tail(tester, random);
  } else if (kind < 4) {
    jt::AddTail(tester, random);
  }
  PitchOutput(tester, random);
  Compare(tester, exact, random);
}

}  // namespace fuselite::fuzz
