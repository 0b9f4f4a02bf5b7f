// Copies that amount to an address: where the parts of concatenations, splits and slices lie.
#include "kernels/movement/placement.h"

#include "kernels/concatenation/concatenation.h"
#include "kernels/reshape/reshape.h"
#include "kernels/slice/slice.h"
#include "kernels/split/split.h"
#include "tests/kernels/movement_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kI32 = DataType::kInt32;

OpTester Concatenation(int axis, const std::vector<Shape>& shapes) {
  OpTester tester("CONCATENATION");
  tester.params<ConcatenationParams>().axis = axis;
  for (const Shape& shape : shapes) tester.Input(TestTensor({.type = kI32, .shape = shape}));
  EXPECT_TRUE(tester.Infer().ok());
  return tester;
}

TEST(PlacementTest, Concatenation) {
  const auto outer = FindPlacement(Concatenation(1, {{1, 2, 3}, {1, 4, 3}}).op);
  ASSERT_TRUE(outer.ok()) << outer.status().ToString();
  EXPECT_TRUE(outer->parts_are_inputs);
  EXPECT_EQ(outer->whole, 0);
  EXPECT_EQ(outer->parts[1].byte_offset, 24);
  EXPECT_EQ(outer->parts[1].row_pitch, 0);

  const auto inner = FindPlacement(Concatenation(-1, {{2, 5, 3}, {2, 5, 4}}).op);
  ASSERT_TRUE(inner.ok()) << inner.status().ToString();
  EXPECT_EQ(inner->parts[0].row_pitch, 7);
  EXPECT_EQ(inner->parts[1].byte_offset, 12);
  EXPECT_EQ(inner->parts[1].row_pitch, 7);

  EXPECT_FALSE(FindPlacement(Concatenation(1, {{2, 2, 3}, {2, 4, 3}}).op).ok());

  OpTester nested = Concatenation(-1, {{2, 3}, {2, 4}});
  nested.op.outputs[0].row_pitch = 20;
  const auto placed = FindPlacement(nested.op);
  ASSERT_TRUE(placed.ok());
  EXPECT_EQ(placed->parts[0].row_pitch, 20);
}

// The bytes at each placed part are what the kernel would have copied there or from there.
TEST(PlacementTest, AgreesWithTheKernels) {
  int placed = 0;
  for (int i = 0; i < 4 * kCases; ++i) {
    Random random(1000 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const int axis = static_cast<int>(random.Int(0, rank - 1));
    Shape shape = RandomShape(random, rank, 3);
    OpTester tester("SPLIT");
    shape.set(axis, shape[axis] * 2);
    const auto tensor = RandomTensor(random, kI32, shape);
    tester.params<SplitParams>().num_splits = 2;
    tester.Constant(Scalar(axis)).Input(tensor).Output().Output();
    ASSERT_TRUE(tester.Infer().ok());
    const auto placement = FindPlacement(tester.op);
    if (!placement.ok()) continue;
    ++placed;
    EXPECT_FALSE(placement->parts_are_inputs);
    EXPECT_EQ(placement->whole, 1);
    const auto outputs = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(outputs.ok());
    for (const PlacedPart& part : placement->parts) {
      const TestTensor& out = (*outputs)[part.operand];
      const int64_t pitch = part.row_pitch ? part.row_pitch : out.width();
      for (int64_t e = 0; e < out.info().elements(); ++e) {
        int32_t value;
        std::memcpy(
            &value,
            tensor.bytes() + part.byte_offset + 4 * (e / out.width() * pitch + e % out.width()), 4);
        ASSERT_EQ(value, out.at<int32_t>(e)) << shape << " axis " << axis;
      }
    }
  }
  EXPECT_GT(placed, kCases);
}

TEST(PlacementTest, ReshapeAndSlice) {
  OpTester reshape("RESHAPE");
  reshape.Input(Iota({2, 6})).Constant(Ints({3, 4}));
  ASSERT_TRUE(reshape.Infer().ok());
  const auto same = FindPlacement(reshape.op);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->parts[0].byte_offset, 0);
  reshape.op.inputs[0].row_pitch = 8;
  EXPECT_FALSE(FindPlacement(reshape.op).ok());

  OpTester slice("SLICE");
  slice.Input(Iota({4, 5})).Constant(Ints({1, 2})).Constant(Ints({2, 3}));
  ASSERT_TRUE(slice.Infer().ok());
  const auto part = FindPlacement(slice.op);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->parts[0].byte_offset, 28);
  EXPECT_EQ(part->parts[0].row_pitch, 5);

  OpTester transpose("TRANSPOSE");
  transpose.Input(Iota({4, 5})).Constant(Ints({1, 0}));
  ASSERT_TRUE(transpose.Infer().ok());
  EXPECT_FALSE(FindPlacement(transpose.op).ok());
}

}  // namespace
}  // namespace fuselite::kernels::testing
