// The opaque interface of custom operators: errors, and what an operator may ask.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/interpreter/custom_operators.h"

namespace fuselite::interpreter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CustomOperatorQuestionsTest, TellWhatIsWrong) {
  const OperatorPtr picky =
      MakeOperator("Picky", PrepareLikeInput, [](TfLiteOpaqueContext* context, TfLiteOpaqueNode*) {
        TfLiteOpaqueContextReportError(context, "no more than %d of %s", 3, "these");
        return kTfLiteError;
      });
  Chain chain(2);
  const ModelPtr model = chain.Custom("Picky").Load();
  EXPECT_EQ(Open(model, {}), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("custom operator Picky"));
  const InterpreterPtr interpreter = Open(model, {picky.get()});
  ASSERT_NE(interpreter, nullptr) << FuseliteLastError();
  ASSERT_EQ(FuseliteInterpreterAllocate(interpreter.get()), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterInvoke(interpreter.get()), kFuseliteOk);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("no more than 3 of these"));
  const int32_t matrix[] = {2, 2};
  ASSERT_EQ(FuseliteInterpreterResizeInput(interpreter.get(), 0, matrix, 2), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterAllocate(interpreter.get()), kFuseliteOk);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("TfLiteOpaqueTensorNumDims(input) is not 1 (2, 1)"));
  const OperatorPtr half = MakeOperator("Picky", PrepareLikeInput, nullptr);
  const InterpreterPtr incomplete = Open(model, {half.get()});
  ASSERT_NE(incomplete, nullptr) << FuseliteLastError();
  ASSERT_EQ(FuseliteInterpreterAllocate(incomplete.get()), kFuseliteOk);
  EXPECT_NE(FuseliteInterpreterInvoke(incomplete.get()), kFuseliteOk);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("Picky: has no functions"));
}

// Two inputs and one left out.
TfLiteStatus LookAround(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const int* inputs;
  const int* outputs;
  int input_count, output_count;
  TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueNodeInputs(node, &inputs, &input_count));
  TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueNodeOutputs(node, &outputs, &output_count));
  TF_LITE_OPAQUE_ENSURE_EQ(context, input_count, 3);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeNumberOfInputs(node), 3);
  TF_LITE_OPAQUE_ENSURE_EQ(context, output_count, TfLiteOpaqueNodeNumberOfOutputs(node));
  for (const int i : {0, 1, 2}) {
    TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeGetInputTensorIndex(node, i), inputs[i]);
  }
  TF_LITE_OPAQUE_ENSURE_EQ(context, inputs[1], -1);
  TF_LITE_OPAQUE_ENSURE(context, TfLiteOpaqueNodeGetInput(context, node, 1) == nullptr);
  TF_LITE_OPAQUE_ENSURE(context, TfLiteOpaqueNodeGetInput(context, node, 3) == nullptr);
  TF_LITE_OPAQUE_ENSURE(context, TfLiteOpaqueNodeGetOutput(context, node, -1) == nullptr);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeGetOutputTensorIndex(node, 0), outputs[0]);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueContextGetNumThreads(context), 2);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueContextGetNumTensors(context), 2u);
  const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE(context, std::string(TfLiteOpaqueTensorName(x)) == "x");
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorIsVariable(x), 0);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorDim(x, 1), -1);
  int32_t rank, length;
  TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueTensorGetNumDimsSignature(x, &rank));
  TF_LITE_OPAQUE_ENSURE_EQ(context, rank, 1);
  TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueTensorGetDimSignature(x, 0, &length));
  TF_LITE_OPAQUE_ENSURE_EQ(context, length, -1);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorGetDimSignature(x, 1, &length), kTfLiteError);
  size_t bytes;
  TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueContextGetSizeOfType(context, kTfLiteInt16, &bytes));
  TF_LITE_OPAQUE_ENSURE_EQ(context, bytes, 2u);
  TF_LITE_OPAQUE_ENSURE_EQ(
      context, TfLiteOpaqueContextGetSizeOfType(context, kTfLiteString, &bytes), kTfLiteError);
  TF_LITE_OPAQUE_ENSURE_STATUS(PrepareLikeInput(context, node));
  // Values have no memory yet.
  TfLiteOpaqueTensor* y = TfLiteOpaqueNodeGetOutput(context, node, 0);
  std::vector<float> values(TfLiteOpaqueTensorByteSize(y) / sizeof(float));
  bytes = values.size() * sizeof(float);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorCopyFromBuffer(y, values.data(), bytes),
                           kTfLiteError);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorCopyToBuffer(y, values.data(), bytes),
                           kTfLiteError);
  return kTfLiteOk;
}

TEST(CustomOperatorQuestionsTest, LookAround) {
  const OperatorPtr look =
      MakeOperator("Look", LookAround, [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
        float x[2];
        const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
        TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorCopyToBuffer(input, x, 4),
                                 kTfLiteError);
        TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueTensorCopyToBuffer(input, x, sizeof x));
        std::swap(x[0], x[1]);
        TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);
        TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorCopyFromBuffer(output, x, 4),
                                 kTfLiteError);
        return TfLiteOpaqueTensorCopyFromBuffer(output, x, sizeof x);
      });
  Chain chain(2);
  const InterpreterPtr interpreter = Open(chain.Custom("Look", {}, {-1, 0}).Load(), {look.get()});
  EXPECT_THAT(RunOn(interpreter, {1, 2}), ElementsAre(2, 1));
}

TEST(CustomOperatorQuestionsTest, GoByTheOlderNamesToo) {
  TfLiteRegistrationExternal* op =
      TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "Older", 1);
  TfLiteRegistrationExternalSetPrepare(op, PrepareLikeInput);
  TfLiteRegistrationExternalSetInvoke(op, [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
    Floats(TfLiteOpaqueNodeGetOutput(context, node, 0))[0] = 3;
    return kTfLiteOk;
  });
  EXPECT_STREQ(TfLiteRegistrationExternalGetCustomName(op), "Older");
  EXPECT_EQ(TfLiteRegistrationExternalGetVersion(op), 1);
  EXPECT_EQ(TfLiteRegistrationExternalGetBuiltInCode(op), kTfLiteBuiltinCustom);
  {
    Chain chain(1);
    const InterpreterPtr interpreter = Open(chain.Custom("Older").Load(), {op});
    EXPECT_THAT(RunOn(interpreter, {1}), ElementsAre(3));
  }
  TfLiteRegistrationExternalDelete(op);
}

TEST(CustomOperatorQuestionsTest, HaveANameAndTheirOwnMaker) {
  Chain chain(1);
  const ModelPtr model = chain.Custom("Odd").Load();
  const OperatorPtr nameless(TfLiteOperatorCreate(kTfLiteBuiltinCustom, nullptr, 1, nullptr));
  EXPECT_EQ(Open(model, {nameless.get()}), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("a custom operator has no name"));
  alignas(16) const std::byte foreign[512] = {};
  EXPECT_EQ(Open(model, {reinterpret_cast<const TfLiteOperator*>(foreign)}), nullptr);
  EXPECT_THAT(FuseliteLastError(), HasSubstr("was not made by libfuselite_custom_operators.so"));
}

// An operator of the application's own in place of one that the interpreter has.
TEST(CustomOperatorQuestionsTest, MayStandForBuiltinOnes) {
  constexpr auto kAdd = static_cast<TfLiteBuiltinOperator>(0);  // as the schema has it
  const OperatorPtr add(TfLiteOperatorCreate(kAdd, nullptr, 1, nullptr));
  TfLiteOperatorSetPrepare(add.get(), PrepareLikeInput);
  TfLiteOperatorSetInvoke(add.get(), [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
    Floats(TfLiteOpaqueNodeGetOutput(context, node, 0))[0] = 77;
    return kTfLiteOk;
  });
  Chain chain(1);
  const InterpreterPtr interpreter = Open(chain.Add(1).Load(), {add.get()});
  EXPECT_THAT(RunOn(interpreter, {1}), ElementsAre(77));
}

TEST(CustomOperatorQuestionsTest, AreFreedByTheFunctionThatTheyHave) {
  static int freed;
  freed = 0;
  for (const bool frees : {true, false}) {
    const OperatorPtr op =
        MakeOperator("Freed", PrepareLikeInput,
                     [](TfLiteOpaqueContext*, TfLiteOpaqueNode*) { return kTfLiteOk; });
    TfLiteOperatorSetInit(
        op.get(), [](TfLiteOpaqueContext*, const char*, size_t) -> void* { return &freed; });
    if (frees) {
      TfLiteOperatorSetFree(op.get(), [](TfLiteOpaqueContext*, void*) { ++freed; });
    }
    Chain chain(1);
    Open(chain.Custom("Freed").Load(), {op.get()}).reset();
    EXPECT_EQ(freed, 1) << frees;
  }
}

TEST(CustomOperatorQuestionsTest, IntArrays) {
  TfLiteIntArray* array = TfLiteIntArrayCreate(2);
  array->data[0] = 4;
  array->data[1] = 5;
  TfLiteIntArray* copy = TfLiteIntArrayCopy(array);
  EXPECT_TRUE(TfLiteIntArrayEqual(array, copy));
  copy->data[1] = 6;
  EXPECT_FALSE(TfLiteIntArrayEqual(array, copy));
  EXPECT_FALSE(TfLiteIntArrayEqual(array, nullptr));
  EXPECT_EQ(TfLiteIntArrayCopy(nullptr), nullptr);
  EXPECT_EQ(TfLiteIntArrayCreate(-1), nullptr);
  TfLiteIntArrayFree(copy);
  TfLiteIntArrayFree(array);
}

}  // namespace
}  // namespace fuselite::interpreter::testing
