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

// What follows the product: stages of floats, of bytes, or of bytes with channels whose scales are
// far out.
enum class Follows { kNothing, kFloats, kBytes, kExtremeBytes };

struct Kind {
  OpTester (*make)(Random& random);
  Follows follows = Follows::kNothing;
  bool exact() const { return follows == Follows::kBytes || follows == Follows::kExtremeBytes; }
};

// Operands that broadcast in either direction, and a chain behind them.
OpTester RandomElementwise(Random& random) {
  OpTester tester(random.Pick({"ADD", "SUB", "MUL", "DIV", "MAXIMUM", "PRELU", "TANH", "LOGISTIC",
                               "NEG", "FUSELITE_ELEMENTWISE", "SQUARED_DIFFERENCE"}));
  const auto channels =
      static_cast<int32_t>(random.Chance(0.5) ? random.Int(1, 40) : random.Int(41, 700));
  Shape shape = {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(1, 4)),
                 static_cast<int32_t>(random.Int(1, 30)), channels};
  std::vector<Shape> shapes = {shape};
  if (tester.op.op->max_inputs > 1) {
    for (int d = 0; d < 4; ++d) {
      if (random.Chance(0.4)) shape.set(d, 1);
    }
    shapes.push_back(shape);
    if (tester.op.op->name != "PRELU" && random.Chance(0.4)) std::swap(shapes[0], shapes[1]);
  }
  for (const Shape& of : shapes) {
    const TestTensor tensor({.type = DataType::kFloat32, .shape = of}, 4 * random.Int(0, 3));
    tensor.Fill(random, 0.5, 2);
    tester.Input(tensor);
  }
  return tester;
}

const Kind kKinds[] = {
    {[](Random& random) { return RandomConv2D(random, kPlain); }, Follows::kFloats},
    {[](Random& random) { return RandomDepthwiseConv2D(random, kPlain); }, Follows::kFloats},
    {[](Random& random) { return RandomFullyConnected(random); }, Follows::kFloats},
    {[](Random& random) { return RandomBatchMatMul(random, random.Chance(0.5)); },
     Follows::kFloats},
    {[](Random& random) { return RandomSmallGroups(random, {.run_time_weights = false}); },
     Follows::kFloats},
    {[](Random& random) { return RandomTransposeConv(random, 3); }, Follows::kFloats},
    {RandomElementwise, Follows::kFloats},
    {[](Random& random) { return RandomHybridConv2D(random, {DataType::kInt8}, true); }},
    {[](Random& random) {
      return RandomHybridFullyConnected(random, {DataType::kInt8, DataType::kInt4});
    }},
    {[](Random& random) {
      return RandomHybridGroups(random, {DataType::kInt8, DataType::kInt4});
    }},
    {[](Random& random) {
      return RandomHybridDepthwise(random, random.Pick({1, 1, 3}));
    }},
    {[](Random& random) { return RandomHybridBatchMatMul(random, 0, true); }},
    {[](Random& random) { return RandomQuantizedConv2D(random, jt::kBytes); }, Follows::kBytes},
    {[](Random& random) { return RandomQuantizedGroups(random, jt::kBytes); }, Follows::kBytes},
    {[](Random& random) { return RandomQuantizedDepthwise(random, jt::kBytes); }, Follows::kBytes},
    {[](Random& random) { return RandomQuantizedFullyConnected(random, jt::kBytes); },
     Follows::kBytes},
    {[](Random& random) { return RandomQuantizedBatchMatMul(random, jt::kBytes); },
     Follows::kBytes},
    {[](Random& random) { return RandomQuantizedHeadsMatMul(random); }, Follows::kBytes},
    {[](Random& random) { return jt::RandomTransposeConvOfBytes(random, jt::kBytes); },
     Follows::kBytes},
    {[](Random& random) { return RandomQuantizedConv2D(random, jt::kBytes); },
     Follows::kExtremeBytes},
    {[](Random& random) { return RandomQuantizedDepthwise(random, jt::kBytes); },
     Follows::kExtremeBytes},
};

void AddTail(OpTester& tester, Follows follows, Random& random) {
  if (follows == Follows::kFloats) jt::AddTail(tester, random);
  if (follows == Follows::kExtremeBytes) {
    jt::AddExtremeBias(tester, random, tester.op.outputs[0].shape.dim(-1));
    jt::AddExtremeScaling(tester, random, false);
  }
  if (follows == Follows::kBytes || follows == Follows::kExtremeBytes) {
    jt::AddInt8Tail(tester, random);
  }
}

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
  const Kind& kind = kKinds[random.Int(0, static_cast<int64_t>(std::size(kKinds)) - 1)];
  SCOPED_TRACE("kind " + std::to_string(&kind - kKinds));
  OpTester tester = kind.make(random);
  if (kind.follows == Follows::kExtremeBytes) {  // they have a bias of their own
    tester.op.inputs.resize(2);
    tester.inputs.resize(2);
  }
  if (!tester.Infer().ok()) return;
  AddTail(tester, kind.follows, random);
  PitchOutput(tester, random);
  Compare(tester, kind.exact(), random);
}

}  // namespace fuselite::fuzz
