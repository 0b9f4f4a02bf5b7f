// Equal nodes become one, and each reason why not.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Property;

bool Shares(const Outcome& outcome) {
  const auto says =
      Contains(Property(&RewriteRecord::ToString, HasSubstr("compute once for several")));
  return ::testing::Matches(says)(outcome.report.rewrites);
}

// Tables of angles that each of two layers makes for itself, and what they turn.
TEST(ShareEqual, ChainsOfEveryLayer) {
  GraphBuilder b;
  const ValueId positions = b.Input({1, 6, 1, 1});
  const ValueId scale = b.Constant({1, 1, 1, 8});
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId angles = b.Op("MUL", {positions, scale});
    const ValueId turned = b.Op("MUL", {b.Input({1, 6, 4, 8}), b.Op("COS", {angles})});
    b.Output(b.Op("ADD", {turned, b.Op("SIN", {angles})}));
  }
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  EXPECT_TRUE(Shares(outcome));
  // One table each of angles, cosines and sines, and a product with a sum for each layer.
  EXPECT_EQ(outcome.report.steps.size(), 6u);
}

TEST(ShareEqual, LayersWithTheSameConstants) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 7, 9, 5}), weights = b.Constant({4, 3, 3, 5});
  const ValueId one = b.ConvBy(x, weights), other = b.ConvBy(x, weights);
  b.Output(b.Op("MAXIMUM", {b.Op("TANH", {one}), b.Op("NEG", {other})}));
  EXPECT_TRUE(Shares(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
}

TEST(ShareEqual, NodesOfSeveralOutputs) {
  GraphBuilder b;
  const ValueId x = b.Op("TANH", {b.Input({2, 6})}), count = b.Ints(Shape(), {3});
  std::vector<ValueId> parts;
  for (int i = 0; i < 2; ++i) {
    const std::vector<ValueId> top = b.Op("TOPK_V2", {x, count}, {}, 2);
    parts.insert(parts.end(), {top[0], top[1]});
  }
  b.Output(b.Op("ADD", {parts[0], parts[2]}));
  b.Output(b.Op("ADD", {parts[1], parts[3]}));
  EXPECT_TRUE(Shares(ExpectFusedEqualsUnfused(b.graph(), 0)));
}

// --- Not equal ---

TEST(ShareEqual, NotOfOtherParametersInputsOrConstants) {
  {
    GraphBuilder b;
    const ValueId x = b.Input({3, 4});
    b.Output(b.Op("ADD", {b.Op("LEAKY_RELU", {x}, {{"alpha", 0.5}}),
                          b.Op("LEAKY_RELU", {x}, {{"alpha", 0.25}})}));
    EXPECT_FALSE(Shares(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
  }
  {
    GraphBuilder b;
    const ValueId x = b.Input({3, 4}), y = b.Input({3, 4});
    b.Output(b.Op("MAXIMUM", {b.Op("SUB", {x, y}), b.Op("SUB", {y, x})}));
    EXPECT_FALSE(Shares(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
  }
  {
    GraphBuilder b;
    const ValueId x = b.Input({3, 4});
    b.Output(
        b.Op("MAXIMUM", {b.Op("MUL", {x, b.Constant({4})}), b.Op("MUL", {x, b.Constant({4})})}));
    EXPECT_FALSE(Shares(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
  }
}

TEST(ShareEqual, NotWhatSomebodyLooksAt) {
  GraphBuilder b;
  const ValueId x = b.Input({3, 4});
  b.Output(b.Op("TANH", {x}));
  b.Output(b.Op("TANH", {x}));
  EXPECT_FALSE(Shares(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
}

TEST(ShareEqual, NotOfState) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 3}), state = b.Variable({2, 4});
  const ValueId first = b.Rnn(x, state), second = b.Rnn(x, state);
  b.Output(b.Op("ADD", {first, second}));
  EXPECT_FALSE(Shares(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)));
}

}  // namespace
}  // namespace fuselite::fusion::testing
