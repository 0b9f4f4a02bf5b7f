#include "partitioner/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <flatbuffers/flexbuffers.h>

#include <array>
#include <cstdlib>

#include "kernels/composite.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gather/gather.h"
#include "kernels/import.h"
#include "partitioner/import/host_age.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/builtin_codes.h"
#include "runtime/tflite/params.h"
#include "tests/partitioner/fake_host.h"

namespace fuselite::partitioner {
namespace {

using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::HasSubstr;
using namespace tflite;

Result<TensorInfo> Import(const FakeHost& host, const TfLiteTensor& tensor) {
  return kernels::ImportTensor(host.context, tensor, kernels::Constants::kOfModel);
}

TEST(ImportTensorTest, ConstantsHaveTheirBytesOthersDoNot) {
  FakeHost host;
  const int constant = host.AddConstant({2, 2}, std::vector<float>{1, 2, 3, 4});
  const int value = host.AddTensor({1, 5}, DataType::kInt8);
  const Result<TensorInfo> a = Import(host, host.context.tensors[constant]);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->data, host.context.tensors[constant].data.data);
  EXPECT_EQ(a->shape, Shape({2, 2}));
  const Result<TensorInfo> b = Import(host, host.context.tensors[value]);
  ASSERT_TRUE(b.ok());
  EXPECT_FALSE(b->constant());
  EXPECT_EQ(b->type, DataType::kInt8);
}

TEST(ImportTensorTest, ConstantsWithoutElementsAreConstants) {
  FakeHost host;
  TfLiteTensor& tensor = host.context.tensors[host.AddTensor({0, 3})];
  tensor.allocation_type = kTfLiteMmapRo;
  tensor.data.data = nullptr;
  EXPECT_TRUE(Import(host, tensor)->constant());
}

TEST(ImportTensorTest, ConstantsWithTooFewBytesAreRefused) {
  FakeHost host;
  TfLiteTensor& tensor = host.context.tensors[host.AddConstant({2}, std::vector<float>{1, 2})];
  tensor.bytes = 4;
  EXPECT_EQ(Import(host, tensor).status().message(), "has 4 bytes of 8");
}

class QuantizationTest : public ::testing::Test {
 protected:
  Result<TensorInfo> Import(std::vector<float> scales, std::vector<int> zero_points, int axis) {
    const FloatArrayPtr scale = MakeFloatArray(scales);
    const IntArrayPtr zero_point = MakeIntArray(zero_points);
    TfLiteAffineQuantization affine{scale.get(), zero_point.get(), axis};
    TfLiteTensor& tensor = host_.context.tensors[host_.AddTensor({4, 3}, DataType::kInt8)];
    tensor.quantization = {kTfLiteAffineQuantization, &affine};
    return kernels::ImportTensor(host_.context, tensor, kernels::Constants::kOfModel);
  }
  FakeHost host_;
};

TEST_F(QuantizationTest, PerTensor) {
  const Result<TensorInfo> info = Import({0.5f}, {-3}, 0);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->quantization.scale(), 0.5f);
  EXPECT_EQ(info->quantization.zero_point(), -3);
}

TEST_F(QuantizationTest, OneZeroPointServesAllChannels) {
  const Result<TensorInfo> info = Import({1, 2, 3}, {0}, 1);
  ASSERT_TRUE(info.ok());
  EXPECT_THAT(info->quantization.scales, ElementsAre(1, 2, 3));
  EXPECT_THAT(info->quantization.zero_points, ElementsAre(0, 0, 0));
  EXPECT_EQ(info->quantization.axis, 1);
}

TEST_F(QuantizationTest, CountsAndAxisAreChecked) {
  EXPECT_THAT(Import({1, 2, 3}, {0, 0}, 1).status().message(), HasSubstr("2 zero points"));
  EXPECT_THAT(Import({1, 2, 3}, {0}, 0).status().message(), HasSubstr("along dimension 0"));
  EXPECT_THAT(Import({1, 2, 3}, {0}, 2).status().message(), HasSubstr("along dimension 2"));
  EXPECT_THAT(Import({1, 2, 3}, {0}, -1).status().message(), HasSubstr("along dimension -1"));
}

TEST_F(QuantizationTest, TheOldPerTensorFormIsRead) {
  TfLiteTensor& tensor = host_.context.tensors[host_.AddTensor({4}, DataType::kUInt8)];
  tensor.params = {0.25f, 128};
  const Result<TensorInfo> info =
      kernels::ImportTensor(host_.context, tensor, kernels::Constants::kOfModel);
  EXPECT_EQ(info->quantization.scale(), 0.25f);
  EXPECT_EQ(info->quantization.zero_point(), 128);
}

TEST_F(QuantizationTest, BlockScalesAreAnOperand) {
  const int x = host_.AddTensor({1, 64}), y = host_.AddTensor({1, 8});
  const int weights = host_.AddTensor({8, 64}, DataType::kInt4);
  const int scales = host_.AddTensor({8, 2}, DataType::kFloat16);
  TfLiteBlockwiseQuantization blocks{
      .scale = scales, .zero_point = -1, .blocksize = 32, .quantized_dimension = 0};
  host_.context.tensors[weights].quantization = {kTfLiteBlockwiseQuantization, &blocks};
  const int product = host_.AddNode("FULLY_CONNECTED", {x, weights}, {y});
  const Result<ImportedNode> node = ImportNode(&host_.context, product, true);
  ASSERT_TRUE(node.ok()) << node.status().ToString();
  EXPECT_EQ(node->op, kernels::FindOperator("FUSELITE_BLOCKWISE_FULLY_CONNECTED"));
  EXPECT_THAT(node->inputs, ElementsAre(x, weights, -1, scales));

  const int other = host_.AddNode("ADD", {weights, x}, {y});
  EXPECT_EQ(ImportNode(&host_.context, other, true).status().message(),
            "input 0 is quantized in blocks");
  blocks.blocksize = 16;
  EXPECT_THAT(ImportNode(&host_.context, product, true).status().message(),
              HasSubstr("do not fit"));
  blocks.blocksize = 32;
  blocks.zero_point = scales;
  EXPECT_THAT(ImportNode(&host_.context, product, true).status().message(),
              HasSubstr("zero points"));
  host_.context.tensors[weights].quantization = {kTfLiteNoQuantization, nullptr};
}

TEST(ImportTensorTest, WhatNobodyComputesIsRefused) {
  FakeHost host;
  TfLiteTensor tensor = host.context.tensors[host.AddTensor({4})];
  const auto refusal = [&](auto change) {
    TfLiteTensor changed = tensor;
    change(changed);
    return Import(host, changed).status().message();
  };
  EXPECT_EQ(refusal([](auto& t) { t.type = kTfLiteNoType; }), "is of unknown type 0");
  EXPECT_EQ(refusal([](auto& t) { t.type = kTfLiteFloat8E5M2; }), "is of unknown type 23");
  const IntArrayPtr many = MakeIntArray(std::vector<int>(17, 1));
  EXPECT_THAT(refusal([&](auto& t) { t.dims = many.get(); }), HasSubstr("17 dimensions"));
  const IntArrayPtr negative = MakeIntArray(std::vector<int>{2, -1});
  EXPECT_THAT(refusal([&](auto& t) { t.dims = negative.get(); }), HasSubstr("negative"));
}

TEST(ImportNodeTest, ReadsOperatorParametersAndTensors) {
  FakeHost host;
  const int in = host.AddTensor({1, 3}), out = host.AddTensor({1, 3});
  const Result<ImportedNode> node =
      ImportNode(&host.context, host.AddNode("SOFTMAX", {in, -1}, {out}), true);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->op, kernels::FindOperator("SOFTMAX"));
  EXPECT_THAT(node->inputs, ElementsAre(in, -1));
  EXPECT_THAT(node->outputs, ElementsAre(out));
}

// A host's functions, for the question what a host is made of.
TfLiteStatus Acquire(TfLiteContext*, int, TfLiteContext**) { return kTfLiteError; }

TEST(ImportNodeTest, FieldsThatTheVersionDoesNotReachAreReadFromHostsThatHaveThem) {
  FakeHost host;
  kernels::GatherParams params{.axis = 0, .batch_dims = 1};
  const kernels::Params given(params);
  const int in = host.AddTensor({2, 3}), at = host.AddTensor({2, 1}, DataType::kInt32);
  const int node = host.AddNode("GATHER", {in, at}, {host.AddTensor({2, 1})}, &given, 1);
  const auto imported = [&] {
    return ImportNode(&host.context, node, HasSubgraphFunctions(&host.context))
        ->params.as<kernels::GatherParams>()
        .batch_dims;
  };
  EXPECT_EQ(imported(), 0);
  host.context.AcquireSubgraphContext = Acquire;
  EXPECT_EQ(imported(), 1);
  // What an older host has in that place.
  int no_function = 0;
  host.context.AcquireSubgraphContext = reinterpret_cast<decltype(&Acquire)>(&no_function);
  EXPECT_EQ(imported(), 0);
}

// LiteRT had the functions for subgraphs before its fully connected layers named their bias.
TEST(ImportNodeTest, TheYoungestFieldIsReadWhereTheVersionReachesItAlone) {
  FakeHost host;
  kernels::FullyConnectedParams params{};
  params.quantized_bias_type = DataType::kInt64;
  const kernels::Params given(params);
  const int x = host.AddTensor({1, 4}), w = host.AddTensor({2, 4}), y = host.AddTensor({1, 2});
  for (const int version : {9, 11}) {
    const int node = host.AddNode("FULLY_CONNECTED", {x, w}, {y}, &given, version);
    const Result<ImportedNode> imported = ImportNode(&host.context, node, true);
    EXPECT_EQ(imported->params.as<kernels::FullyConnectedParams>().quantized_bias_type,
              version == 11 ? DataType::kInt64 : DataType::kNone);
  }
}

// Composites that a kernel is known for need no decomposition, others nothing but that.
TEST(ImportNodeTest, CompositesOfAKernelDoWithoutTheirDecomposition) {
  FakeHost host;
  const int x = host.AddTensor({1, 4}), y = host.AddTensor({1, 4});
  TfLiteStablehloCompositeParams params{};
  const int node = host.AddControlFlow(kTfLiteBuiltinStablehloComposite, {x}, {y}, &params);
  const auto import = [&] { return ImportNode(&host.context, node, false); };
  EXPECT_EQ(import().status().message(), "has no options");
  host.nodes[node].builtin_data = nullptr;
  EXPECT_EQ(import().status().message(), "has no options");
  host.nodes[node].builtin_data = &params;
  params.name = "my.block";
  EXPECT_THAT(import().status().message(), HasSubstr("does not show its subgraphs"));
  flexbuffers::Builder attributes;
  attributes.Map([&] { attributes.Float("epsilon", 0.5f); });
  attributes.Finish();
  params.name = "odml.rms_norm";
  params.attributes = attributes.GetBuffer().data();
  params.attributes_size = attributes.GetBuffer().size();
  const Result<ImportedNode> known = import();
  ASSERT_TRUE(known.ok()) << known.status().ToString();
  EXPECT_EQ(known->op, kernels::FindComposite("odml.rms_norm")->op);
  EXPECT_EQ(known->body, nullptr);
  params.attributes_size = 0;  // no epsilon
  EXPECT_THAT(import().status().message(), HasSubstr("does not show its subgraphs"));
}

// A fifth operand of attention is no second mask.
TEST(ImportNodeTest, CompositesOfMoreOperandsAreNotKnown) {
  FakeHost host;
  const int x = host.AddTensor({1, 1, 1, 4}), y = host.AddTensor({1, 1, 1, 4});
  flexbuffers::Builder attributes;
  attributes.Map([&] { attributes.Float("scale", 0.5f); });
  attributes.Finish();
  TfLiteStablehloCompositeParams params{};
  params.name = "odml.scaled_dot_product_attention";
  params.attributes = attributes.GetBuffer().data();
  params.attributes_size = attributes.GetBuffer().size();
  for (const size_t inputs : {size_t{4}, size_t{5}}) {
    const int node = host.AddControlFlow(kTfLiteBuiltinStablehloComposite,
                                         std::vector<int>(inputs, x), {y}, &params);
    EXPECT_EQ(ImportNode(&host.context, node, false).ok(), inputs == 4);
  }
}

// What the host's kernel runs has the operator's name, and a kernel.
TEST(ImportNodeTest, LoopsAndBranchesAreRunByTheHostsKernels) {
  FakeHost host;
  host.context.AcquireSubgraphContext = Acquire;
  const int chooses = host.AddTensor({1}, DataType::kBool), y = host.AddTensor({1});
  TfLiteWhileParams params{};
  const auto run = [](TfLiteContext*, TfLiteNode*) { return kTfLiteOk; };
  for (const auto& [code, name] :
       {std::pair{kTfLiteBuiltinWhile, "WHILE"}, {kTfLiteBuiltinIf, "IF"}}) {
    const int node = host.AddControlFlow(code, {chooses}, {y}, &params);
    TfLiteRegistration& registration = host.registrations[node];
    const auto refusal = [&] { return ImportNode(&host.context, node, true).status().message(); };
    EXPECT_THAT(refusal(), HasSubstr("does not show the kernel"));
    registration.prepare = run;
    EXPECT_THAT(refusal(), HasSubstr("does not show the kernel"));
    registration.invoke = run;
    const Result<ImportedNode> imported = ImportNode(&host.context, node, true);
    ASSERT_TRUE(imported.ok()) << imported.status().ToString();
    EXPECT_EQ(imported->op->name, name);
    EXPECT_NE(imported->host_call, nullptr);
    registration.prepare = nullptr;
    EXPECT_THAT(refusal(), HasSubstr("does not show the kernel"));
    registration.prepare = run;
    host.nodes[node].builtin_data = nullptr;
    EXPECT_EQ(refusal(), "has no options");
  }
}

TEST(ImportNodeTest, IndicesOutsideTheGraphAreRefused) {
  FakeHost host;
  const int node = host.AddNode("SOFTMAX", {7}, {0});
  EXPECT_FALSE(ImportNode(&host.context, node, true).ok());
  const int x = host.AddTensor({1, 4}), y = host.AddTensor({1, 4});
  const int other = host.AddNode("SOFTMAX", {x}, {y});
  EXPECT_TRUE(ImportNode(&host.context, other, true).ok());
  const IntArrayPtr none = MakeIntArray(std::array{7});
  host.nodes[other].intermediates = none.get();
  EXPECT_THAT(ImportNode(&host.context, other, true).status().message(),
              HasSubstr("names an intermediate tensor that the graph does not have"));
  host.nodes[other].intermediates = nullptr;
}

// Subgraphs are read of hosts that show them, and kernels there are of what has no host's state.
TEST(ImportNodeTest, WhatIsTheHostsIsLeftToIt) {
  FakeHost host;
  const int x = host.AddTensor({4}), at = host.AddTensor({1, 1}, DataType::kInt32);
  const int y = host.AddTensor({4}), chooses = host.AddTensor({1}, DataType::kBool);
  const int scatter = host.AddNode("STABLEHLO_SCATTER", {x, at, x}, {y});
  TfLiteWhileParams params{};
  const int loop = host.AddControlFlow(kTfLiteBuiltinWhile, {chooses}, {chooses}, &params);
  host.registrations[loop].prepare =
      host.registrations[loop].invoke = [](TfLiteContext*, TfLiteNode*) { return kTfLiteOk; };
  for (const int node : {scatter, loop}) {
    EXPECT_EQ(ImportNode(&host.context, node, false).status().message(),
              "the host does not show its subgraphs");
  }
  const int random = host.AddNode("RANDOM_UNIFORM", {at}, {y});
  EXPECT_THAT(ImportNode(&host.context, random, true).status().message(),
              HasSubstr("its state or its strings are the host's"));
}

// A file may nest its subgraphs without an end, or have them run one another.
TEST(NestingTest, HasAnEnd) {
  const FakeHost caller, callee;
  Nesting nesting;
  const auto admit = [&](const FakeHost& to, size_t nodes) {
    return NestingLevel(nesting).Admit(&caller.context, &to.context, nodes).message();
  };
  EXPECT_EQ(admit(caller, 1), "it runs its own subgraph");
  EXPECT_EQ(admit(callee, 4000), "");
  EXPECT_EQ(admit(callee, 6000), "");
  EXPECT_EQ(admit(callee, 1), "its subgraphs have more than 10000 nodes");
  nesting = {.depth = 1};
  EXPECT_EQ(admit(callee, 1), "");
  nesting.depth = 0;
  EXPECT_EQ(admit(callee, 1), "its subgraphs are nested too deep");
  EXPECT_EQ(nesting.depth, 0);
}

// What asks for subgraphs is of the same library as the rest where a host has it.
TEST(HostAgeTest, IsToldByTheLibraryOfItsFunctions) {
  FakeHost host;
  host.context.AcquireSubgraphContext = nullptr;
  EXPECT_FALSE(HasSubgraphFunctions(&host.context));
  host.context.AcquireSubgraphContext = Acquire;
  EXPECT_TRUE(HasSubgraphFunctions(&host.context));
  host.context.AcquireSubgraphContext =
      reinterpret_cast<decltype(host.context.AcquireSubgraphContext)>(
          reinterpret_cast<void (*)()>(&std::free));
  EXPECT_FALSE(HasSubgraphFunctions(&host.context));
}

TEST(ImportNodeTest, StateMustBeInVariables) {
  FakeHost host;
  std::vector<int> inputs;
  for (int i = 0; i < 20; ++i) inputs.push_back(host.AddTensor({1, 1}));
  const int node = host.AddNode("LSTM", inputs, {host.AddTensor({1, 1})});
  host.context.tensors[inputs[18]].is_variable = true;
  EXPECT_EQ(ImportNode(&host.context, node, true).status().message(),
            "input 19 must be a variable tensor");
  host.context.tensors[inputs[19]].is_variable = true;
  EXPECT_TRUE(ImportNode(&host.context, node, true).ok());
}

// What a host's struct says is believed as far as the struct reaches.
TEST(ImportNodeTest, BranchesAreChosenByAnInputAndNamedByTheOptions) {
  FakeHost host;
  const int chooses = host.AddTensor({1}, DataType::kInt32), y = host.AddTensor({1});
  TfLiteStablehloCaseParams params{};
  const auto error = [&](std::vector<int> inputs, int branches, bool options = true) {
    params.num_branches = branches;
    const int node = host.AddControlFlow(kTfLiteBuiltinStablehloCase, std::move(inputs), {y},
                                         options ? &params : nullptr);
    return ImportNode(&host.context, node, false).status().message();
  };
  EXPECT_EQ(error({chooses}, 1), "the host does not show its subgraphs");
  EXPECT_EQ(error({chooses}, kTfLiteStablehloCaseMaxBranches),
            "the host does not show its subgraphs");
  EXPECT_EQ(error({chooses}, 1, false), "has no options");
  EXPECT_EQ(error({chooses}, 0), "has 0 branches");
  EXPECT_EQ(error({chooses}, kTfLiteStablehloCaseMaxBranches + 1), "has 21 branches");
  EXPECT_EQ(error({}, 1), "has nothing to choose by");
  EXPECT_EQ(error({-1}, 1), "has nothing to choose by");
}

TEST(ImportHostTensorTest, TypesWithoutASizeAreRefused) {
  FakeHost host;
  const int strings = host.AddTensor({4});
  host.context.tensors[strings].type = kTfLiteString;
  EXPECT_EQ(ImportHostTensor(host.context, strings).status().message(), "is of type string");
}

TEST(ImportHostTensorTest, TensorsThatDoNotExistAreRefused) {
  const FakeHost host;
  EXPECT_EQ(ImportHostTensor(host.context, -1).status().message(), "tensor -1 does not exist");
  EXPECT_FALSE(ImportHostTensor(host.context, 1 << 20).ok());
}

TEST(ImportTensorTest, WhatIsComputedIsConstantOncePrepared) {
  FakeHost host;
  TfLiteTensor& tensor = host.context.tensors[host.AddConstant({2}, std::vector<float>{1, 2})];
  tensor.allocation_type = kTfLitePersistentRo;
  using kernels::Constants;
  EXPECT_FALSE(kernels::ImportTensor(host.context, tensor, Constants::kOfModel)->constant());
  EXPECT_TRUE(kernels::ImportTensor(host.context, tensor, Constants::kPrepared)->constant());
}

TEST(NodeNameTest, NamesBuiltinAndCustomOperators) {
  TfLiteRegistration registration{};
  registration.builtin_code = kTfLiteBuiltinConv2d;
  EXPECT_EQ(NodeName(registration), "CONV_2D");
  registration.builtin_code = kTfLiteBuiltinStablehloCase;
  EXPECT_EQ(NodeName(registration), "STABLEHLO_CASE");
  registration.builtin_code = 5000;
  EXPECT_EQ(NodeName(registration), "operator 5000");
  registration.builtin_code = kTfLiteBuiltinCustom;
  EXPECT_EQ(NodeName(registration), "custom operator without a name");
  registration.custom_name = "Foo";
  EXPECT_EQ(NodeName(registration), "custom operator Foo");
}

}  // namespace
}  // namespace fuselite::partitioner
