// Models of several subgraphs in our interpreter, with the delegate and without it: loops,
// branches, composites and state, which no single graph has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "interpreter/interpreter.h"
#include "interpreter/writer.h"
#include "kernels/generate/generate.h"
#include "partitioner/delegate.h"
#include "runtime/tflite_builtin_codes.h"
#include "tests/kernels/random.h"

namespace fuselite::partitioner {
namespace {

using namespace interpreter;
using kernels::testing::Random;

constexpr DataType kFloat = DataType::kFloat32, kInt = DataType::kInt32, kBool = DataType::kBool;

// A model under construction, one subgraph after the other.
class Builder : public ModelWriter {
 public:
  int In(const Shape& shape, DataType type = kFloat) {
    inputs_.push_back(AddTensor("in", type, shape));
    return inputs_.back();
  }
  int Number(int32_t value) { return AddConstant("number", kInt, Shape(), std::vector{value}); }
  int Weights(const Shape& shape) {
    std::vector<float> values(shape.elements());
    for (float& v : values) v = random_.Float(-0.5f, 0.5f);
    return AddConstant("weights", kFloat, shape, values);
  }
  int Op(std::string_view name, std::vector<int> inputs, const Shape& shape,
         DataType type = kFloat) {
    const int output = AddTensor(std::string(name), type, shape);
    AddOperator(*kernels::FindOperator(name), std::move(inputs), {output});
    return output;
  }
  int Dense(int x, const Shape& from, int units) {
    Shape to = from;
    to.set(from.rank() - 1, units);
    return Op("FULLY_CONNECTED", {x, Weights({units, from.dim(-1)}), Weights({units})}, to);
  }
  // Ends the subgraph that was begun last.
  void End(std::vector<int> outputs) {
    SetInputs(std::exchange(inputs_, {}));
    SetOutputs(std::move(outputs));
  }
  // The condition of a loop over values of these shapes, of which the first counts to `limit`.
  void Below(int32_t limit, const std::vector<Shape>& shapes) {
    AddSubgraph("condition");
    const int count = In(Shape(), kInt);
    for (const Shape& shape : shapes) In(shape);
    End({Op("LESS", {count, Number(limit)}, Shape(), kBool)});
  }
  int Next(int count) { return Op("ADD", {count, Number(1)}, Shape(), kInt); }

 private:
  Random random_{1};
  std::vector<int> inputs_;
};

using Body = std::vector<int> (*)(Builder& b, int count, const std::vector<int>& values);

// One WHILE over floats of these shapes, which begin with the model's inputs.
void WriteLoop(Builder& b, const std::vector<Shape>& shapes, Body body, int32_t limit) {
  std::vector<int> first = {b.Number(0)}, last = {b.AddTensor("count", kInt, Shape())};
  for (const Shape& shape : shapes) {
    first.push_back(b.In(shape));
    last.push_back(b.AddTensor("last", kFloat, shape));
  }
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, first, last);
  b.End(last);
  b.Below(limit, shapes);
  b.AddSubgraph("body");
  const int count = b.In(Shape(), kInt);
  std::vector<int> values;
  for (const Shape& shape : shapes) values.push_back(b.In(shape));
  std::vector<int> results = body(b, count, values);
  results.insert(results.begin(), b.Next(count));
  b.End(results);
}

void Fill(const TensorView& input, Random& random) {
  for (size_t i = 0; i < static_cast<size_t>(input.shape.elements()); ++i) {
    if (input.type == kFloat) static_cast<float*>(input.data)[i] = random.Float(-1, 1);
    if (input.type == kInt) static_cast<int32_t*>(input.data)[i] = random.Int(0, 2);
    if (input.type == kBool) static_cast<bool*>(input.data)[i] = random.Chance(0.5);
  }
}

void ExpectSame(const TensorView& expected, const TensorView& actual) {
  ASSERT_EQ(expected.shape, actual.shape);
  if (expected.type != kFloat) {
    EXPECT_EQ(std::memcmp(expected.data, actual.data, expected.bytes), 0);
    return;
  }
  const auto *e = static_cast<const float*>(expected.data),
             *a = static_cast<const float*>(actual.data);
  for (int64_t i = 0; i < expected.shape.elements(); ++i) {
    ASSERT_NEAR(e[i], a[i], 1e-5f * std::max(1.0f, std::abs(e[i]))) << "element " << i;
  }
}

// Runs the model several times on different inputs, alone and with the delegate; gives the
// delegate's plan.
std::vector<std::string> ExpectDelegateAgrees(const ModelWriter& writer, int runs = 3) {
  const std::vector<std::byte> file = writer.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  if (!model.ok()) return {};
  Options options;
  options.isa = DetectIsa();
  Delegate delegate(options);
  std::unique_ptr<Interpreter> alone = *Interpreter::Create(*model),
                               delegated = *Interpreter::Create(*model);
  EXPECT_TRUE(delegated->ApplyDelegate(delegate.c_struct()).ok());
  for (Interpreter* each : {alone.get(), delegated.get()}) {
    const Status status = each->AllocateTensors();
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (!status.ok()) return {};
  }
  for (int run = 0; run < runs; ++run) {
    for (Interpreter* each : {alone.get(), delegated.get()}) {
      Random random(100 + run);
      for (size_t i = 0; i < each->inputs().size(); ++i) {
        Fill(each->input(static_cast<int>(i)), random);
      }
      const Status status = each->Invoke();
      EXPECT_TRUE(status.ok()) << status.ToString();
      if (!status.ok()) return {};
    }
    for (size_t i = 0; i < alone->outputs().size(); ++i) {
      SCOPED_TRACE("run " + std::to_string(run) + ", output " + std::to_string(i));
      ExpectSame(alone->output(static_cast<int>(i)), delegated->output(static_cast<int>(i)));
    }
  }
  return delegated->Plan();
}

constexpr int32_t kLimits[] = {0, 1, 2, 15, 16, 17, 33};

void ExpectLoopAgrees(const std::vector<Shape>& shapes, Body body) {
  for (const int32_t limit : kLimits) {
    SCOPED_TRACE("to " + std::to_string(limit));
    Builder b;
    WriteLoop(b, shapes, body, limit);
    ExpectDelegateAgrees(b);
  }
}

TEST(Loop, OfALayer) {
  ExpectLoopAgrees({{1, 8}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{b.Op("TANH", {b.Dense(v[0], {1, 8}, 8)}, {1, 8})};
  });
}

TEST(Loop, ThatExchangesItsValues) {
  ExpectLoopAgrees({{2, 5}, {2, 5}, {3}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{v[1], b.Op("TANH", {b.Op("SUB", {v[0], v[1]}, {2, 5})}, {2, 5}), v[2]};
  });
  ExpectLoopAgrees({{4}, {4}}, [](Builder&, int, const std::vector<int>& v) {
    return std::vector{v[1], v[0]};
  });
  ExpectLoopAgrees({{4}, {4}}, [](Builder& b, int, const std::vector<int>& v) {
    const int sum = b.Op("ADD", {v[0], v[1]}, {4});
    const int mean = b.Op("MUL", {sum, b.Weights({4})}, {4});
    return std::vector{mean, mean};
  });
}

// A value that no node reads comes from another one: of each turn, not of the host's last.
TEST(Loop, ThatKeepsTheValueOfTheTurnBefore) {
  ExpectLoopAgrees({{1, 8}, {1, 8}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{b.Op("TANH", {b.Dense(v[0], {1, 8}, 8)}, {1, 8}), v[0]};
  });
  ExpectLoopAgrees({{4}, {4}, {4}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{b.Op("MUL", {v[0], b.Weights({4})}, {4}), v[0], v[1]};
  });
}

// Two layers to a row and the state, as recurrent cells have them; the sequence stays.
std::vector<int> Cell(Builder& b, int count, const std::vector<int>& v) {
  const int row = b.Op("GATHER", {v[0], count}, {1, 6});
  const int both = b.Op("ADD", {b.Dense(row, {1, 6}, 8), b.Dense(v[1], {1, 8}, 8)}, {1, 8});
  return {v[0], b.Op("TANH", {both}, {1, 8})};
}

TEST(Loop, OverTheRowsOfASequence) { ExpectLoopAgrees({{40, 1, 6}, {1, 8}}, Cell); }

// The rows change while the loop runs: what was computed of them ahead is of no use.
TEST(Loop, OverRowsThatItChanges) {
  ExpectLoopAgrees({{40, 1, 6}, {1, 8}}, [](Builder& b, int count, const std::vector<int>& v) {
    std::vector<int> results = Cell(b, count, v);
    results[0] = b.Op("MUL", {v[0], b.Weights({6})}, {40, 1, 6});
    return results;
  });
  ExpectLoopAgrees({{40, 1, 6}, {1, 8}}, [](Builder& b, int count, const std::vector<int>& v) {
    const int back = b.Op("SUB", {b.Number(39), count}, Shape(), kInt);
    return Cell(b, back, v);
  });
}

// A condition over a value that the body computes.
TEST(Loop, UntilASumIsLarge) {
  Builder b;
  const int x = b.In({1, 4}), last = b.AddTensor("last", kFloat, {1, 4});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {x}, {last});
  b.End({last});
  b.AddSubgraph("condition");
  const int axes = b.AddConstant("axes", kInt, {2}, std::vector<int32_t>{0, 1});
  const int value = b.In({1, 4});
  const int sum = b.Op("SUM", {b.Op("ABS", {value}, {1, 4}), axes}, Shape());
  const int most = b.AddConstant("most", kFloat, Shape(), std::vector{50.0f});
  b.End({b.Op("LESS", {sum, most}, Shape(), kBool)});
  b.AddSubgraph("body");
  const int before = b.In({1, 4});
  const int one = b.AddConstant("one", kFloat, Shape(), std::vector{1.5f});
  b.End({b.Op("MUL", {b.Op("ADD", {b.Op("ABS", {before}, {1, 4}), one}, {1, 4}), one}, {1, 4})});
  ExpectDelegateAgrees(b);
}

// Two loops of one body: it runs with each one's values.
TEST(Loop, TwiceOfTheSameBody) {
  for (const int32_t limit : {1, 5}) {
    Builder b;
    const int x = b.In({1, 8});
    int value = x;
    for (int i = 0; i < 2; ++i) {
      const int count = b.AddTensor("count", kInt, Shape()),
                last = b.AddTensor("last", kFloat, {1, 8});
      b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(i), value}, {count, last});
      value = b.Op("NEG", {last}, {1, 8});
    }
    b.End({value});
    b.Below(limit, {{1, 8}});
    b.AddSubgraph("body");
    const int count = b.In(Shape(), kInt), y = b.In({1, 8});
    b.End({b.Next(count), b.Op("TANH", {b.Dense(y, {1, 8}, 8)}, {1, 8})});
    ExpectDelegateAgrees(b);
  }
}

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
    ExpectDelegateAgrees(b, 8);
  }
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
  ExpectDelegateAgrees(b, 24);
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
    ExpectDelegateAgrees(b);
  }
}

// A variable without a name, that CALL_ONCE fills.
class Stateful : public Builder {
 public:
  int Handle() {
    const int handle = AddTensor("handle", DataType::kResource, Shape());
    AddOperator(tflite::kTfLiteBuiltinVarHandle, {}, {handle});
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
  ExpectDelegateAgrees(b);
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
    ExpectDelegateAgrees(b);
  }
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
