// The functions that delegates call a graph by, with right arguments and with wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/tflite/builtin_codes.h"
#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tflite;

// What a delegate's Prepare does with `ask`, on a chain of three AddOne with a second subgraph and
// metadata; the status of ApplyDelegate.
Status Ask(const std::function<TfLiteStatus(TfLiteContext* context)>& ask) {
  ModelWriter writer;
  WriteChain(writer, 3);
  writer.AddMetadata("about", {std::byte{7}, std::byte{8}});
  writer.AddSubgraph("other");
  writer.AddTensor("only", DataType::kFloat32, {1});
  writer.AddTensor(
      {"channels", DataType::kInt8, {2, 3}, {{0.5f, 0.25f}, {1, 2}, 0}, {}, false, {}});
  writer.AddTensor({"open", DataType::kUInt8, {1, 3}, {{0.5f}, {3}, 0}, {}, false, {-1, 3}});
  writer.SetInputs({0});
  writer.SetOutputs({0});
  const auto interpreter = Open(writer);
  struct Asking : TfLiteDelegate {
    const std::function<TfLiteStatus(TfLiteContext*)>* ask;
    bool asked = false;
  } delegate{};
  delegate.ask = &ask;
  delegate.Prepare = [](TfLiteContext* context, TfLiteDelegate* self) {
    auto* const asking = static_cast<Asking*>(self);
    // Each subgraph is offered; the first is asked.
    return std::exchange(asking->asked, true) ? kTfLiteOk : (*asking->ask)(context);
  };
  return interpreter->ApplyDelegate(&delegate);
}

TEST(Context, GivesNodesThatThereAre) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                TfLiteIntArray* plan = nullptr;
                EXPECT_EQ(context->GetExecutionPlan(context, &plan), kTfLiteOk);
                const auto elements = Elements(plan);
                EXPECT_THAT(std::vector(elements.begin(), elements.end()), ElementsAre(0, 1, 2));
                TfLiteNode* node = nullptr;
                TfLiteRegistration* registration = nullptr;
                EXPECT_EQ(context->GetNodeAndRegistration(context, 2, &node, &registration),
                          kTfLiteOk);
                EXPECT_EQ(node->outputs->data[0], 3);
                EXPECT_STREQ(registration->custom_name, "AddOne");
                return kTfLiteOk;
              }).ok());
  for (const int index : {-1, 3}) {
    const Status status = Ask([&](TfLiteContext* context) {
      TfLiteNode* node = nullptr;
      TfLiteRegistration* registration = nullptr;
      return context->GetNodeAndRegistration(context, index, &node, &registration);
    });
    EXPECT_THAT(status.message(), HasSubstr("there is no node " + std::to_string(index)));
  }
}

TEST(Context, ResizesTensors) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                TfLiteTensor* const tensor = &context->tensors[1];
                const int shape[] = {2, 3};
                EXPECT_EQ(context->ResizeTensorExplicit(context, tensor, 2, shape), kTfLiteOk);
                EXPECT_EQ(tensor->bytes, 24u);
                EXPECT_EQ(
                    context->ResizeTensor(context, tensor, MakeIntArray(std::vector{5}).release()),
                    kTfLiteOk);
                EXPECT_EQ(tensor->bytes, 20u);
                return kTfLiteOk;
              }).ok());
  EXPECT_FALSE(Ask([](TfLiteContext* context) {
                 return context->ResizeTensor(context, &context->tensors[1],
                                              MakeIntArray(std::vector{-5}).release());
               }).ok());
}

// What has the shape already keeps its memory.
TEST(Context, ResizesNoTensorOfAnUnknownType) {
  EXPECT_THAT(Ask([](TfLiteContext* context) {
                int added = -1;
                EXPECT_EQ(context->AddTensors(context, 1, &added), kTfLiteOk);
                TfLiteTensor& tensor = context->tensors[added];
                tensor.allocation_type = kTfLiteArenaRw;
                tensor.type = static_cast<TfLiteType>(99);
                return context->ResizeTensor(context, &tensor,
                                             MakeIntArray(std::vector{2}).release());
              }).message(),
              HasSubstr("element type 99"));
}

// Nodes that must stay in their order: what runs subgraphs, and what has a resource on either side.
TEST(Context, TellsWhichNodesHaveSideEffects) {
  ModelWriter writer;
  const int handle = writer.AddTensor("handle", DataType::kResource, Shape());
  for (int i = 0; i < 4; ++i) writer.AddTensor("t", DataType::kFloat32, {2});
  writer.AddVariableHandle("v", handle);
  writer.AddCustomOperator("AddOne", {}, {1, -1}, {2});
  writer.AddOperator(kTfLiteBuiltinAssignVariable, {handle, 2}, {});
  writer.AddComposite("c", {}, 1, {2}, {3});
  writer.AddControlFlow(kTfLiteBuiltinWhile, {2, 1}, {3}, {4});
  writer.SetInputs({1});
  writer.SetOutputs({4});
  for (const bool condition : {false, true}) {
    writer.AddSubgraph("callee");
    const int in = writer.AddTensor("in", DataType::kFloat32, {2});
    const int out = condition ? writer.AddTensor("out", DataType::kBool, Shape()) : in;
    writer.SetInputs({in});
    if (condition) {
      const int all = writer.AddTensor("all", DataType::kFloat32, Shape());
      const int axes = writer.AddConstant<int32_t>("axes", DataType::kInt32, {1}, {0});
      writer.AddOperator(*kernels::FindOperator("SUM"), {in, axes}, {all});
      writer.AddOperator(*kernels::FindOperator("LESS"), {all, all}, {out});
    }
    writer.SetOutputs({out});
  }
  static std::vector<bool> effects;
  static std::vector<bool> named;
  effects.clear();
  named.clear();
  TfLiteDelegate delegate{};
  delegate.Prepare = [](TfLiteContext* context, TfLiteDelegate*) {
    TfLiteIntArray* plan = nullptr;
    EXPECT_EQ(context->GetExecutionPlan(context, &plan), kTfLiteOk);
    const auto elements = Elements(plan);
    for (int index : std::vector(elements.begin(), elements.end())) {
      TfLiteNode* node = nullptr;
      TfLiteRegistration* registration = nullptr;
      EXPECT_EQ(context->GetNodeAndRegistration(context, index, &node, &registration), kTfLiteOk);
      effects.push_back(node->might_have_side_effect);
      named.push_back(registration->custom_name != nullptr);
    }
    return kTfLiteOk;
  };
  const auto interpreter = Open(writer);
  ASSERT_OK(interpreter->ApplyDelegate(&delegate));
  // The nodes of the first graph come first, then those of its callees.
  effects.resize(5);
  named.resize(5);
  EXPECT_THAT(effects, ElementsAre(true, false, true, false, true));
  EXPECT_THAT(named, ElementsAre(false, true, false, false, false));
}

TEST(Context, ResizesToOtherShapesOnly) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                TfLiteTensor* const tensor = &context->tensors[1];
                char memory[8];
                for (const int length : {2, 3}) {
                  tensor->data.raw = memory;
                  EXPECT_EQ(context->ResizeTensorExplicit(context, tensor, 1, &length), kTfLiteOk);
                  EXPECT_EQ(tensor->data.raw, length == 2 ? memory : nullptr);
                }
                return kTfLiteOk;
              }).ok());
}

TEST(Context, ResizesNoFixedMemory) {
  const int shape[] = {3};
  EXPECT_TRUE(Ask([&](TfLiteContext* context) {
                TfLiteTensor* const tensor = &context->tensors[1];
                tensor->allocation_type = kTfLiteArenaRwPersistent;
                EXPECT_EQ(context->ResizeTensorExplicit(context, tensor, 1, shape), kTfLiteOk);
                EXPECT_EQ(tensor->bytes, 12u);
                tensor->allocation_type = kTfLiteArenaRw;
                return kTfLiteOk;
              }).ok());
  const Status status = Ask([&](TfLiteContext* context) {
    TfLiteTensor* const tensor = &context->tensors[1];
    tensor->allocation_type = kTfLiteMmapRo;
    const TfLiteStatus refused = context->ResizeTensorExplicit(context, tensor, 1, shape);
    EXPECT_EQ(tensor->bytes, 8u);
    tensor->allocation_type = kTfLiteArenaRw;
    return refused;
  });
  EXPECT_THAT(status.message(), HasSubstr("fixed memory"));
}

TEST(Context, AddsTensors) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                int first = -1;
                EXPECT_EQ(context->AddTensors(context, 2, &first), kTfLiteOk);
                EXPECT_EQ(first, 4);
                EXPECT_EQ(context->tensors_size, 6u);
                EXPECT_EQ(context->tensors[5].buffer_handle, kTfLiteNullBufferHandle);
                EXPECT_EQ(context->AddTensors(context, 1, nullptr), kTfLiteOk);
                EXPECT_EQ(context->tensors_size, 7u);
                EXPECT_EQ(context->AddTensors(context, -1, &first), kTfLiteError);
                EXPECT_EQ(context->tensors_size, 7u);
                return kTfLiteOk;
              }).ok());
}

TEST(Context, PreviewsAndReplacesNodesThatThereAre) {
  for (const std::vector<int>& nodes : {std::vector{3}, {-1}, {0, 7}}) {
    const IntArrayPtr array = MakeIntArray(nodes);
    EXPECT_FALSE(Ask([&](TfLiteContext* context) {
                   TfLiteDelegateParams* params = nullptr;
                   int count = 9;
                   const TfLiteStatus status =
                       context->PreviewDelegatePartitioning(context, array.get(), &params, &count);
                   EXPECT_EQ(count, 0);
                   return status;
                 }).ok());
    EXPECT_THAT(Ask([&](TfLiteContext* context) {
                  TfLiteRegistration kernel{};
                  return context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel,
                                                                        array.get(), nullptr);
                }).message(),
                HasSubstr("nodes to replace that the graph does not have"));
  }
  EXPECT_FALSE(Ask([](TfLiteContext* context) {
                 TfLiteDelegateParams* params = nullptr;
                 int count = 0;
                 return context->PreviewDelegatePartitioning(context, nullptr, &params, &count);
               }).ok());
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                const IntArrayPtr array = MakeIntArray(std::vector{0, 2});
                TfLiteDelegateParams* params = nullptr;
                int count = 0;
                EXPECT_EQ(
                    context->PreviewDelegatePartitioning(context, array.get(), &params, &count),
                    kTfLiteOk);
                EXPECT_EQ(count, 2);
                EXPECT_EQ(params[1].nodes_to_replace->data[0], 2);
                EXPECT_EQ(params[1].input_tensors->data[0], 2);
                EXPECT_EQ(params[1].output_tensors->data[0], 3);
                return kTfLiteOk;
              }).ok());
}

TEST(Context, KeepsExternalContextsOfTheTypesThatThereAre) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                TfLiteExternalContext external{};
                const auto at = [](int type) {
                  return static_cast<TfLiteExternalContextType>(type);
                };
                EXPECT_EQ(context->GetExternalContext(context, at(0)), nullptr);
                context->SetExternalContext(context, at(0), &external);
                EXPECT_EQ(context->GetExternalContext(context, at(0)), &external);
                for (const int none : {-1, static_cast<int>(kTfLiteMaxExternalContexts)}) {
                  context->SetExternalContext(context, at(none), &external);
                  EXPECT_EQ(context->GetExternalContext(context, at(none)), nullptr);
                }
                context->SetExternalContext(context, at(0), nullptr);
                return kTfLiteOk;
              }).ok());
}

TEST(Context, TellsTheModelsMetadata) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                const char* data = nullptr;
                size_t bytes = 0;
                EXPECT_EQ(context->GetModelMetadata(context, "about", &data, &bytes), kTfLiteOk);
                EXPECT_EQ(bytes, 2u);
                EXPECT_EQ(data[1], 8);
                EXPECT_EQ(context->GetModelMetadata(context, "around", &data, &bytes),
                          kTfLiteError);
                return kTfLiteOk;
              }).ok());
}

TEST(Context, OpensTheOtherSubgraphs) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                TfLiteContext* other = nullptr;
                for (const int none : {-1, 2}) {
                  EXPECT_EQ(context->AcquireSubgraphContext(context, none, &other), kTfLiteError);
                  EXPECT_EQ(context->ReleaseSubgraphContext(context, none), kTfLiteError);
                }
                EXPECT_EQ(context->AcquireSubgraphContext(context, 1, &other), kTfLiteOk);
                TfLiteIntArray* plan = nullptr;
                EXPECT_EQ(other->GetExecutionPlan(other, &plan), kTfLiteOk);
                EXPECT_EQ(other->tensors_size, 3u);
                EXPECT_EQ(context->ReleaseSubgraphContext(context, 1), kTfLiteOk);
                EXPECT_EQ(other->GetExecutionPlan(other, &plan), kTfLiteError);
                return kTfLiteOk;
              }).ok());
}

// One scale stands in two places, several in one; sizes that are known are not told twice.
TEST(Context, TellsScalesAndOpenSizes) {
  EXPECT_TRUE(Ask([](TfLiteContext* context) {
                TfLiteContext* other = nullptr;
                EXPECT_EQ(context->AcquireSubgraphContext(context, 1, &other), kTfLiteOk);
                const TfLiteTensor &channels = other->tensors[1], &open = other->tensors[2];
                EXPECT_EQ(channels.params.scale, 0);
                EXPECT_EQ(channels.params.zero_point, 0);
                const auto* const scales =
                    static_cast<const TfLiteAffineQuantization*>(channels.quantization.params);
                EXPECT_EQ(scales->scale->data[1], 0.25f);
                EXPECT_EQ(scales->zero_point->data[1], 2);
                EXPECT_EQ(open.params.scale, 0.5f);
                EXPECT_EQ(open.params.zero_point, 3);
                EXPECT_EQ(channels.dims_signature, nullptr);
                EXPECT_EQ(open.dims_signature->data[0], -1);
                return context->ReleaseSubgraphContext(context, 1);
              }).ok());
}

TEST(Context, ReportsErrorsInOneLineOfSomeLength) {
  const Status status = Ask([](TfLiteContext* context) {
    context->ReportError(context, "first\nline %d\t\n", 1);
    context->ReportError(context, "%s", "second");
    return kTfLiteError;
  });
  EXPECT_THAT(status.message(), HasSubstr("first line 1; second"));
  const Status flood = Ask([](TfLiteContext* context) {
    for (int i = 0; i < 1000; ++i) context->ReportError(context, "a message of some length");
    return kTfLiteError;
  });
  EXPECT_LT(flood.message().size(), 2500u);
  EXPECT_GT(flood.message().size(), 2000u);
}

}  // namespace
}  // namespace fuselite::interpreter
