// Variables in fuselite's interpreter, with the delegate and without it: values, and who has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using namespace interpreter;
using namespace testing;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A variable without a name, that CALL_ONCE fills.
class Stateful : public Builder {
 public:
  int Handle(const char* name = "") {
    const int handle = AddTensor("handle", DataType::kResource, Shape());
    AddVariableHandle(name, handle);
    return handle;
  }
  int Read(int handle) {
    const int value = AddTensor("value", kFloat, {1, 8});
    AddOperator(tflite::kTfLiteBuiltinReadVariable, {handle}, {value});
    return value;
  }
  void Assign(int handle, int value) {
    AddOperator(tflite::kTfLiteBuiltinAssignVariable, {handle, value}, {});
  }
  void CallOnce() { AddControlFlow(tflite::kTfLiteBuiltinCallOnce, {1}, {}, {}); }
  void Initializer() {
    AddSubgraph("initializer");
    Assign(Handle(), Weights({1, 8}));
    End({});
  }
};

TEST(Variables, AddUp) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle();
  const int sum = b.Op("ADD", {b.Read(handle), b.Dense(x, {1, 8}, 8)}, {1, 8});
  b.Assign(handle, sum);
  b.End({b.Op("TANH", {sum}, {1, 8})});
  b.Initializer();
  EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
}

// Hosts refuse a CALL_ONCE that a file gives tensors. It is left to them, and so are its variables.
TEST(Variables, CallsOfAnInitializerWithTensorsAreTheHosts) {
  for (const bool takes : {false, true}) {
    Stateful b;
    const int x = b.In({1, 8}), made = b.AddTensor("made", kFloat, {1, 8});
    const std::vector<int> none, constant = {b.Weights({1, 8})};
    b.AddControlFlow(tflite::kTfLiteBuiltinCallOnce, {1}, takes ? constant : none,
                     takes ? none : std::vector<int>{made});
    const int sum = b.Op("ADD", {b.Read(b.Handle()), b.Dense(x, {1, 8}, 8)}, {1, 8});
    b.End({b.Op("TANH", {sum}, {1, 8})});
    b.Initializer();
    const Delegated delegated = Open(b);
    EXPECT_THAT(delegated.reasons, Contains(HasSubstr("CALL_ONCE: ")));
    EXPECT_THAT(delegated.reasons, Contains(HasSubstr("READ_VARIABLE: ")));
  }
}

TEST(Variables, ReadBeforeAnAssignmentStayWhatTheyWere) {
  for (const bool moved : {false, true}) {
    Stateful b;
    const int x = b.In({1, 8});
    b.CallOnce();
    const int handle = b.Handle(), old = b.Read(handle);
    const int kept = moved ? b.Op("ABS", {old}, {1, 8}) : old;
    b.Assign(handle, b.Op("NEG", {x}, {1, 8}));
    const int next = b.Read(handle);
    b.End({b.Op("SUB", {kept, next}, {1, 8}), b.Op("NEG", {next}, {1, 8})});
    b.Initializer();
    EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
  }
}

TEST(Variables, AreAssignedAConstantByEachRun) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle();
  const int sum = b.Op("ADD", {b.Read(handle), x}, {1, 8});
  b.Assign(handle, b.Weights({1, 8}));
  b.End({sum, b.Op("NEG", {b.Read(handle)}, {1, 8})});
  b.Initializer();
  EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
}

// Two names are two variables; a name that comes twice is one.
TEST(Variables, AreToldApartByTheirNames) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int first = b.Handle("a"), second = b.Handle("b"), again = b.Handle("a");
  b.Assign(first, b.Op("ADD", {b.Read(first), x}, {1, 8}));
  b.Assign(second, b.Op("SUB", {b.Read(second), x}, {1, 8}));
  b.End({b.Op("MUL", {b.Read(again), b.Read(second)}, {1, 8}), b.Read(again)});
  b.AddSubgraph("initializer");
  b.Assign(b.Handle("a"), b.Weights({1, 8}));
  b.Assign(b.Handle("b"), b.Weights({1, 8}));
  b.End({});
  EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
}

// Each reader sees the assignment before it.
TEST(Variables, MayBeAssignedTwice) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle();
  b.Assign(handle, b.Op("ADD", {b.Read(handle), x}, {1, 8}));
  const int between = b.Read(handle);
  b.Assign(handle, b.Op("NEG", {between}, {1, 8}));
  b.End({b.Op("EXP", {between}, {1, 8}), b.Op("ABS", {b.Read(handle)}, {1, 8})});
  b.Initializer();
  EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
}

using Init = void (*)(Stateful& b);

// A graph that adds to its variable, with this initializer; null: none.
Delegated RunWith(Init initializer, const Options& options = BestOptions()) {
  Stateful b;
  const int x = b.In({1, 8});
  if (initializer != nullptr) b.CallOnce();
  const int handle = b.Handle();
  if (initializer == nullptr) b.Assign(handle, b.Op("NEG", {x}, {1, 8}));
  const int sum = b.Op("ADD", {b.Read(handle), b.Dense(x, {1, 8}, 8)}, {1, 8});
  b.Assign(handle, sum);
  b.End({b.Op("TANH", {sum}, {1, 8})});
  if (initializer != nullptr) {
    b.AddSubgraph("initializer");
    initializer(b);
    b.End({});
  }
  return ExpectDelegateAgrees(b, options);
}

// Where not everything that happens to a variable is to be seen, all of it is the host's, who says
// why; the results are the host's in any case.
TEST(Variables, ThatOthersUseAreTheHosts) {
  EXPECT_THAT(RunWith([](Stateful& b) {
                b.Assign(b.Handle(), b.Weights({1, 8}));
              }).reasons,
              IsEmpty());
  EXPECT_THAT(RunWith(nullptr).reasons, Contains(HasSubstr("no CALL_ONCE gives variable")));
  EXPECT_THAT(RunWith([](Stateful& b) {
                b.Assign(b.Handle(), b.Op("NEG", {b.Weights({1, 8})}, {1, 8}));
              }).reasons,
              Contains(HasSubstr("CALL_ONCE runs NEG")));
  Options options = BestOptions();
  options.ops_deny = {"READ_VARIABLE"};
  EXPECT_THAT(RunWith(
                  [](Stateful& b) {
                    b.Assign(b.Handle(), b.Weights({1, 8}));
                  },
                  options)
                  .reasons,
              Contains(HasSubstr("READ_VARIABLE, which is left to the host, uses the variables")));
}

// Whatever shape was assigned, a reader has its own.
TEST(Variables, AreAssignedAsManyValuesOfAnyShape) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle();
  const int old = b.Op("NEG", {b.Read(handle)}, {1, 8});
  b.Assign(handle, b.Op("SQUEEZE", {x}, {8}));
  b.End({old, b.Op("NEG", {b.Read(handle)}, {1, 8})});
  b.Initializer();
  EXPECT_TRUE(ExpectDelegateAgrees(b).whole());
}

// A handle is one number, whatever its type is called.
TEST(Variables, AreNamedByOneNumber) {
  struct Case {
    DataType type;
    Shape shape;
    bool taken;
  };
  for (const auto& [type, shape, taken] :
       {Case{DataType::kResource, {}, true}, Case{DataType::kResource, {1}, true},
        Case{DataType::kResource, {2}, false}, Case{kInt, {1}, true}, Case{kFloat, {1}, false}}) {
    SCOPED_TRACE(std::string(DataTypeName(type)) + shape.ToString());
    Stateful b;
    const int x = b.In({1, 8});
    b.CallOnce();
    const int handle = b.AddTensor("handle", type, shape);
    b.AddVariableHandle("", handle);
    b.End({b.Op("ADD", {b.Read(handle), x}, {1, 8})});
    b.Initializer();
    const auto stranger = Contains(HasSubstr("whose handle is no VAR_HANDLE's"));
    const Delegated delegated = Open(b);
    if (taken) {
      EXPECT_THAT(delegated.reasons, IsEmpty());
    } else {
      EXPECT_THAT(delegated.reasons, stranger);
    }
  }
}

// Two partitions of one variable, of which one has next to no work: both stay, and share it.
TEST(Variables, MayBeSharedByPartitions) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle();
  const int sum = b.Op("ADD", {b.Read(handle), b.Dense(x, {1, 8}, 8)}, {1, 8});
  b.Assign(handle, b.Op("COS", {sum}, {1, 8}));
  b.End({sum, b.Op("NEG", {b.Read(handle)}, {1, 8})});
  b.Initializer();
  Options options = BestOptions();
  options.ops_deny = {"COS"};
  EXPECT_THAT(ExpectDelegateAgrees(b, options).reasons,
              ::testing::ElementsAre("COS: the option ops_deny names this operator"));
}

// The handle is an input of a partition whose parts wait for shapes.
TEST(Variables, MayBeReadWhereShapesAreFoundByTheRun) {
  Stateful b;
  const int x = b.In({1, 8}), y = b.In({6}, kBool);
  b.CallOnce();
  const int handle = b.Handle();
  const int sum = b.Op("ADD", {b.Read(handle), b.Dense(x, {1, 8}, 8)}, {1, 8});
  b.Assign(handle, b.Op("COS", {sum}, {1, 8}));
  const int places = b.Op("WHERE", {y}, {6, 1}, DataType::kInt64);
  const int rows = b.Op("CAST", {places}, {6, 1});
  b.End({sum, b.Op("MUL", {rows, b.Read(handle)}, {6, 8})});
  b.Initializer();
  Options options = BestOptions();
  options.ops_deny = {"COS"};
  EXPECT_THAT(ExpectDelegateAgrees(b, options, 5).reasons,
              ::testing::ElementsAre("COS: the option ops_deny names this operator"));
}

TEST(Variables, AreReadInTheirOwnShape) {
  Stateful b;
  const int x = b.In({2, 4});
  b.CallOnce();
  const int handle = b.Handle(), value = b.AddTensor("value", kFloat, {2, 4});
  b.AddOperator(tflite::kTfLiteBuiltinReadVariable, {handle}, {value});
  b.End({b.Op("ADD", {value, x}, {2, 4})});
  b.Initializer();
  EXPECT_THAT(Open(b).reasons,
              Contains(HasSubstr("reads float32[2,4] from a variable of float32[1,8]")));
}

// A handle is what VAR_HANDLE gives: a number that says as much may be another thing's.
TEST(Variables, AreFirstAssignedByTheirHandles) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  b.End({b.Op("ADD", {b.Read(b.Handle()), x}, {1, 8})});
  b.AddSubgraph("initializer");
  b.Assign(b.Number(0), b.Weights({1, 8}));
  b.End({});
  EXPECT_THAT(Open(b).reasons, Contains("READ_VARIABLE: CALL_ONCE runs ASSIGN_VARIABLE"));
}

// A branch that another graph runs assigns it, too.
TEST(Variables, OfSeveralSubgraphsAreTheHosts) {
  for (const bool same : {false, true}) {
    Stateful b;
    const int chooses = b.In({1}, kBool), x = b.In({1, 8});
    b.CallOnce();
    const int handle = b.Handle("a"), y = b.AddTensor("y", kFloat, {1, 8});
    b.AddControlFlow(tflite::kTfLiteBuiltinIf, {2, 3}, {chooses, x}, {y});
    b.End({b.Op("ADD", {b.Read(handle), y}, {1, 8})});
    b.AddSubgraph("initializer");
    b.Assign(b.Handle("a"), b.Weights({1, 8}));
    b.End({});
    for (const char* op : {"EXP", "ABS"}) {
      b.AddSubgraph(op);
      const int z = b.Op(op, {b.In({1, 8})}, {1, 8});
      b.Assign(b.Handle(same ? "a" : "b"), z);
      b.End({z});
    }
    const Delegated delegated = ExpectDelegateAgrees(b, BestOptions(), 6);
    const auto uses = Contains(HasSubstr("uses the same variables"));
    if (same) {
      EXPECT_THAT(delegated.reasons, uses);
    } else {
      EXPECT_THAT(delegated.reasons, Not(uses));
    }
  }
}

// They are known by the host's names, whatever computes them; the nodes that are nothing to compute
// stand in the report, too.
TEST(Variables, AreExplainedByTheHostsNames) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle(), sum = b.Op("ADD", {b.Read(handle), x}, {1, 8});
  b.Assign(handle, sum);
  b.End({sum});
  b.Initializer();
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok());
  Delegate delegate(BestOptions());
  const std::unique_ptr<Interpreter> host = *Interpreter::Create(*model);
  ASSERT_TRUE(host->ApplyDelegate(delegate.c_struct()).ok());
  ASSERT_TRUE(host->AllocateTensors().ok());
  const Explanation explanation = delegate.Explain();
  const PartitionReport& partition = explanation.graphs.at(0).partitions.at(0);
  std::vector<std::string> ops;
  for (const fusion::StepReport& step : partition.report.steps) ops.push_back(step.ops);
  EXPECT_THAT(ops, Contains("READ_VARIABLE"));
  EXPECT_THAT(ops, Contains("ASSIGN_VARIABLE"));
  EXPECT_THAT(NodesWithoutStep(partition), ::testing::ElementsAre(0, 1)) << "CALL_ONCE, VAR_HANDLE";
  EXPECT_THAT(ToText(explanation),
              HasSubstr("all 2 nodes (VAR_HANDLE, ASSIGN_VARIABLE) are left to the host: its graph "
                        "sets the variables of graph 0 once, when the model opens"));
}

// Left to the host, which refuses it: claimed, it would assign nothing without a word.
TEST(Variables, AreAssignedAValue) {
  Stateful b;
  const int x = b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle();
  b.Assign(handle, -1);
  b.End({b.Op("ADD", {b.Read(handle), x}, {1, 8})});
  b.Initializer();
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Options options;
  options.isa = DetectIsa();
  Delegate delegate(options);
  std::unique_ptr<Interpreter> interpreter = *Interpreter::Create(*model);
  Status status = interpreter->ApplyDelegate(delegate.c_struct());
  if (status.ok()) status = interpreter->AllocateTensors();
  if (status.ok()) status = interpreter->Invoke();
  EXPECT_FALSE(status.ok());
}

TEST(Variables, AreReadAsTheTypeThatTheyHave) {
  Stateful b;
  b.In({1, 8});
  b.CallOnce();
  const int handle = b.Handle(), value = b.AddTensor("value", kInt, {1, 8});
  b.AddOperator(tflite::kTfLiteBuiltinReadVariable, {handle}, {value});
  b.End({b.Op("NEG", {value}, {1, 8}, kInt)});
  b.Initializer();
  EXPECT_THAT(Open(b).reasons,
              Contains(HasSubstr("reads int32[1,8] from a variable of float32[1,8]")));
}

// A turn that leaves each byte as it was, but not each shape, is no turn for the next: [2, 3] ones
// turn to [3, 2], and the sum grows in every second turn, by the number of turns that there were.
TEST(Variables, CountTheTurnsOfALoopThatChangesAShape) {
  Stateful b;
  const int ones = b.AddConstant("ones", kFloat, {2, 3}, std::vector<float>(6, 1));
  const int x = b.In({1}), zero = b.Op("SUB", {x, x}, {1});
  const int start = b.AddTensor("start", kFloat, {2, 3});
  b.AddOperator(*kernels::FindOperator("ADD"), {ones, zero}, {start});
  const int last = b.AddTensor("last", kFloat, {2, 3}), sum = b.AddTensor("sum", kFloat, {2});
  const int none =
      b.Op("ADD", {zero, b.AddConstant("none", kFloat, {2}, std::vector{0.f, 0.f})}, {2});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {start, none}, {last, sum});
  b.End({sum, last});
  const auto total = [&](int values) {
    const int axes = b.AddConstant("axes", kInt, {1}, std::vector{0});
    return b.Op("SUM", {values, axes}, Shape());
  };
  b.AddSubgraph("condition");
  b.In({2, 3});
  const int most = b.AddConstant("most", kFloat, Shape(), std::vector{11.0f});
  b.End({b.Op("LESS", {total(b.In({2})), most}, Shape(), kBool)});
  b.AddSubgraph("body");
  const int value = b.In({2, 3}), before = b.In({2});
  b.AddControlFlow(tflite::kTfLiteBuiltinCallOnce, {3}, {}, {});
  const int handle = b.Handle(), turns = b.AddTensor("turns", kFloat, {1});
  b.AddOperator(tflite::kTfLiteBuiltinReadVariable, {handle}, {turns});
  const int one = b.AddConstant("one", kFloat, {1}, std::vector{1.0f});
  b.Assign(handle, b.Op("ADD", {turns, one}, {1}));
  const int shape = b.ShapeOf(value, 2);
  const int at_first = b.AddConstant("at first", kInt, {2}, std::vector<int32_t>{2, 2});
  const int other = b.Op(
      "CAST", {b.Op("SUB", {b.Op("MAXIMUM", {shape, at_first}, {2}, kInt), at_first}, {2}, kInt)},
      {2});
  const int order = b.AddConstant("order", kInt, {2}, std::vector<int32_t>{1, 0});
  const int weight = b.AddConstant("weight", kFloat, {2}, std::vector{1.0f, 0.0f});
  const int grows = b.Op("MUL", {b.Op("MUL", {other, weight}, {2}), turns}, {2});
  b.End({b.Op("TRANSPOSE", {value, order}, {3, 2}), b.Op("ADD", {before, grows}, {2})});
  b.AddSubgraph("initializer");
  b.Assign(b.Handle(), b.AddConstant("no turn", kFloat, {1}, std::vector{0.0f}));
  b.End({});
  ExpectDelegateAgrees(b, BestOptions(), 1);
}

}  // namespace
}  // namespace fuselite::partitioner
