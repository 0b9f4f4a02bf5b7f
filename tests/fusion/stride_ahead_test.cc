// Layers that take the step of those that alone read what they make, and each reason why not.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;

const Attributes kRelued = {{"fused_activation_function", kRelu}};

Attributes Strides(int y, int x, double padding = kValid) {
  return {{"stride_h", y}, {"stride_w", x}, {"padding", padding}};
}

Attributes PoolOf(int size, int stride, double padding = kValid) {
  return {{"filter_width", size},
          {"filter_height", size},
          {"stride_w", stride},
          {"stride_h", stride},
          {"padding", padding}};
}

// Both ways of `x` into a stage's first block of ResNet.
void AddBranches(GraphBuilder& b, ValueId x, const Attributes& strides) {
  b.Output(b.Conv(x, 6, 1, strides));
  b.Output(b.Conv(x, 4, 1, strides));
}

// The sizes of what the steps give.
std::vector<std::string> ShapesOf(const Outcome& outcome) {
  std::vector<std::string> shapes;
  for (const StepReport& step : outcome.report.steps) shapes.push_back(step.output_shape);
  return shapes;
}

bool TakesStep(const Outcome& outcome) {
  const auto says = Contains(
      Property(&RewriteRecord::ToString, HasSubstr("compute only the pixels that are read")));
  return ::testing::Matches(says)(outcome.report.rewrites);
}

TEST(MoveStrideAhead, ThroughABlockOfResNet) {
  for (const auto& [height, width] : {std::pair(9, 12), std::pair(8, 7), std::pair(1, 5)}) {
    GraphBuilder b;
    const ValueId x = b.Conv(b.Input({2, height, width, 5}), 8, 3);
    b.Output(x);
    ValueId branch = b.Conv(x, 4, 1, kRelued);
    branch = b.Conv(branch, 4, 3, kRelued);
    branch = b.Conv(branch, 8, 1);
    AddBranches(b, b.Op("RELU", {b.Op("ADD", {branch, x})}), Strides(2, 2));
    const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-4f);
    EXPECT_TRUE(TakesStep(outcome));
    const auto shape = [](int h, int w, int channels) {
      return Shape({2, h, w, channels}).ToString();
    };
    const int rows = (height + 1) / 2, columns = (width + 1) / 2;
    EXPECT_THAT(ShapesOf(outcome), ElementsAre(shape(height, width, 8), shape(height, width, 4),
                                               shape(rows, columns, 4), shape(rows, columns, 8),
                                               shape(rows, columns, 8), shape(rows, columns, 6),
                                               shape(rows, columns, 4)));
  }
}

TEST(MoveStrideAhead, InBytes) {
  Int8Builder b;
  const ValueId x = b.Conv8(b.In({1, 9, 10, 5}), 8, 3, 0.05f, 1);
  b.Out(x);
  const ValueId branch = b.Conv8(b.Conv8(x, 4, 3, 0.05f, -7, kRelued), 8, 1, 0.05f, 4);
  const ValueId sum = b.Int8Op("ADD", {branch, x}, 0.06f, -9, kRelued);
  b.Out(b.Conv8(sum, 6, 1, 0.1f, 3, Strides(2, 2)));
  b.Out(b.Conv8(sum, 4, 1, 0.1f, 5, Strides(2, 2)));
  EXPECT_TRUE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 0)));
}

// Windows of every kind, with padding that is not that of the new stride, and other strides of
// their own.
TEST(MoveStrideAhead, IntoEveryWindow) {
  for (const double padding : {kSame, kValid}) {
    for (const int stride : {1, 2, 3}) {
      GraphBuilder b;
      const ValueId x = b.Input({2, 19, 22, 5});
      const auto ends = [&](ValueId v, int y, int step) {
        b.Output(b.Conv(v, 3, 1, Strides(y, step, kSame)));
      };
      ends(b.Conv(x, 4, 3, Strides(stride, 1, padding)), 2, 3);
      ends(b.Depthwise(x, 3, Strides(stride, stride, padding)), 2, 2);
      ends(b.Op("MAX_POOL_2D", {x}, PoolOf(3, stride, padding)), 3, 2);
      ends(b.Op("AVERAGE_POOL_2D", {x}, PoolOf(2, stride, padding)), 1, 2);
      const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 1e-4f);
      EXPECT_TRUE(TakesStep(outcome));
      EXPECT_EQ(outcome.report.steps.size(), 8u);
      for (size_t i = 0; i < 8; i += 2) {
        const std::vector<std::string> shapes = ShapesOf(outcome);
        EXPECT_EQ(shapes[i].substr(0, shapes[i].rfind(',')),
                  shapes[i + 1].substr(0, shapes[i + 1].rfind(',')));
      }
    }
  }
}

TEST(MoveStrideAhead, OfPoolsOfOnePixel) {
  GraphBuilder b;
  const ValueId x = b.Conv(b.Input({1, 8, 9, 5}), 4, 3);
  b.Output(b.Op("AVERAGE_POOL_2D", {x}, PoolOf(1, 2)));
  b.Output(b.Op("MAX_POOL_2D", {x}, PoolOf(1, 2)));
  b.Output(b.Depthwise(x, 1, Strides(2, 2)));
  EXPECT_TRUE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
}

TEST(MoveStrideAhead, PastOperandsThatAllPixelsMeetAlike) {
  GraphBuilder b;
  ValueId x = b.Conv(b.Input({2, 7, 8, 5}), 4, 3);
  x = b.Op("MUL", {x, b.Input({2, 1, 1, 4})});
  x = b.Op("SUB", {b.Input({4}), x});
  x = b.Op("MUL", {x, x});
  b.Output(b.Conv(x, 3, 1, Strides(2, 2)));
  EXPECT_TRUE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
}

// --- It stays where it is ---

ValueId SumOfLayer(GraphBuilder& b) {
  const ValueId x = b.Input({1, 8, 9, 4});
  return b.Op("ADD", {b.Conv(x, 4, 3), x});
}

TEST(MoveStrideAhead, NotPastOtherReaders) {
  {
    GraphBuilder b;
    const ValueId sum = SumOfLayer(b);
    AddBranches(b, sum, Strides(2, 2));
    b.Output(b.Conv(sum, 3, 1));
    EXPECT_FALSE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
  }
  {
    GraphBuilder b;
    const ValueId sum = SumOfLayer(b);
    b.Output(b.Conv(sum, 3, 1, Strides(2, 2)));
    b.Output(b.Conv(sum, 3, 1, Strides(2, 1)));
    EXPECT_FALSE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
  }
  {
    GraphBuilder b;
    const ValueId sum = SumOfLayer(b);
    AddBranches(b, sum, Strides(2, 2));
    b.Output(sum);
    EXPECT_FALSE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
  }
}

TEST(MoveStrideAhead, NotOfWindowsThatOverlapOrArePadded) {
  GraphBuilder b;
  b.Output(b.Conv(SumOfLayer(b), 3, 3, Strides(2, 2)));
  const ValueId padded = b.Op("PAD", {SumOfLayer(b), b.Ints({4, 2}, {0, 0, 1, 0, 1, 0, 0, 0})});
  b.Output(b.Conv(padded, 3, 1, Strides(2, 2)));
  EXPECT_FALSE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
}

TEST(MoveStrideAhead, NotWhereNoLayerIsReached) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 8, 9, 4});
  AddBranches(b, b.Op("RELU", {b.Op("ADD", {b.Op("TANH", {x}), x})}), Strides(2, 2));
  EXPECT_FALSE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
}

// A row of an operand is repeated for all rows.
TEST(MoveStrideAhead, NotPastOperandsOfColumns) {
  GraphBuilder b;
  const ValueId x = b.Conv(b.Input({1, 8, 9, 4}), 4, 3);
  AddBranches(b, b.Op("ADD", {x, b.Input({1, 1, 9, 4})}), Strides(2, 2));
  EXPECT_FALSE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
}

// The range that quantizes the images is that of all pixels.
TEST(MoveStrideAhead, NotBeforeDynamicRange) {
  GraphBuilder b;
  const ValueId sum = SumOfLayer(b);
  const ValueId weights = b.Int8Constant({3, 1, 1, 4}, 0.01f);
  b.Output(b.ConvBy(sum, weights, kNone, Strides(2, 2)));
  EXPECT_FALSE(TakesStep(ExpectFusedEqualsUnfused(b.graph(), 1e-4f)));
}

}  // namespace
}  // namespace fuselite::fusion::testing
