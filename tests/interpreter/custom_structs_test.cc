// What the opaque structs of custom operators tell at the ends of what they hold: structs made
// here, of a graph that does not exist.
#include "interpreter/custom/structs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/tflite/arrays.h"
#include "tests/interpreter/custom_operators.h"

namespace fuselite::interpreter::testing {
namespace {

using ::testing::ElementsAre;
using tflite::IntArrayPtr;
using tflite::MakeIntArray;

class OpaqueTensorTest : public ::testing::Test {
 protected:
  OpaqueTensorTest() {
    struct_.dims = dims_.get();
    struct_.type = tflite::kTfLiteFloat32;
  }
  int32_t SignatureRank() const {
    int32_t rank = -7;
    EXPECT_EQ(TfLiteOpaqueTensorGetNumDimsSignature(tensor_, &rank), kTfLiteOk);
    return rank;
  }
  int32_t Signature(int32_t index) const {
    int32_t length = -7;
    const TfLiteStatus status = TfLiteOpaqueTensorGetDimSignature(tensor_, index, &length);
    EXPECT_EQ(status == kTfLiteOk, length != -7);
    return length;
  }

  const IntArrayPtr dims_ = MakeIntArray(std::vector{2, 3}),
                    signature_ = MakeIntArray(std::vector{-1, 3});
  tflite::TfLiteTensor struct_{};
  TfLiteOpaqueTensor* const tensor_ = custom::FromTensor(&struct_);
};

TEST_F(OpaqueTensorTest, HasTheDimensionsOfItsShape) {
  EXPECT_EQ(TfLiteOpaqueTensorNumDims(tensor_), 2);
  EXPECT_EQ(TfLiteOpaqueTensorDim(tensor_, 0), 2);
  EXPECT_EQ(TfLiteOpaqueTensorDim(tensor_, 1), 3);
  for (const int32_t index : {-1, INT32_MIN, 2, INT32_MAX}) {
    EXPECT_EQ(TfLiteOpaqueTensorDim(tensor_, index), -1) << index;
  }
  struct_.dims = nullptr;
  EXPECT_EQ(TfLiteOpaqueTensorNumDims(tensor_), -1);
  EXPECT_EQ(TfLiteOpaqueTensorDim(tensor_, 0), -1);
}

TEST_F(OpaqueTensorTest, HasItsShapeForASignatureWhereTheFileHasNone) {
  EXPECT_EQ(SignatureRank(), 2);
  EXPECT_EQ(Signature(0), 2);
  struct_.dims_signature = signature_.get();
  EXPECT_EQ(SignatureRank(), 2);
  EXPECT_EQ(Signature(0), -1);
  for (const int32_t index : {-1, INT32_MIN, 2, INT32_MAX}) EXPECT_EQ(Signature(index), -7);
}

TEST_F(OpaqueTensorTest, IsAVariableWhereTheGraphSaysSo) {
  EXPECT_EQ(TfLiteOpaqueTensorIsVariable(tensor_), 0);
  struct_.is_variable = true;
  EXPECT_EQ(TfLiteOpaqueTensorIsVariable(tensor_), 1);
}

TEST_F(OpaqueTensorTest, IsCopiedWholeWhereItHasMemory) {
  float memory[2] = {1, 2}, values[2] = {3, 4};
  EXPECT_EQ(TfLiteOpaqueTensorData(nullptr), nullptr);
  struct_.bytes = sizeof memory;
  EXPECT_EQ(TfLiteOpaqueTensorCopyFromBuffer(tensor_, values, sizeof values), kTfLiteError);
  EXPECT_EQ(TfLiteOpaqueTensorCopyToBuffer(tensor_, values, sizeof values), kTfLiteError);
  struct_.data.f = memory;
  EXPECT_EQ(TfLiteOpaqueTensorData(tensor_), memory);
  EXPECT_EQ(TfLiteOpaqueTensorCopyFromBuffer(tensor_, values, sizeof(float)), kTfLiteError);
  EXPECT_EQ(TfLiteOpaqueTensorCopyToBuffer(tensor_, values, sizeof(float)), kTfLiteError);
  EXPECT_THAT(memory, ElementsAre(1, 2));
  EXPECT_EQ(TfLiteOpaqueTensorCopyFromBuffer(tensor_, values, sizeof values), kTfLiteOk);
  EXPECT_THAT(memory, ElementsAre(3, 4));
  memory[0] = 5;
  EXPECT_EQ(TfLiteOpaqueTensorCopyToBuffer(tensor_, values, sizeof values), kTfLiteOk);
  EXPECT_THAT(values, ElementsAre(5, 4));
}

TEST_F(OpaqueTensorTest, KeepsTheMemoryThatItHasFromTheHeap) {
  float memory[2] = {1, 2};
  struct_.data.f = memory;
  struct_.allocation_type = tflite::kTfLiteArenaRw;
  TfLiteOpaqueTensorSetAllocationTypeToDynamic(tensor_);
  EXPECT_EQ(TfLiteOpaqueTensorGetAllocationType(tensor_), kTfLiteDynamic);
  EXPECT_EQ(struct_.data.f, nullptr) << "the arena's";
  struct_.data.f = memory;
  TfLiteOpaqueTensorSetAllocationTypeToDynamic(tensor_);
  EXPECT_EQ(struct_.data.f, memory);
}

// A graph of one tensor, whose errors are kept.
struct Graph {
  Graph() {
    context.tensors = tensors;
    context.tensors_size = 1;
    context.impl_ = this;
    context.ReportError = CountError;
    context.AddTensors = [](tflite::TfLiteContext* to, int count, int* first) {
      if (static_cast<Graph*>(to->impl_)->refuses) return tflite::kTfLiteError;
      *first = static_cast<int>(to->tensors_size);
      to->tensors_size += count;
      return tflite::kTfLiteOk;
    };
  }
  static void CountError(tflite::TfLiteContext* from, const char*, ...) {
    ++static_cast<Graph*>(from->impl_)->errors;
  }
  TfLiteOpaqueContext* opaque() { return reinterpret_cast<TfLiteOpaqueContext*>(&context); }

  tflite::TfLiteContext context{};
  tflite::TfLiteTensor tensors[2] = {};
  int errors = 0;
  bool refuses = false;
};

TEST(OpaqueContext, HasTheTensorsOfTheGraph) {
  Graph graph;
  EXPECT_NE(TfLiteOpaqueContextGetOpaqueTensor(graph.opaque(), 0), nullptr);
  for (const int index : {-1, INT32_MIN, 1, INT32_MAX}) {
    EXPECT_EQ(TfLiteOpaqueContextGetOpaqueTensor(graph.opaque(), index), nullptr) << index;
  }
}

TEST(OpaqueContext, KnowsTheSizesOfTypesThatHaveOne) {
  Graph graph;
  size_t bytes = 0;
  const auto size_of = [&](int type) {
    return TfLiteOpaqueContextGetSizeOfType(graph.opaque(), static_cast<TfLiteType>(type), &bytes);
  };
  EXPECT_EQ(size_of(kTfLiteFloat64), kTfLiteOk);
  EXPECT_EQ(bytes, 8u);
  EXPECT_EQ(size_of(kTfLiteInt8), kTfLiteOk);
  EXPECT_EQ(bytes, 1u);
  for (const int type : {int{kTfLiteNoType}, int{kTfLiteString}, int{kTfLiteInt4}, -1, 1000}) {
    EXPECT_EQ(size_of(type), kTfLiteError) << type;
  }
  EXPECT_EQ(graph.errors, 5);
}

TEST(OpaqueContext, TakesATensorMore) {
  Graph graph;
  TfLiteOpaqueTensorBuilder* const builder = TfLiteOpaqueTensorBuilderCreate();
  TfLiteOpaqueTensorBuilderSetType(builder, kTfLiteInt16);
  int index = -7;
  EXPECT_EQ(TfLiteOpaqueContextAddTensor(graph.opaque(), builder, &index), kTfLiteOk);
  EXPECT_EQ(index, 1);
  EXPECT_EQ(graph.tensors[1].type, tflite::kTfLiteInt16);
  graph.refuses = true;
  index = -7;
  EXPECT_EQ(TfLiteOpaqueContextAddTensor(graph.opaque(), builder, &index), kTfLiteError);
  EXPECT_EQ(index, -7);
  TfLiteOpaqueTensorBuilderDelete(builder);
}

TEST(OpaqueNode, HasItsOperandsAndNoMore) {
  const IntArrayPtr inputs = MakeIntArray(std::vector{4, -1}), outputs = MakeIntArray({});
  tflite::TfLiteNode node{};
  node.inputs = inputs.get();
  node.outputs = outputs.get();
  const auto* const opaque = reinterpret_cast<const TfLiteOpaqueNode*>(&node);
  EXPECT_EQ(TfLiteOpaqueNodeGetInputTensorIndex(opaque, 0), 4);
  for (const int index : {1, 2, -1, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(TfLiteOpaqueNodeGetInputTensorIndex(opaque, index), -1) << index;
  }
  EXPECT_EQ(TfLiteOpaqueNodeGetOutputTensorIndex(opaque, 0), -1);
}

TEST(OpaqueNode, TakesTemporariesThatAreThere) {
  tflite::TfLiteNode node{};
  auto* const opaque = reinterpret_cast<TfLiteOpaqueNode*>(&node);
  const int* list = nullptr;
  int count = -1;
  const int temporaries[] = {7, 9};
  EXPECT_EQ(TfLiteOpaqueNodeSetTemporaries(opaque, temporaries, 2), kTfLiteOk);
  EXPECT_EQ(TfLiteOpaqueNodeSetTemporaries(opaque, temporaries, -1), kTfLiteError);
  EXPECT_EQ(TfLiteOpaqueNodeSetTemporaries(opaque, nullptr, 1), kTfLiteError);
  ASSERT_EQ(TfLiteOpaqueNodeTemporaries(opaque, &list, &count), kTfLiteOk);
  EXPECT_THAT(std::vector(list, list + count), ElementsAre(7, 9));
  EXPECT_EQ(TfLiteOpaqueNodeSetTemporaries(opaque, nullptr, 0), kTfLiteOk);
  ASSERT_EQ(TfLiteOpaqueNodeTemporaries(opaque, &list, &count), kTfLiteOk);
  EXPECT_EQ(count, 0);
  std::free(node.temporaries);
}

TEST(OpaqueOperator, MayHaveNoName) {
  const OperatorPtr op(TfLiteOperatorCreate(kTfLiteBuiltinCustom, nullptr, 1, nullptr));
  EXPECT_EQ(TfLiteOperatorGetCustomName(op.get()), nullptr);
  TfLiteOperatorDelete(nullptr);
}

TEST(IntArrays, AreEqualElementByElement) {
  TfLiteIntArray *one = TfLiteIntArrayCreate(1), *two = TfLiteIntArrayCreate(2);
  one->data[0] = two->data[0] = 3;
  EXPECT_TRUE(TfLiteIntArrayEqual(one, one));
  EXPECT_TRUE(TfLiteIntArrayEqual(nullptr, nullptr));
  EXPECT_FALSE(TfLiteIntArrayEqual(one, two));
  EXPECT_FALSE(TfLiteIntArrayEqual(two, one));
  EXPECT_FALSE(TfLiteIntArrayEqual(nullptr, one));
  EXPECT_FALSE(TfLiteIntArrayEqual(one, nullptr));
  TfLiteIntArrayFree(one);
  TfLiteIntArrayFree(two);
}

}  // namespace
}  // namespace fuselite::interpreter::testing
