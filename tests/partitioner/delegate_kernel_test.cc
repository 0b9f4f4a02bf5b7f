// What the kernels of a delegate compute, for which shapes, and what they refuse.
#include "partitioner/delegate_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/concatenation/concatenation.h"
#include "kernels/generate/generate.h"
#include "kernels/slice/slice.h"
#include "tests/partitioner/delegate_fixture.h"

namespace fuselite::partitioner {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace testing;
using namespace tflite;

TEST_F(DelegateTest, ComputesAChainAndFollowsMovingPointers) {
  const std::vector<float> weights = Ramp(kWidth * kWidth);
  const int out = Layer(input_);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  for (int run = 0; run < 3; ++run) {
    // Memory of the same shape, at another address.
    host_.Resize(input_, {1, kWidth});
    host_.Resize(out, {1, kWidth});
    for (int i = 0; i < kWidth; ++i) host_.Floats(input_)[i] = static_cast<float>(i * run) / 64;
    ASSERT_EQ(host_.Invoke(), kTfLiteOk);
    const std::vector<double> expected = Expected(host_.Floats(input_), weights, kWidth);
    for (int i = 0; i < kWidth; ++i) EXPECT_NEAR(host_.Floats(out)[i], expected[i], 1e-3) << i;
  }
}

TEST_F(DelegateTest, WhatIsBeyondTheBudgetIsRefusedWhenPrepared) {
  host_.SetOutputs({Layers(input_, 4)});
  struct Case {
    Budget budget;
    const char* message;  // null: within
  };
  // Four layers of 64 x 64 multiply-adds; three values of 64 floats, of which two exist at a time.
  const Case cases[] = {{{0, 4 * 4096}, nullptr},
                        {{0, 4 * 4096 - 1}, "max_multiply_adds allows 16.4 k"},
                        {{1 << 20, 0}, nullptr},
                        {{64, 0}, "max_memory allows 64 B"}};
  for (const Case& c : cases) {
    Options options = DefaultOptions();
    options.budget = c.budget;
    delegate_ = std::make_unique<Delegate>(options);
    host_.errors.clear();
    ASSERT_EQ(host_.Apply(delegate_->c_struct()), kTfLiteOk);
    EXPECT_EQ(host_.Prepare() == kTfLiteOk, c.message == nullptr);
    if (c.message == nullptr) continue;
    ASSERT_THAT(host_.errors, SizeIs(1));
    EXPECT_THAT(host_.errors[0], HasSubstr(c.message));
    const PartitionReport refused = delegate_->Explain().graphs.at(0).partitions.at(0);
    EXPECT_FALSE(refused.compiled);
    EXPECT_THAT(refused.error, HasSubstr(c.message));
    EXPECT_EQ(refused.cost, 4 * 4096) << "what was refused counts, too";
  }
}

TEST_F(DelegateTest, ReplansAfterAResize) {
  const std::vector<float> weights = Ramp(kWidth * kWidth);
  const int out = Layer(input_);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  for (int rows : {3, 1, 17}) {
    host_.Resize(input_, {rows, kWidth});
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    EXPECT_EQ(host_.ShapeOf(out), Shape({rows, kWidth}));
    for (int i = 0; i < rows * kWidth; ++i) host_.Floats(input_)[i] = static_cast<float>(i % 11);
    ASSERT_EQ(host_.Invoke(), kTfLiteOk);
    const float* last = host_.Floats(input_) + (rows - 1) * kWidth;
    const std::vector<double> expected = Expected(last, weights, kWidth);
    for (int i = 0; i < kWidth; ++i) {
      EXPECT_NEAR(host_.Floats(out)[(rows - 1) * kWidth + i], expected[i], 1e-3);
    }
  }
}

TEST_F(DelegateTest, CanBeAppliedAgainAndDieBeforeItsKernels) {
  const int out = Layer(input_);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  ASSERT_EQ(host_.Apply(delegate_->c_struct()), kTfLiteOk);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  EXPECT_THAT(delegate_->Explain().graphs, SizeIs(1));
  delegate_.reset();
  EXPECT_EQ(host_.Invoke(), kTfLiteOk);
}

TEST_F(DelegateTest, IsExplainedOnceItIsPrepared) {
  const int out = Layer(input_);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  const auto partition = [&] { return delegate_->Explain().graphs[0].partitions[0]; };
  EXPECT_FALSE(partition().compiled);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  EXPECT_TRUE(partition().compiled);
  EXPECT_THAT(partition().report.steps, SizeIs(1));
}

// Two rows by their columns: 3 at column 5 of the first, 1 and 2 at the ends of the second.
TEST_F(DelegateTest, WeightsMayBeSparse) {
  const int weights = host_.AddConstant({2, kWidth}, Ramp(2 * kWidth));
  const int out = host_.AddTensor({1, 2});
  TfLiteTensor& stored = host_.context.tensors[weights];
  const float values[] = {3, 1, 2};
  std::ranges::copy(values, stored.data.f);
  stored.bytes = sizeof values;
  const IntArrayPtr order = MakeIntArray(std::vector{0, 1});
  const IntArrayPtr segments = MakeIntArray(std::vector{0, 1, 3});
  const IntArrayPtr columns = MakeIntArray(std::vector{5, 0, kWidth - 1});
  TfLiteDimensionMetadata levels[2] = {};
  levels[0].format = kTfLiteDimDense;
  levels[0].dense_size = 2;
  levels[1].format = kTfLiteDimSparseCSR;
  levels[1].array_segments = segments.get();
  levels[1].array_indices = columns.get();
  TfLiteSparsity sparsity{};
  sparsity.traversal_order = order.get();
  sparsity.dim_metadata = levels;
  sparsity.dim_metadata_size = 2;
  stored.sparsity = &sparsity;
  host_.AddNode("FULLY_CONNECTED", {input_, weights, -1}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_THAT(host_.kernels, SizeIs(1)) << Reasons()[0];
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  for (int i = 0; i < kWidth; ++i) host_.Floats(input_)[i] = static_cast<float>(i + 1);
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  EXPECT_EQ(host_.Floats(out)[0], 3 * 6);
  EXPECT_EQ(host_.Floats(out)[1], 1 + 2 * kWidth);
  // Values of the run come as they are.
  stored.allocation_type = kTfLiteArenaRw;
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, IsEmpty());
  EXPECT_THAT(Reasons()[0], HasSubstr("is sparse, but no constant"));
  stored.sparsity = nullptr;
}

// Old converters called them uint8, and meant int8 without a zero point.
TEST_F(DelegateTest, WeightsMayBeCalledUnsigned) {
  const int weights = host_.AddTensor({2, kWidth}, DataType::kUInt8);
  TfLiteTensor& stored = host_.context.tensors[weights];
  stored.allocation_type = kTfLiteMmapRo;
  stored.params = {0.5f, 7};
  for (int i = 0; i < 2 * kWidth; ++i) stored.data.raw[i] = i < kWidth ? '\2' : '\xff';
  const int out = host_.AddTensor({1, 2});
  host_.AddNode("FULLY_CONNECTED", {input_, weights, -1}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_THAT(host_.kernels, SizeIs(1)) << Reasons()[0];
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  std::fill_n(host_.Floats(input_), kWidth, 1.0f);
  ASSERT_EQ(host_.Invoke(), kTfLiteOk);
  EXPECT_NEAR(host_.Floats(out)[0], kWidth, 1e-3);
  EXPECT_NEAR(host_.Floats(out)[1], -0.5f * kWidth, 1e-3);
}

TEST_F(DelegateTest, WeightsMayBeValuesOfTheRun) {
  const int weights = host_.AddTensor({2, kWidth}), out = host_.AddTensor({1, 2});
  host_.AddNode("FULLY_CONNECTED", {input_, weights, -1}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_THAT(host_.kernels, SizeIs(1));
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  host_.Floats(input_)[5] = 2;
  for (float value : {3.0f, -4.0f}) {
    host_.Floats(weights)[kWidth + 5] = value;
    ASSERT_EQ(host_.Invoke(), kTfLiteOk);
    EXPECT_EQ(host_.Floats(out)[0], 0);
    EXPECT_EQ(host_.Floats(out)[1], 2 * value);
  }
}

TEST_F(DelegateTest, ShapesThatDependOnValuesArePlannedInTheRun) {
  const int shape = host_.AddTensor({2}, DataType::kInt32);
  const int unknown = host_.AddTensor({}), out = host_.AddTensor({});
  host_.AddNode("RESHAPE", {input_, shape}, {unknown});
  host_.AddNode("SOFTMAX", {unknown}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_THAT(host_.kernels, ElementsAre(SizeIs(2)));
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  const auto partition = [&] { return delegate_->Explain().graphs[0].partitions[0]; };
  EXPECT_THAT(partition().waiting_nodes, ElementsAre(0));
  for (const int32_t rows : {2, 4, 2}) {
    auto* const dims = static_cast<int32_t*>(host_.Memory(shape));
    dims[0] = rows;
    dims[1] = kWidth / rows;
    ASSERT_EQ(host_.Invoke(), kTfLiteOk) << host_.errors.back();
    EXPECT_EQ(host_.ShapeOf(out), Shape({rows, kWidth / rows}));
    EXPECT_NEAR(host_.Floats(out)[0], static_cast<double>(rows) / kWidth, 1e-6);
    EXPECT_THAT(partition().report.steps, SizeIs(2));
  }
  // Values that no shape follows from.
  static_cast<int32_t*>(host_.Memory(shape))[0] = 3;
  EXPECT_EQ(host_.Invoke(), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("RESHAPE (node 0)"));
}

// in [N, 4] -> [N, 2, 2], with N read from the input's own shape, as converters write it for models
// of any batch size.
TEST_F(DelegateTest, ShapesComputedFromShapesAreKnown) {
  const int in = host_.AddTensor({1, 4}), shape = host_.AddTensor({2}, DataType::kInt32);
  const int batch = host_.AddTensor({}, DataType::kInt32);
  const int target = host_.AddTensor({3}, DataType::kInt32), out = host_.AddTensor({1, 2, 2});
  const int zero = host_.AddConstant({1}, std::vector<int32_t>{0});
  const int one = host_.AddConstant({1}, std::vector<int32_t>{1});
  const int two = host_.AddConstant({}, std::vector<int32_t>{2});
  const kernels::Params as_int(kernels::ShapeParams{.out_type = DataType::kInt32});
  const kernels::Params first(kernels::StridedSliceParams{.shrink_axis_mask = 1});
  const kernels::Params three(kernels::PackParams{.values_count = 3, .axis = 0});
  host_.AddNode("SHAPE", {in}, {shape}, &as_int);
  host_.AddNode("STRIDED_SLICE", {shape, zero, one, one}, {batch}, &first);
  host_.AddNode("PACK", {batch, two, two}, {target}, &three);
  host_.AddNode("RESHAPE", {in, target}, {out});
  host_.SetOutputs({out});
  for (const bool fusion : {true, false}) {
    Options options = DefaultOptions();
    options.fusion = fusion;
    Apply(options);
    ASSERT_THAT(host_.kernels, ElementsAre(SizeIs(4))) << Reasons().back();
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    EXPECT_THAT(delegate_->Explain().graphs[0].partitions[0].waiting_nodes, IsEmpty());
    for (int n : {1, 3, 2}) {
      host_.Resize(in, {n, 4});
      ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
      ASSERT_EQ(host_.ShapeOf(out), Shape({n, 2, 2}));
      for (int i = 0; i < 4 * n; ++i) host_.Floats(in)[i] = static_cast<float>(i);
      ASSERT_EQ(host_.Invoke(), kTfLiteOk);
      for (int i = 0; i < 4 * n; ++i) EXPECT_EQ(host_.Floats(out)[i], static_cast<float>(i));
    }
  }
}

// A scalar is also what the host has of a shape that it does not know yet.
TEST_F(DelegateTest, WhatTheHostShapesInTheRunIsWaitedFor) {
  const int unknown = host_.AddTensor({}), between = host_.AddTensor({}), out = host_.AddTensor({});
  host_.AddCustomNode("Foo", {input_}, {unknown});
  host_.AddNode("SOFTMAX", {unknown}, {between});
  host_.AddNode("SOFTMAX", {between}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  const auto could = HasSubstr("its partition (2 nodes) has too little work");
  EXPECT_THAT(Reasons(), ElementsAre(_, could, could));
}

TEST_F(DelegateTest, WhatWaitsBehindOthersIsNamed) {
  const int layer = Layer(input_), shape = host_.AddTensor({2}, DataType::kInt32);
  const int rows = host_.AddTensor({}), out = host_.AddTensor({});
  host_.AddNode("RESHAPE", {layer, shape}, {rows});
  host_.AddNode("EXP", {rows}, {out});
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  const void* const inside = host_.Memory(layer);
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  EXPECT_THAT(delegate_->Explain().graphs[0].partitions[0].waiting_nodes, ElementsAre(1));
  EXPECT_EQ(host_.Memory(layer), inside) << "the host is asked for what it reads alone";
}

// A constant, and one value in two places, among what a shape is made of.
TEST_F(DelegateTest, WhatWaitsMayReadConstantsAndAValueTwice) {
  const int shape = host_.AddTensor({2}, DataType::kInt32);
  const int three = host_.AddConstant({}, std::vector<float>{3});
  const int filled = host_.AddTensor({}), same = host_.AddTensor({}, DataType::kInt32);
  host_.AddNode("FILL", {shape, three}, {filled});
  host_.AddNode("RESHAPE", {shape, shape}, {same});
  host_.SetOutputs({filled, same});
  Apply(DefaultOptions());
  ASSERT_THAT(host_.kernels, ElementsAre(SizeIs(2)));
  ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
  auto* const dims = static_cast<int32_t*>(host_.Memory(shape));
  for (const std::pair<int, int>& given : {std::pair{1, 2}, {2, 1}}) {
    std::tie(dims[0], dims[1]) = given;
    ASSERT_EQ(host_.Invoke(), kTfLiteOk) << host_.errors.back();
    const Shape expected({given.first, given.second});
    EXPECT_EQ(host_.ShapeOf(filled), expected);
    EXPECT_EQ(host_.ShapeOf(same), expected);
    EXPECT_EQ(host_.Floats(filled)[1], 3);
    EXPECT_EQ(static_cast<const int32_t*>(host_.Memory(same))[0], given.first);
    EXPECT_EQ(static_cast<const int32_t*>(host_.Memory(same))[1], given.second);
  }
}

TEST_F(DelegateTest, ConstantsElsewhereArePlannedFor) {
  const int out = host_.AddTensor({1, kWidth});
  const int three = host_.AddConstant({1, kWidth}, std::vector<float>(kWidth, 3));
  const int four = host_.AddConstant({1, kWidth}, std::vector<float>(kWidth, 4));
  host_.AddNode("ADD", {input_, three}, {out});
  host_.context.tensors[input_].name = nullptr;
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  for (const float expected : {3.0f, 4.0f}) {
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    ASSERT_EQ(host_.Invoke(), kTfLiteOk);
    EXPECT_EQ(host_.Floats(out)[0], expected);
    host_.context.tensors[three].data = host_.context.tensors[four].data;
  }
}

// The host has recorded no shape for what the first partition gives to the second.
TEST_F(DelegateTest, ShapesBetweenPartitionsAreTheInferredOnes) {
  const int between = Layers(input_, 4);
  host_.Resize(between, Shape());
  const int custom = Custom(between), sum = host_.AddTensor({1, kWidth});
  host_.AddNode("ADD", {between, custom}, {sum});
  host_.SetOutputs({Layers(sum, 4)});
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4), SizeIs(5)));
  EXPECT_THAT(Reasons(), ::testing::Contains("").Times(9));
}

// What the file says of it fits no layer.
TEST_F(DelegateTest, ShapesBetweenPartitionsAreNotTheFiles) {
  const int between = Layers(input_, 4), custom = Custom(between);
  host_.Resize(between, {1, 1});
  const int layer = Layer(between), sum = host_.AddTensor({1, kWidth});
  host_.AddNode("ADD", {layer, custom}, {sum});
  host_.SetOutputs({Layers(sum, 3)});
  Apply(DefaultOptions());
  EXPECT_THAT(host_.kernels, ElementsAre(SizeIs(4), SizeIs(5)));
  EXPECT_THAT(Reasons(), ::testing::Contains("").Times(9));
}

// A shape is known when the graph is judged, but its node goes back to the host: to the partition
// behind it, it is a value of the run.
TEST_F(DelegateTest, ShapesGivenBackToTheHostAreNotKnown) {
  const int in = host_.AddTensor({2, 32}), shape = host_.AddTensor({2}, DataType::kInt32);
  const kernels::Params as_int(kernels::ShapeParams{.out_type = DataType::kInt32});
  host_.AddNode("SHAPE", {in}, {shape}, &as_int);
  const int wanted = host_.AddTensor({2}, DataType::kInt32);
  host_.AddNode("ABS", {shape}, {wanted});
  const int custom = Custom(input_), rows = host_.AddTensor({2, 32});
  host_.AddNode("RESHAPE", {custom, wanted}, {rows});
  int out = rows;
  for (int i = 0; i < 8; ++i) {
    const int next = host_.AddTensor({2, 32});
    host_.AddNode("EXP", {out}, {next});
    out = next;
  }
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  ASSERT_FALSE(host_.kernels.empty());
  for (const Shape& given : {Shape{2, 32}, Shape{4, 16}}) {
    host_.Resize(in, given);
    for (const int tensor : {shape, wanted}) {
      std::ranges::copy(given.dims(), static_cast<int32_t*>(host_.Memory(tensor)));
    }
    ASSERT_EQ(host_.Prepare(), kTfLiteOk) << host_.errors.back();
    ASSERT_EQ(host_.Invoke(), kTfLiteOk) << host_.errors.back();
    EXPECT_EQ(host_.ShapeOf(out), given);
  }
}

TEST_F(DelegateTest, ErrorsOfAKernelAreReportedToTheHost) {
  const int out = Layer(input_);
  host_.SetOutputs({out});
  Apply(DefaultOptions());
  EXPECT_EQ(host_.Invoke(), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("not prepared"));
  host_.fail_resize = true;
  EXPECT_EQ(host_.Prepare(), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("cannot resize"));
  host_.fail_resize = false;
  ASSERT_EQ(host_.Prepare(), kTfLiteOk);
  host_.Resize(out, {1, kWidth / 2});
  EXPECT_EQ(host_.Invoke(), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("128 bytes instead of 256"));
  // A shape that the model's own rules forbid, as after a wrong resize.
  host_.Resize(input_, {1, kWidth + 1});
  EXPECT_EQ(host_.Prepare(), kTfLiteError);
  EXPECT_THAT(host_.errors.back(), HasSubstr("FULLY_CONNECTED (node 0)"));
}

}  // namespace
}  // namespace fuselite::partitioner
