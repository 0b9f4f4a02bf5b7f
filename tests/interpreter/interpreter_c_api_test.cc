#include "fuselite/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "interpreter/file/writer.h"
#include "tests/interpreter/c_api_use.h"

namespace fuselite::interpreter {
namespace {

using testing::HasSubstr;

std::vector<std::byte> SoftmaxModel() {
  ModelWriter writer;
  const int in = writer.AddTensor("in", DataType::kFloat32, {1, 3});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 3});
  writer.AddOperator(*kernels::FindOperator("SOFTMAX"), {in}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({out});
  writer.AddSignature("serve", {{"x", in}}, {{"y", out}});
  return writer.Finish();
}

TEST(CApiTest, RunsAModelFromC) {
  const std::vector<std::byte> bytes = SoftmaxModel();
  float values[3] = {1, 1, 1};
  ASSERT_EQ(RunModelFromC(bytes.data(), bytes.size(), values, 3), 0) << FuseliteLastError();
  for (float value : values) EXPECT_NEAR(value, 1.0f / 3, 1e-6);
}

class CApiInterpreterTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::byte> bytes = SoftmaxModel();
    FuseliteModel* model = FuseliteModelLoadMemory(bytes.data(), bytes.size());
    ASSERT_NE(model, nullptr) << FuseliteLastError();
    ASSERT_EQ(FuseliteModelSignatureCount(model), 1u);
    EXPECT_STREQ(FuseliteModelSignatureKey(model, 0), "serve");
    EXPECT_EQ(FuseliteModelSignatureKey(model, 1), nullptr);
    EXPECT_STREQ(FuseliteModelSignatureInputName(model, 0, 0), "x");
    EXPECT_EQ(FuseliteModelSignatureInputName(model, 0, 1), nullptr);
    EXPECT_EQ(FuseliteModelSignatureOutputName(model, 0, 1), nullptr);
    EXPECT_EQ(FuseliteModelSignatureInputName(model, 1, 0), nullptr);
    EXPECT_EQ(FuseliteModelSignatureInputName(model, SIZE_MAX, 0), nullptr);
    interpreter_ = FuseliteInterpreterCreate(model, nullptr);
    FuseliteModelDelete(model);
    ASSERT_NE(interpreter_, nullptr) << FuseliteLastError();
  }
  void TearDown() override { FuseliteInterpreterDelete(interpreter_); }

  FuseliteInterpreter* interpreter_ = nullptr;
};

TEST_F(CApiInterpreterTest, FindsTensors) {
  EXPECT_EQ(FuseliteInterpreterInputCount(interpreter_), 1u);
  EXPECT_EQ(FuseliteInterpreterTensorCount(interpreter_), 2u);
  EXPECT_EQ(FuseliteInterpreterFindTensor(interpreter_, "out"), 1);
  EXPECT_EQ(FuseliteInterpreterFindTensor(interpreter_, "none"), -1);
  EXPECT_EQ(FuseliteInterpreterSignatureInput(interpreter_, "serve", "x"), 0);
  EXPECT_EQ(FuseliteInterpreterSignatureOutput(interpreter_, nullptr, "y"), 1);
  EXPECT_EQ(FuseliteInterpreterSignatureOutput(interpreter_, "other", "y"), -1);
  EXPECT_EQ(FuseliteInterpreterOutput(interpreter_, 0), 1);
  EXPECT_EQ(FuseliteInterpreterOutput(interpreter_, 1), -1);
  FuseliteTensor tensor;
  ASSERT_EQ(FuseliteInterpreterTensor(interpreter_, 0, &tensor), kFuseliteOk);
  EXPECT_EQ(tensor.type, kFuseliteFloat32);
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.dims[1], 3);
  EXPECT_STREQ(tensor.name, "in");
  EXPECT_EQ(tensor.bytes, 12u);
  EXPECT_EQ(tensor.scale, 0);
  EXPECT_EQ(FuseliteInterpreterTensor(interpreter_, 2, &tensor), kFuseliteInvalidArgument);
}

TEST_F(CApiInterpreterTest, SaysWhatIsWrong) {
  EXPECT_EQ(FuseliteInterpreterInvoke(interpreter_), kFuseliteInvalidArgument);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("allocate them before"));
  EXPECT_EQ(FuseliteLastStatus(), kFuseliteInvalidArgument);
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  float values[4] = {};
  EXPECT_EQ(FuseliteInterpreterCopyIn(interpreter_, 0, values, 16), kFuseliteInvalidArgument);
  EXPECT_STREQ(FuseliteLastError(), "\"in\" has 12 bytes, not 16");
  EXPECT_NE(FuseliteInterpreterCopyIn(interpreter_, 1, values, 12), kFuseliteOk);
  EXPECT_STREQ(FuseliteLastError(), "there is no input 1, the model has 1");
  EXPECT_NE(FuseliteInterpreterCopyOut(interpreter_, 4, values, 12), kFuseliteOk);
  EXPECT_STREQ(FuseliteLastError(), "there is no output 4, the model has 1");
  EXPECT_NE(FuseliteInterpreterCopyIn(interpreter_, 0, nullptr, 12), kFuseliteOk);
  const int32_t dims[] = {-2};
  EXPECT_NE(FuseliteInterpreterResizeInput(interpreter_, 0, dims, 1), kFuseliteOk);
  EXPECT_STREQ(FuseliteLastError(), "dimension 0 of the new shape is -2, less than 0");
  EXPECT_NE(FuseliteInterpreterResizeInput(interpreter_, 7, dims, 1), kFuseliteOk);
  EXPECT_STREQ(FuseliteLastError(), "there is no input 7, the model has 1");
  EXPECT_NE(FuseliteInterpreterApplyDelegate(interpreter_, nullptr), kFuseliteOk);
  EXPECT_EQ(FuseliteModelLoadFile("/no/such/file"), nullptr);
  EXPECT_EQ(FuseliteLastStatus(), kFuseliteNotFound);
  EXPECT_EQ(FuseliteModelLoadMemory("nonsense", 8), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("not a .tflite file"));
}

TEST_F(CApiInterpreterTest, TakesNullWhereThereIsNothing) {
  EXPECT_NE(FuseliteInterpreterResizeInput(interpreter_, 0, nullptr, 1), kFuseliteOk);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("null"));
  // A scalar has no dimensions.
  EXPECT_EQ(FuseliteInterpreterResizeInput(interpreter_, 0, nullptr, 0), kFuseliteOk);
  const int32_t none[] = {0, 3};
  ASSERT_EQ(FuseliteInterpreterResizeInput(interpreter_, 0, none, 2), kFuseliteOk);
  EXPECT_EQ(FuseliteInterpreterCopyIn(interpreter_, 0, nullptr, 0), kFuseliteOk);
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  EXPECT_EQ(FuseliteInterpreterCopyIn(interpreter_, 0, nullptr, 0), kFuseliteOk);
  EXPECT_EQ(FuseliteInterpreterCopyOut(interpreter_, 0, nullptr, 0), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterCopyOut(interpreter_, 0, nullptr, 12), kFuseliteOk);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("null"));
}

TEST_F(CApiInterpreterTest, TakesNullHandles) {
  FuseliteTensor tensor;
  EXPECT_EQ(FuseliteModelLoadFile(nullptr), nullptr);
  EXPECT_EQ(FuseliteInterpreterCreate(nullptr, nullptr), nullptr);
  EXPECT_STREQ(FuseliteLastError(), "FuseliteInterpreterCreate: the model is null");
  EXPECT_NE(FuseliteInterpreterInvoke(nullptr), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterTensor(nullptr, 0, &tensor), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterTensor(interpreter_, 0, nullptr), kFuseliteOk);
  EXPECT_EQ(FuseliteInterpreterInputCount(nullptr), 0u);
  EXPECT_EQ(FuseliteInterpreterOutputCount(nullptr), 0u);
  EXPECT_EQ(FuseliteInterpreterTensorCount(nullptr), 0u);
  EXPECT_EQ(FuseliteInterpreterInput(nullptr, 0), -1);
  EXPECT_EQ(FuseliteInterpreterOutput(nullptr, 0), -1);
  EXPECT_EQ(FuseliteInterpreterFindTensor(nullptr, "in"), -1);
  EXPECT_EQ(FuseliteInterpreterFindTensor(interpreter_, nullptr), -1);
  EXPECT_EQ(FuseliteInterpreterSignatureInput(nullptr, nullptr, "x"), -1);
  EXPECT_EQ(FuseliteInterpreterSignatureOutput(nullptr, nullptr, "y"), -1);
  EXPECT_EQ(FuseliteInterpreterSignatureInput(interpreter_, nullptr, nullptr), -1);
  EXPECT_NE(FuseliteInterpreterAllocate(nullptr), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterCopyIn(nullptr, 0, &tensor, 12), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterCopyOut(nullptr, 0, &tensor, 12), kFuseliteOk);
  EXPECT_EQ(FuseliteInterpreterTakeEvents(nullptr, nullptr, 0), 0u);
  FuseliteInterpreterSetProfiling(nullptr, 1);
  FuseliteInterpreterResetVariables(nullptr);
  EXPECT_EQ(FuseliteModelSignatureCount(nullptr), 0u);
  EXPECT_EQ(FuseliteModelSignatureKey(nullptr, 0), nullptr);
  EXPECT_NE(FuseliteInterpreterResizeInput(interpreter_, SIZE_MAX, nullptr, 0), kFuseliteOk);
  FuseliteModelDelete(nullptr);
  FuseliteInterpreterDelete(nullptr);
  FuseliteInterpreterCancel(nullptr);
}

// The error is of the last call that failed, and names the function and what is null.
TEST_F(CApiInterpreterTest, SaysThatSomethingIsNull) {
  int32_t dims[] = {1, 3};
  float values[3] = {};
  FuseliteTensor tensor;
  const auto says_null = [&](const std::string& function, bool failed) {
    const std::string said = FuseliteLastError();
    EXPECT_EQ(FuseliteInterpreterInvoke(interpreter_), kFuseliteInvalidArgument);  // another error
    return failed && said.starts_with(function + ": the ") && said.ends_with(" is null");
  };
  FuseliteModel* const model = nullptr;
  EXPECT_TRUE(says_null("FuseliteModelLoadFile", FuseliteModelLoadFile(nullptr) == nullptr));
  EXPECT_TRUE(says_null("FuseliteModelLoadMemory", FuseliteModelLoadMemory(nullptr, 8) == nullptr));
  EXPECT_TRUE(
      says_null("FuseliteInterpreterCreate", FuseliteInterpreterCreate(model, nullptr) == nullptr));
  EXPECT_TRUE(says_null("FuseliteInterpreterApplyDelegate",
                        FuseliteInterpreterApplyDelegate(nullptr, values) != kFuseliteOk));
  EXPECT_TRUE(says_null("FuseliteInterpreterApplyDelegate",
                        FuseliteInterpreterApplyDelegate(interpreter_, nullptr) != kFuseliteOk));
  EXPECT_TRUE(says_null("FuseliteInterpreterTensor",
                        FuseliteInterpreterTensor(nullptr, 0, &tensor) != kFuseliteOk));
  EXPECT_TRUE(says_null("FuseliteInterpreterResizeInput",
                        FuseliteInterpreterResizeInput(nullptr, 0, dims, 2) != kFuseliteOk));
  EXPECT_TRUE(says_null("FuseliteInterpreterAllocate",
                        FuseliteInterpreterAllocate(nullptr) != kFuseliteOk));
  EXPECT_TRUE(
      says_null("FuseliteInterpreterInvoke", FuseliteInterpreterInvoke(nullptr) != kFuseliteOk));
  EXPECT_TRUE(says_null("FuseliteInterpreterCopyIn",
                        FuseliteInterpreterCopyIn(nullptr, 0, values, 12) != kFuseliteOk));
  EXPECT_TRUE(says_null("FuseliteInterpreterCopyOut",
                        FuseliteInterpreterCopyOut(nullptr, 0, values, 12) != kFuseliteOk));
  FuseliteProfileEvent event;
  EXPECT_EQ(FuseliteInterpreterTakeEvents(nullptr, &event, 1), 0u);
  EXPECT_EQ(FuseliteInterpreterSignatureOutput(interpreter_, nullptr, nullptr), -1);
  EXPECT_EQ(FuseliteInterpreterInputCount(interpreter_), 1u);
  EXPECT_EQ(FuseliteInterpreterOutputCount(interpreter_), 1u);
  EXPECT_EQ(FuseliteInterpreterInput(interpreter_, 0), 0);
  EXPECT_EQ(FuseliteInterpreterFindTensor(interpreter_, "in"), 0);
}

TEST_F(CApiInterpreterTest, KeepsTheErrorOfTheLastCallThatFailed) {
  EXPECT_EQ(FuseliteInterpreterInvoke(interpreter_), kFuseliteInvalidArgument);
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("allocate them before"));
  EXPECT_EQ(FuseliteLastStatus(), kFuseliteInvalidArgument);
}

TEST_F(CApiInterpreterTest, HasNothingBeyondItsTensors) {
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  FuseliteTensor tensor;
  for (const int32_t index : {-1, INT32_MIN, 2, INT32_MAX}) {
    EXPECT_EQ(FuseliteInterpreterTensor(interpreter_, index, &tensor), kFuseliteInvalidArgument);
    EXPECT_EQ(FuseliteLastError(),
              "there is no tensor " + std::to_string(index) + ", the model has 2");
  }
  float values[3] = {};
  const int32_t dims[] = {1, 3};
  for (const size_t i : {size_t{1}, size_t{1} << 31, size_t{1} << 32, SIZE_MAX}) {
    EXPECT_EQ(FuseliteInterpreterInput(interpreter_, i), -1);
    EXPECT_EQ(FuseliteInterpreterOutput(interpreter_, i), -1);
    EXPECT_NE(FuseliteInterpreterResizeInput(interpreter_, i, dims, 2), kFuseliteOk);
    EXPECT_NE(FuseliteInterpreterCopyIn(interpreter_, i, values, 12), kFuseliteOk);
    EXPECT_NE(FuseliteInterpreterCopyOut(interpreter_, i, values, 12), kFuseliteOk);
  }
}

TEST_F(CApiInterpreterTest, ResizesAndProfiles) {
  const int32_t dims[] = {2, 2};
  ASSERT_EQ(FuseliteInterpreterResizeInput(interpreter_, 0, dims, 2), kFuseliteOk);
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  FuseliteInterpreterSetProfiling(interpreter_, 1);
  const float values[4] = {0, 1, 2, 3};
  ASSERT_EQ(FuseliteInterpreterCopyIn(interpreter_, 0, values, 16), kFuseliteOk);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(FuseliteInterpreterInvoke(interpreter_), kFuseliteOk);
  FuseliteProfileEvent events[2];
  ASSERT_EQ(FuseliteInterpreterTakeEvents(interpreter_, events, 2), 2u);
  EXPECT_STREQ(events[1].name, "SOFTMAX");
  EXPECT_GE(events[1].duration_ns, 0);
  EXPECT_EQ(FuseliteInterpreterTakeEvents(interpreter_, events, 2), 1u);
  EXPECT_EQ(FuseliteInterpreterTakeEvents(interpreter_, events, 2), 0u);
}

TEST_F(CApiInterpreterTest, HasNoValuesBeforeTheyHaveMemory) {
  float values[3] = {};
  for (const auto& status : {FuseliteInterpreterCopyOut(interpreter_, 0, values, 12),
                             FuseliteInterpreterCopyIn(interpreter_, 0, values, 12)}) {
    EXPECT_EQ(status, kFuseliteInvalidArgument);
    EXPECT_THAT(FuseliteLastError(), HasSubstr("has no memory yet: allocate first"));
  }
}

// What a tensor had before is too short, or of another shape.
TEST_F(CApiInterpreterTest, HasNoValuesAfterAResize) {
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  const int32_t dims[] = {1000, 3};
  ASSERT_EQ(FuseliteInterpreterResizeInput(interpreter_, 0, dims, 2), kFuseliteOk);
  FuseliteTensor tensor;
  ASSERT_EQ(FuseliteInterpreterTensor(interpreter_, 0, &tensor), kFuseliteOk);
  EXPECT_EQ(tensor.data, nullptr);
  const std::vector<float> values(3000);
  EXPECT_EQ(FuseliteInterpreterCopyIn(interpreter_, 0, values.data(), 12000),
            kFuseliteInvalidArgument);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("has no memory yet: allocate first"));
  FuseliteInterpreterResetVariables(interpreter_);
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  EXPECT_EQ(FuseliteInterpreterCopyIn(interpreter_, 0, values.data(), 12000), kFuseliteOk);
}

TEST_F(CApiInterpreterTest, ProfilesWhereItIsAskedTo) {
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter_), kFuseliteOk);
  FuseliteProfileEvent event;
  const auto events = [&] {
    EXPECT_EQ(FuseliteInterpreterInvoke(interpreter_), kFuseliteOk);
    return FuseliteInterpreterTakeEvents(interpreter_, &event, 1);
  };
  EXPECT_EQ(events(), 0u);
  FuseliteInterpreterSetProfiling(interpreter_, 1);
  EXPECT_EQ(events(), 1u);
  ASSERT_EQ(FuseliteInterpreterInvoke(interpreter_), kFuseliteOk);
  EXPECT_EQ(FuseliteInterpreterTakeEvents(interpreter_, nullptr, 1), 0u);
  EXPECT_EQ(FuseliteInterpreterTakeEvents(interpreter_, &event, 1), 1u) << "it waits on";
  FuseliteInterpreterSetProfiling(interpreter_, 0);
  EXPECT_EQ(events(), 0u);
}

// Four tensors: weights with two scales, a code with one, a variable of an open shape, a string.
TEST(CApiTest, DescribesEachTensor) {
  ModelWriter writer;
  const int weights = writer.AddConstant<int8_t>("weights", DataType::kInt8, {2, 2}, {1, 2, 3, 4},
                                                 {{0.5f, 0.25f}, {1, 2}, 1});
  const int code = writer.AddTensor("code", DataType::kUInt8, {2}, {{0.1f}, {128}, 0});
  const int state = writer.AddTensor({"state", DataType::kFloat32, {1, 3}, {}, {}, true, {-1, 3}});
  const int text = writer.AddTensor("text", DataType::kString, {1});
  writer.SetInputs({code, text});
  writer.SetOutputs({code, text});
  const std::vector<std::byte> bytes = writer.Finish();
  FuseliteModel* model = FuseliteModelLoadMemory(bytes.data(), bytes.size());
  ASSERT_NE(model, nullptr) << FuseliteLastError();
  FuseliteInterpreter* interpreter = FuseliteInterpreterCreate(model, nullptr);
  ASSERT_NE(interpreter, nullptr) << FuseliteLastError();
  FuseliteTensor tensor;
  ASSERT_EQ(FuseliteInterpreterTensor(interpreter, weights, &tensor), kFuseliteOk);
  EXPECT_EQ(tensor.scale_count, 2u);
  EXPECT_EQ(tensor.scale, 0) << "there is no single one";
  EXPECT_EQ(tensor.zero_point, 0);
  EXPECT_EQ(tensor.scales[1], 0.25f);
  EXPECT_EQ(tensor.zero_points[1], 2);
  EXPECT_EQ(tensor.quantized_dimension, 1);
  EXPECT_TRUE(tensor.is_constant);
  EXPECT_FALSE(tensor.is_variable);
  ASSERT_EQ(FuseliteInterpreterTensor(interpreter, code, &tensor), kFuseliteOk);
  EXPECT_EQ(tensor.scale, 0.1f);
  EXPECT_EQ(tensor.zero_point, 128);
  EXPECT_EQ(tensor.dims_signature[0], 2) << "as its shape, where the file has none";
  EXPECT_FALSE(tensor.is_constant);
  ASSERT_EQ(FuseliteInterpreterTensor(interpreter, state, &tensor), kFuseliteOk);
  EXPECT_TRUE(tensor.is_variable);
  EXPECT_EQ(tensor.dims[0], 1);
  EXPECT_EQ(tensor.dims_signature[0], -1);
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter), kFuseliteOk) << FuseliteLastError();
  // One string of two bytes, as a table.
  const int32_t table[] = {1, 12, 14, 0x6968};
  ASSERT_EQ(FuseliteInterpreterCopyIn(interpreter, 1, table, 14), kFuseliteOk)
      << FuseliteLastError();
  ASSERT_EQ(FuseliteInterpreterTensor(interpreter, text, &tensor), kFuseliteOk);
  EXPECT_EQ(tensor.bytes, 14u);
  EXPECT_NE(FuseliteInterpreterCopyIn(interpreter, 1, table, 13), kFuseliteOk);
  FuseliteInterpreterDelete(interpreter);
  FuseliteModelDelete(model);
}

TEST(CApiTest, RefusesOperatorsThatAreNotThere) {
  const std::vector<std::byte> bytes = SoftmaxModel();
  FuseliteModel* model = FuseliteModelLoadMemory(bytes.data(), bytes.size());
  FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
  options.operator_count = 1;
  EXPECT_EQ(FuseliteInterpreterCreate(model, &options), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("null"));
  const struct TfLiteOperator* const none[] = {nullptr};
  options.operators = none;
  EXPECT_EQ(FuseliteInterpreterCreate(model, &options), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("null"));
  options.operator_count = 0;
  FuseliteInterpreter* interpreter = FuseliteInterpreterCreate(model, &options);
  EXPECT_NE(interpreter, nullptr) << FuseliteLastError();
  FuseliteInterpreterDelete(interpreter);
  FuseliteModelDelete(model);
}

TEST(CApiTest, NamesTypes) {
  EXPECT_STREQ(FuseliteTypeName(kFuseliteFloat32), "float32");
  EXPECT_STREQ(FuseliteTypeName(kFuseliteUInt4), "uint4");
  EXPECT_STREQ(FuseliteTypeName(static_cast<FuseliteType>(1000)),
               FuseliteTypeName(kFuseliteNoType));
}

TEST(CApiTest, RefusesRanksBeyondTheLargest) {
  const std::vector<std::byte> bytes = SoftmaxModel();
  FuseliteModel* model = FuseliteModelLoadMemory(bytes.data(), bytes.size());
  FuseliteInterpreter* interpreter = FuseliteInterpreterCreate(model, nullptr);
  const int32_t dims[] = {1};  // no more of them may be read
  EXPECT_EQ(FuseliteInterpreterResizeInput(interpreter, 0, dims, 1 << 20),
            kFuseliteInvalidArgument);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("rank 1048576 is more than 16"));
  FuseliteInterpreterDelete(interpreter);
  FuseliteModelDelete(model);
  EXPECT_EQ(FuseliteModelLoadFile(""), nullptr);
  EXPECT_STREQ(FuseliteLastError(), "the path of the model is empty");
}

TEST(CApiTest, RefusesOptionsOfAnotherSize) {
  const std::vector<std::byte> bytes = SoftmaxModel();
  FuseliteModel* model = FuseliteModelLoadMemory(bytes.data(), bytes.size());
  FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
  options.struct_size = 4;
  EXPECT_EQ(FuseliteInterpreterCreate(model, &options), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("struct_size"));
  options = FuseliteInterpreterOptionsDefault();
  options.max_memory = std::nan("");
  EXPECT_EQ(FuseliteInterpreterCreate(model, &options), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("must be numbers"));
  options = FuseliteInterpreterOptionsDefault();
  FuseliteInterpreter* interpreter = FuseliteInterpreterCreate(model, &options);
  EXPECT_NE(interpreter, nullptr);
  FuseliteInterpreterDelete(interpreter);
  // An older program's struct lacks the members that came later.
  options.struct_size = offsetof(FuseliteInterpreterOptions, signature);
  options.signature = "nonesuch";
  interpreter = FuseliteInterpreterCreate(model, &options);
  EXPECT_NE(interpreter, nullptr);
  FuseliteInterpreterDelete(interpreter);
  FuseliteModelDelete(model);
}

TEST(CApiTest, RunsTheSignatureThatIsAskedFor) {
  ModelWriter writer;
  for (const char* op : {"SQUARE", "NEG"}) {
    if (std::string(op) == "NEG") writer.AddSubgraph("second");
    const int in = writer.AddTensor("in", DataType::kFloat32, {1});
    const int out = writer.AddTensor("out", DataType::kFloat32, {1});
    writer.AddOperator(*kernels::FindOperator(op), {in}, {out});
    writer.SetInputs({in});
    writer.SetOutputs({out});
    writer.AddSignature(op, {{"x", in}}, {{"y", out}});
  }
  const std::vector<std::byte> bytes = writer.Finish();
  FuseliteModel* model = FuseliteModelLoadMemory(bytes.data(), bytes.size());
  ASSERT_NE(model, nullptr) << FuseliteLastError();
  FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
  for (const auto& [signature, expected] : {std::pair("SQUARE", 4.0f), std::pair("NEG", 2.0f)}) {
    options.signature = signature;
    FuseliteInterpreter* interpreter = FuseliteInterpreterCreate(model, &options);
    ASSERT_NE(interpreter, nullptr) << FuseliteLastError();
    EXPECT_EQ(FuseliteInterpreterSignatureInput(interpreter, nullptr, "x"), 0);
    EXPECT_EQ(FuseliteInterpreterSignatureInput(interpreter, signature, "x"), 0);
    const char* other = std::string(signature) == "NEG" ? "SQUARE" : "NEG";
    EXPECT_EQ(FuseliteInterpreterSignatureInput(interpreter, other, "x"), -1);
    ASSERT_EQ(FuseliteInterpreterAllocate(interpreter), kFuseliteOk);
    float value = -2;
    ASSERT_EQ(FuseliteInterpreterCopyIn(interpreter, 0, &value, sizeof value), kFuseliteOk);
    ASSERT_EQ(FuseliteInterpreterInvoke(interpreter), kFuseliteOk) << FuseliteLastError();
    ASSERT_EQ(FuseliteInterpreterCopyOut(interpreter, 0, &value, sizeof value), kFuseliteOk);
    EXPECT_EQ(value, expected);
    FuseliteInterpreterDelete(interpreter);
  }
  options.signature = "SIN";
  EXPECT_EQ(FuseliteInterpreterCreate(model, &options), nullptr);
  EXPECT_STREQ(FuseliteLastError(), "the model has no signature 'SIN'; it has SQUARE, NEG");
  EXPECT_EQ(FuseliteLastStatus(), kFuseliteNotFound);
  FuseliteModelDelete(model);
}

}  // namespace
}  // namespace fuselite::interpreter
