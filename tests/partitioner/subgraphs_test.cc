// Branches, composites and several partitions in fuselite's interpreter, with the delegate and
// without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/generate/generate.h"
#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using namespace interpreter;
using namespace testing;
using kernels::testing::Random;

// `branches` of IF over {1, 6}, of which the second gives a value of another function.
void WriteBranches(Builder& b, bool deeper) {
  const int chooses = b.In({1}, kBool), x = b.In({1, 6});
  const int y = b.AddTensor("y", kFloat, {1, 6}), z = b.AddTensor("z", kFloat, {1, 6});
  b.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {chooses, b.Op("NEG", {x}, {1, 6})}, {y, z});
  b.End({b.Op("ADD", {y, z}, {1, 6}), z});
  b.AddSubgraph("then");
  const int t = b.In({1, 6});
  b.End({b.Dense(t, {1, 6}, 6), t});
  b.AddSubgraph("else");
  const int e = b.In({1, 6});
  const int turned = b.Op("TANH", {b.Dense(e, {1, 6}, 6)}, {1, 6});
  b.End(deeper ? std::vector{turned, turned} : std::vector{b.Op("ABS", {e}, {1, 6}), turned});
}

TEST(Branches, GiveWhatTheChosenOneGives) {
  for (const bool deeper : {false, true}) {
    Builder b;
    WriteBranches(b, deeper);
    // Which of two results of one shape is which, the host does not say: its kernel runs the node.
    EXPECT_TRUE(ExpectDelegateAgrees(b, BestOptions(), 8).whole());
  }
}

// The file itself says which one it is.
TEST(Branches, MayBeChosenByAConstant) {
  for (const bool first : {false, true}) {
    Builder b;
    const int x = b.In({1, 6}), y = b.AddTensor("y", kFloat, {1, 6});
    const int chooses = b.AddConstant("chooses", kBool, {1}, std::vector<uint8_t>{first});
    b.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {chooses, b.Op("NEG", {x}, {1, 6})}, {y});
    b.End({b.Op("TANH", {y}, {1, 6})});
    for (const char* op : {"EXP", "ABS"}) {
      b.AddSubgraph(op);
      b.End({b.Op(op, {b.In({1, 6})}, {1, 6})});
    }
    EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
  }
}

// The delegate must take all branches, whichever of them runs.
TEST(Branches, OfWhichOneDoesNotFitAreTheHosts) {
  Builder b;
  const int chooses = b.In({1}, kBool), x = b.In({1, 6}), y = b.AddTensor("y", kFloat, {1, 6});
  b.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {chooses, x}, {y});
  b.End({y});
  for (const int width : {6, 5}) {
    b.AddSubgraph("branch");
    b.End({b.Op("ADD", {b.In({1, 6}), b.Weights({1, width})}, {1, 6})});
  }
  EXPECT_THAT(Open(b).reasons, ::testing::Contains(::testing::HasSubstr("branch 1: ")));
}

// Results of different shapes are told apart by these.
TEST(Branches, OfSeveralResultsAreTakenWhereThatIsClear) {
  Builder b;
  const int chooses = b.In({1}, kBool), x = b.In({1, 6}), w = b.In({6});
  const int y = b.AddTensor("y", kFloat, {1, 4}), z = b.AddTensor("z", kFloat, {6});
  b.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {chooses, x, w}, {y, z});
  b.End({b.Op("ABS", {y}, {1, 4}), z});
  for (const char* op : {"EXP", "NEG"}) {
    b.AddSubgraph(op);
    const int one = b.In({1, 6}), other = b.In({6});
    b.End({b.Dense(b.Op(op, {one}, {1, 6}), {1, 6}, 4), b.Op(op, {other}, {6})});
  }
  const Delegated delegated = ExpectDelegateAgrees(b, BestOptions(), 8);
  EXPECT_TRUE(delegated.whole());
  EXPECT_THAT(delegated.reasons, ::testing::IsEmpty());
}
// So are results of one shape and different types.
TEST(Branches, OfResultsOfTwoTypesAreTaken) {
  Builder b;
  const int chooses = b.In({1}, kBool), x = b.In({1, 6}), w = b.In({2, 6}, kInt);
  const int y = b.AddTensor("y", kFloat, {2, 6}), z = b.AddTensor("z", kInt, {2, 6});
  b.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {chooses, x, w}, {y, z});
  b.End({b.Op("ABS", {y}, {2, 6}), z});
  for (const char* op : {"EXP", "NEG"}) {
    b.AddSubgraph(op);
    const int one = b.In({1, 6}), other = b.In({2, 6}, kInt);
    b.End({b.Op("ADD", {b.Op(op, {one}, {1, 6}), b.Weights({2, 6})}, {2, 6}),
           b.Op("ABS", {other}, {2, 6}, kInt)});
  }
  const Delegated delegated = ExpectDelegateAgrees(b, BestOptions(), 8);
  EXPECT_TRUE(delegated.whole());
  EXPECT_THAT(delegated.reasons, ::testing::IsEmpty());
}

// An index beyond the branches runs the last one.
TEST(Branches, OfACaseGiveWhatTheChosenOneGives) {
  Builder b;
  const int index = b.In({1}, kInt), by = b.In({1}, kInt), x = b.In({1, 6});
  const int y = b.AddTensor("y", kFloat, {1, 6});
  const int chooses = b.Op("SUB", {b.Op("ADD", {index, by}, {1}, kInt), b.Number(1)}, {1}, kInt);
  b.AddControlFlow(tflite::kTfLiteBuiltinStablehloCase, {1, 2, 3},
                   {chooses, b.Op("NEG", {x}, {1, 6})}, {y});
  b.End({b.Op("TANH", {y}, {1, 6})});
  for (const char* op : {"EXP", "ABS", "SIN"}) {
    b.AddSubgraph(op);
    b.End({b.Dense(b.Op(op, {b.In({1, 6})}, {1, 6}), {1, 6}, 6)});
  }
  EXPECT_TRUE(ExpectDelegateAgrees(b, BestOptions(), 24).whole());
}

// What chooses is no bool, or several: the host's to refuse when it runs.
TEST(Branches, WithoutOneThingToChooseByAreTheHosts) {
  struct Case {
    int code;
    DataType type;
    Shape shape;
    bool taken;
  };
  constexpr int kIf = tflite::kTfLiteBuiltinIf, kCase = tflite::kTfLiteBuiltinStablehloCase;
  for (const auto& [code, type, shape, taken] :
       {Case{kIf, kBool, {1}, true}, Case{kIf, kInt, {1}, false}, Case{kIf, kBool, {2}, false},
        Case{kCase, kInt, {1}, true}, Case{kCase, kBool, {1}, false}}) {
    SCOPED_TRACE(std::string(DataTypeName(type)) + shape.ToString());
    Builder b;
    const int chooses = b.In(shape, type), x = b.In({1, 6});
    const int y = b.AddTensor("y", kFloat, {1, 6});
    b.AddControlFlow(code, {1, 2}, {chooses, x}, {y});
    b.End({y});
    for (const char* op : {"EXP", "ABS"}) {
      b.AddSubgraph(op);
      b.End({b.Dense(b.Op(op, {b.In({1, 6})}, {1, 6}), {1, 6}, 6)});
    }
    const std::vector<std::byte> file = b.Finish();
    const auto model = LoadModelFromMemory(file, nullptr);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    Options options;
    options.isa = DetectIsa();
    Delegate delegate(options);
    std::unique_ptr<Interpreter> interpreter = *Interpreter::Create(*model);
    ASSERT_TRUE(interpreter->ApplyDelegate(delegate.c_struct()).ok());
    EXPECT_EQ(interpreter->Plan()[0] == "delegate FuseliteDelegate", taken);
  }
}

TEST(Composites, OfAnyNameAreTheirDecomposition) {
  for (const char* name : {"my.block", ""}) {
    Builder b;
    const int x = b.In({1, 6}), w = b.In({1, 6}), y = b.AddTensor("y", kFloat, {1, 4});
    b.AddComposite(name, {}, 1, {b.Op("NEG", {x}, {1, 6}), w}, {y});
    b.End({b.Op("ABS", {y}, {1, 4})});
    b.AddSubgraph("decomposition");
    const int p = b.In({1, 6}), q = b.In({1, 6});
    b.End({b.Dense(b.Op("SUB", {p, q}, {1, 6}), {1, 6}, 4)});
    // Which of two operands of one shape is which, the host does not say.
    EXPECT_FALSE(ExpectDelegateAgrees(b).whole());
  }
}

// The host's kernel runs the loop, and it does so in its own graph alone.
TEST(Composites, OfLoopsAreTheHosts) {
  Builder b;
  const int x = b.In({1, 6}), y = b.AddTensor("y", kFloat, {1, 6});
  b.AddComposite("my.block", {}, 1, {x}, {y});
  b.End({y});
  b.AddSubgraph("decomposition");
  const int from = b.In({1, 6}), to = b.AddTensor("to", kFloat, {1, 6});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {2, 3}, {from}, {to});
  b.End({to});
  b.AddSubgraph("condition");
  const int axes = b.AddConstant("axes", kInt, {2}, std::vector<int32_t>{0, 1});
  const int sum = b.Op("SUM", {b.Op("ABS", {b.In({1, 6})}, {1, 6}), axes}, Shape());
  b.End({b.Op("GREATER", {sum, b.AddConstant("one", kFloat, Shape(), std::vector{1.0f})}, Shape(),
              kBool)});
  b.AddSubgraph("body");
  const int half = b.AddConstant("half", kFloat, Shape(), std::vector{0.5f});
  b.End({b.Op("MUL", {b.In({1, 6}), half}, {1, 6})});
  EXPECT_FALSE(ExpectDelegateAgrees(b).whole());
}

// Converters name a decomposition's operands by their places.
TEST(Composites, OfNamedOperandsAreTaken) {
  for (const bool in_order : {false, true}) {
    Builder b;
    const int x = b.In({1, 6}), w = b.In({1, 6}), y = b.AddTensor("y", kFloat, {1, 6});
    b.AddComposite("my.block", {}, 1, {x, w}, {y});
    b.End({b.Op("ABS", {y}, {1, 6})});
    b.AddSubgraph("decomposition");
    const int p = b.In({1, 6}, kFloat, in_order ? "my.block.impl_arg0" : "my.block.impl_arg1");
    const int q = b.In({1, 6}, kFloat, in_order ? "my.block.impl_arg1" : "my.block.impl_arg0");
    b.End({b.Op("SUB", {p, q}, {1, 6})});
    EXPECT_EQ(ExpectDelegateAgrees(b).whole(), in_order);
  }
}

// What it gives is no value of the type that the graph declares: the host's to refuse or convert.
TEST(Composites, OfOtherResultsThanDeclaredAreTheHosts) {
  Builder b;
  const int x = b.In({1, 6}), y = b.AddTensor("y", kInt, {1, 6});
  b.AddComposite("my.block", {}, 1, {x}, {y});
  b.End({y});
  b.AddSubgraph("decomposition");
  b.End({b.Op("NEG", {b.In({1, 6})}, {1, 6})});
  EXPECT_THAT(Open(b).reasons, ::testing::Not(::testing::IsEmpty()));
}

// The operator inside of it that cannot be is named.
TEST(Composites, OfOperandsThatDoNotFitAreTheHosts) {
  Builder b;
  const int x = b.In({1, 6}), y = b.AddTensor("y", kFloat, {1, 6});
  b.AddComposite("my.block", {}, 1, {x}, {y});
  b.End({y});
  b.AddSubgraph("decomposition");
  b.End({b.Op("ADD", {b.Op("NEG", {b.In({1, 6})}, {1, 6}), b.Weights({1, 5})}, {1, 6})});
  EXPECT_THAT(Open(b).reasons, ::testing::Contains(::testing::HasSubstr("ADD")));
}

// Shapes that depend on values split no graph inside, and what the host alone has is named.
TEST(Composites, OfWhatIsFoundInTheRunAreTheHosts) {
  Builder b;
  const int x = b.In({6}, kBool), y = b.AddTensor("y", kFloat, {6, 1});
  b.AddComposite("my.block", {}, 1, {x}, {y});
  b.End({b.Op("ABS", {y}, {6, 1})});
  b.AddSubgraph("decomposition");
  const int places = b.Op("WHERE", {b.In({6}, kBool)}, {6, 1}, DataType::kInt64);
  b.End({b.Op("CAST", {places}, {6, 1})});
  EXPECT_THAT(Open(b).reasons,
              ::testing::Contains(::testing::HasSubstr("shapes in its subgraph depend on values")));
}

TEST(Composites, OfNodesWithoutAKernelAreTheHosts) {
  Builder b;
  const int x = b.In({2}, kInt), y = b.AddTensor("y", kFloat, {2, 3});
  b.AddComposite("my.block", {}, 1, {x}, {y});
  b.End({b.Op("ABS", {y}, {2, 3})});
  b.AddSubgraph("decomposition");
  b.End({b.Op("NEG", {b.Op("RANDOM_UNIFORM", {b.In({2}, kInt)}, {2, 3})}, {2, 3})});
  EXPECT_THAT(Open(b).reasons,
              ::testing::Contains(::testing::HasSubstr("node 0 of subgraph 1: its state")));
}

TEST(Composites, OfOperatorsOfTheHostsAreTheHosts) {
  Builder b;
  const int x = b.In({1, 6}), y = b.AddTensor("y", kFloat, {1, 6});
  b.AddComposite("my.block", {}, 1, {x}, {y});
  b.End({y});
  b.AddSubgraph("decomposition");
  b.End({b.Op("NEG", {b.Op("EXP", {b.In({1, 6})}, {1, 6})}, {1, 6})});
  Options options = BestOptions();
  EXPECT_TRUE(ExpectDelegateAgrees(b, options).whole());
  options.ops_deny = {"STABLEHLO_COMPOSITE"};
  EXPECT_FALSE(ExpectDelegateAgrees(b, options).whole());
}

TEST(Composites, OfClearOperandsAreTaken) {
  Builder b;
  const int x = b.In({1, 6}), w = b.In({6}), y = b.AddTensor("y", kFloat, {1, 4}),
            z = b.AddTensor("z", kFloat, {6});
  b.AddComposite("my.block", {}, 1, {b.Op("NEG", {x}, {1, 6}), w}, {y, z});
  b.End({b.Op("ABS", {y}, {1, 4}), z});
  b.AddSubgraph("decomposition");
  const int p = b.In({1, 6}), q = b.In({6}), inner = b.AddTensor("inner", kFloat, {1, 6});
  b.AddComposite("my.other", {}, 2, {b.Op("SUB", {p, q}, {1, 6})}, {inner});
  b.End({b.Dense(inner, {1, 6}, 4), b.Op("EXP", {q}, {6})});
  b.AddSubgraph("nested");
  b.End({b.Op("TANH", {b.In({1, 6})}, {1, 6})});
  const Delegated delegated = ExpectDelegateAgrees(b);
  EXPECT_TRUE(delegated.whole());
  EXPECT_THAT(delegated.shapes, ::testing::Contains("float32[1,4], float32[6]"));
}

// A shape that one partition computes is a value of the run for the next one.
TEST(Partitions, TakeWhatOthersComputeAsItComes) {
  Builder b;
  const int x = b.In({2, 6}), y = b.In({12});
  const int axes = b.AddConstant("axes", kInt, {2}, std::vector<int32_t>{0, 1});
  const int sum = b.Op("SUM", {x, axes}, Shape());
  const int shape = b.AddTensor("shape", kInt, {2});
  kernels::Params of_shape;
  of_shape.as<kernels::ShapeParams>().out_type = kInt;
  b.AddOperator(*kernels::FindOperator("SHAPE"), of_shape, {x}, {shape});
  int scale = sum;
  for (int i = 0; i < 6; ++i) scale = b.Op("TANH", {scale}, Shape());
  scale = b.Op("COS", {scale}, Shape());
  int rows = b.Op("RESHAPE", {b.Op("MUL", {y, scale}, {12}), shape}, {2, 6});
  for (int i = 0; i < 6; ++i) rows = b.Op("TANH", {rows}, {2, 6});
  b.End({rows});
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Options options;
  options.isa = DetectIsa();
  options.ops_deny = {"COS"};
  Delegate delegate(options);
  std::unique_ptr<Interpreter> alone = *Interpreter::Create(*model),
                               delegated = *Interpreter::Create(*model);
  ASSERT_TRUE(delegated->ApplyDelegate(delegate.c_struct()).ok());
  EXPECT_THAT(delegated->Plan(), ::testing::ElementsAre("delegate FuseliteDelegate", "COS",
                                                        "delegate FuseliteDelegate"));
  for (const Shape& given : {Shape{2, 6}, Shape{3, 4}}) {
    SCOPED_TRACE(given.ToString());
    for (Interpreter* each : {alone.get(), delegated.get()}) {
      ASSERT_TRUE(each->ResizeInput(0, given.dims()).ok());
      const Status allocated = each->AllocateTensors();
      ASSERT_TRUE(allocated.ok()) << allocated.ToString();
      Random random(1);
      for (int i = 0; i < 2; ++i) Fill(each->input(i), random);
      const Status status = each->Invoke();
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    EXPECT_EQ(alone->output(0).shape, given);
    ExpectSame(alone->output(0), delegated->output(0));
  }
}

}  // namespace
}  // namespace fuselite::partitioner
