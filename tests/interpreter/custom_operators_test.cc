// The opaque interface of custom operators: what they live through, own and give.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/interpreter/custom_operators.h"

namespace fuselite::interpreter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- Init and Free, with data and options ---

// "Scale": y = x * factor. The factor is the operator's options in the file.
struct Counts {
  int inits = 0, frees = 0, prepares = 0, invokes = 0;
};
Counts& CountsOf(void* data) { return *static_cast<Counts*>(data); }

OperatorPtr ScaleOperator(Counts* counts) {
  OperatorPtr op(TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Scale", 1, counts));
  TfLiteOperatorSetInitWithData(
      op.get(), [](void* data, TfLiteOpaqueContext*, const char* buffer, size_t length) -> void* {
        ++CountsOf(data).inits;
        auto* factor = new float(0);
        if (length == sizeof *factor) std::memcpy(factor, buffer, length);
        return factor;
      });
  TfLiteOperatorSetFreeWithData(op.get(), [](void* data, TfLiteOpaqueContext*, void* factor) {
    ++CountsOf(data).frees;
    delete static_cast<float*>(factor);
  });
  TfLiteOperatorSetPrepareWithData(
      op.get(), [](void* data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
        ++CountsOf(data).prepares;
        const void* options;
        int size;
        TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueNodeGetCustomInitialData(node, &options, &size));
        TF_LITE_OPAQUE_ENSURE_EQ(context, size, static_cast<int>(sizeof(float)));
        TF_LITE_OPAQUE_ENSURE_EQ(
            context, std::memcmp(options, TfLiteOpaqueNodeGetUserData(node), sizeof(float)), 0);
        return PrepareLikeInput(context, node);
      });
  TfLiteOperatorSetInvokeWithData(
      op.get(), [](void* data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
        ++CountsOf(data).invokes;
        const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
        const float factor = *static_cast<const float*>(TfLiteOpaqueNodeGetUserData(node));
        std::transform(Floats(input), Floats(input) + Elements(input),
                       Floats(TfLiteOpaqueNodeGetOutput(context, node, 0)),
                       [factor](float x) { return x * factor; });
        return kTfLiteOk;
      });
  return op;
}

TEST(CustomOperatorsTest, LiveFromInitToFreeOnceForEachNode) {
  Counts counts;
  const OperatorPtr scale = ScaleOperator(&counts);
  EXPECT_EQ(TfLiteOperatorGetUserData(scale.get()), &counts);
  Chain chain(2);
  chain.Custom("Scale", BytesOf(std::vector<float>{2}))
      .Custom("Scale", BytesOf(std::vector<float>{10}));
  const ModelPtr model = chain.Load();
  {
    const InterpreterPtr interpreter = Open(model, {scale.get()});
    EXPECT_THAT(RunOn(interpreter, {1, 2}), ElementsAre(20, 40));
    EXPECT_EQ(counts.inits, 2);
    EXPECT_EQ(counts.invokes, 2);
    const int prepares = counts.prepares;
    EXPECT_THAT(RunOn(interpreter, {1, 2, 3}), ElementsAre(20, 40, 60));
    EXPECT_EQ(counts.prepares, prepares + 2) << "once for each node and change of shapes";
    EXPECT_EQ(counts.inits, 2);
    EXPECT_EQ(counts.frees, 0);
  }
  EXPECT_EQ(counts.frees, 2);
}

// --- Temporaries, made with a tensor builder ---

// "Reverse": through a temporary. A second tensor has the operator's own data.
struct ReverseTensors {
  int scratch = -1, table = -1;
};
float table_data[2] = {7, 8};

void* ReverseInit(TfLiteOpaqueContext* context, const char*, size_t) {
  auto tensors = std::make_unique<ReverseTensors>();
  using Builder =
      std::unique_ptr<TfLiteOpaqueTensorBuilder, Calls<TfLiteOpaqueTensorBuilderDelete>>;
  const Builder scratch(TfLiteOpaqueTensorBuilderCreate());
  TfLiteOpaqueTensorBuilderSetType(scratch.get(), kTfLiteFloat32);
  const Builder table(TfLiteOpaqueTensorBuilderCreate());
  TfLiteOpaqueTensorBuilder* returned = TfLiteOpaqueTensorBuilderSetType(table.get(), kTfLiteInt8);
  returned = TfLiteOpaqueTensorBuilderSetAllocationType(returned, kTfLiteMmapRo);
  returned = TfLiteOpaqueTensorBuilderSetQuantizationParams(returned, {0.5f, 3});
  returned = TfLiteOpaqueTensorBuilderSetData(returned, table_data);
  const bool added =
      returned == table.get() &&
      TfLiteOpaqueContextAddTensor(context, scratch.get(), &tensors->scratch) == kTfLiteOk &&
      TfLiteOpaqueContextAddTensor(context, table.get(), &tensors->table) == kTfLiteOk;
  return added ? tensors.release() : nullptr;
}

const ReverseTensors& TensorsOf(const TfLiteOpaqueNode* node) {
  return *static_cast<const ReverseTensors*>(TfLiteOpaqueNodeGetUserData(node));
}

TfLiteStatus ReversePrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  TF_LITE_OPAQUE_ENSURE_STATUS(PrepareLikeInput(context, node));
  const int scratch = TensorsOf(node).scratch;
  TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueNodeSetTemporaries(node, &scratch, 1));
  const int length = TfLiteOpaqueTensorDim(TfLiteOpaqueNodeGetInput(context, node, 0), 0);
  return Resize(context, TfLiteOpaqueContextGetOpaqueTensor(context, scratch), length);
}

TfLiteStatus ReverseInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const int* temporaries;
  int count;
  TF_LITE_OPAQUE_ENSURE_STATUS(TfLiteOpaqueNodeTemporaries(node, &temporaries, &count));
  TF_LITE_OPAQUE_ENSURE_EQ(context, count, 1);
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* scratch = TfLiteOpaqueContextGetOpaqueTensor(context, temporaries[0]);
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorByteSize(scratch),
                           TfLiteOpaqueTensorByteSize(input));
  // Memory of its own: what is written to it changes neither end.
  std::reverse_copy(Floats(input), Floats(input) + Elements(input), Floats(scratch));
  TF_LITE_OPAQUE_ENSURE(context, Elements(output) == 0 || Floats(scratch) != Floats(output));
  return TfLiteOpaqueTensorCopyFromBuffer(output, Floats(scratch),
                                          TfLiteOpaqueTensorByteSize(scratch));
}

OperatorPtr ReverseOperator() {
  OperatorPtr op = MakeOperator("Reverse", ReversePrepare, ReverseInvoke);
  TfLiteOperatorSetInit(op.get(), ReverseInit);
  TfLiteOperatorSetFree(op.get(), [](TfLiteOpaqueContext*, void* tensors) {
    delete static_cast<ReverseTensors*>(tensors);
  });
  return op;
}

TEST(CustomOperatorsTest, HaveTemporaries) {
  const OperatorPtr reverse = ReverseOperator();
  Chain chain(3);
  chain.Custom("Reverse").Custom("Reverse").Custom("Reverse");
  const InterpreterPtr interpreter = Open(chain.Load(), {reverse.get()});
  EXPECT_THAT(RunOn(interpreter, {1, 2, 3}), ElementsAre(3, 2, 1));
  EXPECT_THAT(RunOn(interpreter, {1, 2, 3, 4, 5}), ElementsAre(5, 4, 3, 2, 1));
}

TEST(CustomOperatorsTest, NoneIsDeletedWithoutHarm) { TfLiteOperatorDelete(nullptr); }

TEST(CustomOperatorsTest, MayHaveNoTemporaries) {
  static TfLiteStatus none, missing, negative;
  const OperatorPtr op = MakeOperator(
      "Plain",
      [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
        const int list[] = {0};
        none = TfLiteOpaqueNodeSetTemporaries(node, nullptr, 0);
        missing = TfLiteOpaqueNodeSetTemporaries(node, nullptr, 1);
        negative = TfLiteOpaqueNodeSetTemporaries(node, list, -1);
        return PrepareLikeInput(context, node);
      },
      [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
        const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
        return TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueNodeGetOutput(context, node, 0),
                                                Floats(input), TfLiteOpaqueTensorByteSize(input));
      });
  Chain chain(2);
  chain.Custom("Plain");
  EXPECT_THAT(RunOn(Open(chain.Load(), {op.get()}), {1, 2}), ElementsAre(1, 2));
  EXPECT_EQ(none, kTfLiteOk);
  EXPECT_EQ(missing, kTfLiteError);
  EXPECT_EQ(negative, kTfLiteError);
}

// Nor is freed what no init gave.
TEST(CustomOperatorsTest, NeedNoPrepare) {
  static bool freed = false;
  const OperatorPtr op =
      MakeOperator("Still", nullptr, [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
        const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
        return TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueNodeGetOutput(context, node, 0),
                                                Floats(input), TfLiteOpaqueTensorByteSize(input));
      });
  TfLiteOperatorSetFree(op.get(), [](TfLiteOpaqueContext*, void*) { freed = true; });
  Chain chain(2);
  EXPECT_THAT(RunOn(Open(chain.Custom("Still").Load(), {op.get()}), {1, 2}), ElementsAre(1, 2));
  EXPECT_FALSE(freed);
}

TEST(CustomOperatorsTest, BuildTensorsWithDataAndQuantization) {
  OperatorPtr op = ReverseOperator();
  TfLiteOperatorSetInvoke(op.get(), [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
    const TfLiteOpaqueTensor* table =
        TfLiteOpaqueContextGetOpaqueTensor(context, TensorsOf(node).table);
    TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorType(table), kTfLiteInt8);
    TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorGetAllocationType(table), kTfLiteMmapRo);
    TF_LITE_OPAQUE_ENSURE(context, TfLiteOpaqueTensorGetQuantizationParams(table).scale == 0.5f);
    TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorGetQuantizationParams(table).zero_point, 3);
    std::copy_n(Floats(table), 2, Floats(TfLiteOpaqueNodeGetOutput(context, node, 0)));
    return kTfLiteOk;
  });
  Chain chain(2);
  const InterpreterPtr interpreter = Open(chain.Custom("Reverse").Load(), {op.get()});
  EXPECT_THAT(RunOn(interpreter, {0, 0}), ElementsAre(7, 8));
}

// --- Outputs whose shape depends on values ---

// "Until": the elements before the first negative one.
TfLiteStatus UntilPrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);
  TfLiteOpaqueTensorSetAllocationTypeToDynamic(output);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorGetAllocationType(output), kTfLiteDynamic);
  return kTfLiteOk;
}

TfLiteStatus UntilInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* begin = Floats(input);
  const float* end = std::find_if(begin, begin + Elements(input), [](float x) { return x < 0; });
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_STATUS(Resize(context, output, static_cast<int>(end - begin)));
  TfLiteOpaqueTensorSetAllocationTypeToDynamic(output);  // as it is, so that its memory stays
  std::copy(begin, end, Floats(output));
  return kTfLiteOk;
}

TEST(CustomOperatorsTest, GiveOutputsTheirShapesWhileTheyRun) {
  const OperatorPtr until = MakeOperator("Until", UntilPrepare, UntilInvoke);
  const OperatorPtr reverse = ReverseOperator();
  Chain chain(4);
  chain.Custom("Until").Add(1).Custom("Reverse");
  const ModelPtr model = chain.Load();
  for (const bool delegated : {false, true}) {
    const DelegatePtr delegate(FuseliteDelegateCreate(nullptr));
    const InterpreterPtr interpreter = Open(model, {until.get(), reverse.get()});
    ASSERT_NE(interpreter, nullptr) << FuseliteLastError();
    if (delegated) {
      ASSERT_EQ(FuseliteInterpreterApplyDelegate(interpreter.get(), delegate.get()), kFuseliteOk);
    }
    EXPECT_THAT(RunOn(interpreter, {1, 2, -1, 3}), ElementsAre(3, 2));
    EXPECT_THAT(RunOn(interpreter, {4, 5, 6, -1}), ElementsAre(7, 6, 5));
    EXPECT_THAT(RunOn(interpreter, {-1, 5}), ElementsAre());
  }
}

// --- Between partitions ---

TEST(CustomOperatorsTest, StandBetweenPartitions) {
  Counts counts;
  const OperatorPtr scale = ScaleOperator(&counts);
  const OperatorPtr reverse = ReverseOperator();
  constexpr int kLength = 30000;  // shorter ones are not worth a change of hands
  Chain chain(kLength);
  chain.Add(1).Add(1).Custom("Scale", BytesOf(std::vector<float>{2})).Add(10);
  chain.Custom("Reverse").Add(100).Add(0.5f);
  const ModelPtr model = chain.Load();
  const DelegatePtr delegate(FuseliteDelegateCreate(nullptr));
  {
    const InterpreterPtr interpreter = Open(model, {scale.get(), reverse.get()});
    ASSERT_NE(interpreter, nullptr) << FuseliteLastError();
    ASSERT_EQ(FuseliteInterpreterApplyDelegate(interpreter.get(), delegate.get()), kFuseliteOk);
    for (const int length : {kLength, 2}) {
      std::vector<float> x(length), expected(length);
      for (int i = 0; i < length; ++i) {
        x[i] = static_cast<float>(i % 100);
        expected[length - 1 - i] = (x[i] + 2) * 2 + 110.5f;
      }
      EXPECT_EQ(RunOn(interpreter, x), expected);
    }
    EXPECT_EQ(counts.inits, 1);
    char* told = FuseliteDelegateExplain(delegate.get(), "text");
    EXPECT_THAT(std::string(told), HasSubstr("7 nodes, 5 taken, in 3 partitions"));
    FuseliteFree(told);
  }
  EXPECT_EQ(counts.frees, 1);
}

}  // namespace
}  // namespace fuselite::interpreter::testing
