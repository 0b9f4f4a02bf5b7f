// Loops in fuselite's interpreter, with the delegate and without it: values, and how often the host
// calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/loop_calls.h"
#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using namespace interpreter;
using namespace testing;
using kernels::testing::Random;

using Body = std::vector<int> (*)(Builder& b, int count, const std::vector<int>& values);

enum class Start { kZero, kInput };

// One WHILE over floats of these shapes, which begin with the model's inputs.
void WriteLoop(Builder& b, const std::vector<Shape>& shapes, Body body, int32_t limit,
               Start start = Start::kZero) {
  std::vector<int> first = {start == Start::kZero ? b.Number(0) : b.In(Shape(), kInt)};
  std::vector<int> last = {b.AddTensor("count", kInt, Shape())};
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

enum class Turns { kAtOnce, kOneByOne };

void ExpectLoopAgrees(const std::vector<Shape>& shapes, Body body, Turns turns = Turns::kAtOnce) {
  for (const int32_t limit : kLimits) {
    SCOPED_TRACE("to " + std::to_string(limit));
    Builder b;
    WriteLoop(b, shapes, body, limit);
    Delegated delegated = ExpectDelegateAgrees(b);
    delegated.calls[2].resize(3);
    EXPECT_EQ(delegated.calls[2],
              turns == Turns::kAtOnce ? CallsAtOnce(limit) : std::vector<int>(3, limit));
  }
}

// The host's kernel runs the loop in the middle of the partition, between fuselite's values.
TEST(Loop, SplitsNoPartition) {
  Builder b;
  const Shape shape = {1, 8};
  const int x = b.In(shape), from = b.Op("NEG", {x}, shape);
  const int count = b.AddTensor("count", kInt, Shape()), last = b.AddTensor("last", kFloat, shape);
  const int other = b.AddTensor("other", kFloat, shape);
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), from, x},
                   {count, last, other});
  b.End({b.Op("TANH", {b.Op("ADD", {last, from}, shape)}, shape), other});
  b.Below(5, {shape, shape});
  b.AddSubgraph("body");
  const int turn = b.In(Shape(), kInt), one = b.In(shape), two = b.In(shape);
  b.End({b.Next(turn), b.Op("ADD", {one, two}, shape), b.Op("SIN", {one}, shape)});
  const Delegated delegated = ExpectDelegateAgrees(b);
  EXPECT_TRUE(delegated.whole());
  EXPECT_EQ(delegated.host_run, std::vector{1});
  // The delegate must take the loop's subgraphs, or the host's kernel gains nothing by it.
  Options options = BestOptions();
  options.ops_deny = {"SIN"};
  EXPECT_THAT(Open(b, options).reasons,
              ::testing::Contains(::testing::HasSubstr("(SIN) of subgraph 2")));
}

// What the host's kernel gives has its shape, and memory, as soon as the graph is prepared.
TEST(Loop, GivesShapesBeforeTheRun) {
  Builder b;
  WriteLoop(
      b, {{1, 8}},
      [](Builder& body, int, const std::vector<int>& v) {
        return std::vector{body.Op("TANH", {v[0]}, {1, 8})};
      },
      3);
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Delegate delegate(BestOptions());
  std::unique_ptr<Interpreter> interpreter = *Interpreter::Create(*model);
  ASSERT_TRUE(interpreter->ApplyDelegate(delegate.c_struct()).ok());
  ASSERT_TRUE(interpreter->AllocateTensors().ok());
  EXPECT_EQ(interpreter->output(1).shape, Shape({1, 8}));
  EXPECT_NE(interpreter->output(1).data, nullptr);
}

// As many rows as values are true, in each run others: the host's kernel is prepared anew.
TEST(Loop, OverAsManyRowsAsTheRunFinds) {
  Builder b;
  const int x = b.In({1, 8});
  const int zero = b.AddConstant("zero", kFloat, Shape(), std::vector{0.0f});
  const int where =
      b.Op("WHERE", {b.Op("GREATER", {x, zero}, {1, 8}, kBool)}, {8, 2}, DataType::kInt64);
  const int rows = b.Op("CAST", {where}, {8, 2});
  const int count = b.AddTensor("count", kInt, Shape()), last = b.AddTensor("last", kFloat, {8, 2});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), rows}, {count, last});
  b.End({b.Op("NEG", {last}, {8, 2})});
  b.Below(3, {{8, 2}});
  b.AddSubgraph("body");
  const int turn = b.In(Shape(), kInt), value = b.In({8, 2});
  b.End({b.Next(turn), b.Op("ADD", {value, value}, {8, 2})});
  EXPECT_TRUE(ExpectDelegateAgrees(b, BestOptions(), 6).whole());
}

// [2, 3] and [3, 2] in turn: as many bytes, of which no turn may take the other's shape for its
// own.
TEST(Loop, ThatTurnsItsValues) {
  ExpectLoopAgrees(
      {{2, 3}},
      [](Builder& b, int, const std::vector<int>& v) {
        const int order = b.AddConstant("order", kInt, {2}, std::vector<int32_t>{1, 0});
        return std::vector{b.Op("TRANSPOSE", {v[0], order}, {3, 2})};
      },
      Turns::kOneByOne);
}

// A value that nobody reads goes on as it is.
TEST(Loop, ThatHandsAValueOn) {
  ExpectLoopAgrees({{1, 8}, {3}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{b.Op("TANH", {b.Dense(v[0], {1, 8}, 8)}, {1, 8}), v[1]};
  });
}

TEST(Loop, OfValuesWithoutElements) {
  ExpectLoopAgrees({{1, 8}, {0, 3}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{b.Op("TANH", {b.Dense(v[0], {1, 8}, 8)}, {1, 8}),
                       b.Op("NEG", {v[1]}, {0, 3})};
  });
}

TEST(Loop, OfALayer) {
  ExpectLoopAgrees({{1, 8}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{b.Op("TANH", {b.Dense(v[0], {1, 8}, 8)}, {1, 8})};
  });
}

TEST(Loop, ThatExchangesItsValues) {
  ExpectLoopAgrees(
      {{2, 5}, {2, 5}, {3}},
      [](Builder& b, int, const std::vector<int>& v) {
        return std::vector{v[1], b.Op("TANH", {b.Op("SUB", {v[0], v[1]}, {2, 5})}, {2, 5}), v[2]};
      },
      Turns::kOneByOne);
  ExpectLoopAgrees(
      {{4}, {4}},
      [](Builder&, int, const std::vector<int>& v) {
        return std::vector{v[1], v[0]};
      },
      Turns::kOneByOne);
  ExpectLoopAgrees({{4}, {4}}, [](Builder& b, int, const std::vector<int>& v) {
    const int sum = b.Op("ADD", {v[0], v[1]}, {4});
    const int mean = b.Op("MUL", {sum, b.Weights({4})}, {4});
    return std::vector{mean, mean};
  });
}

// A value that no node reads comes from another one: of each turn, not of the host's last.
TEST(Loop, ThatKeepsTheValueOfTheTurnBefore) {
  ExpectLoopAgrees(
      {{1, 8}, {1, 8}},
      [](Builder& b, int, const std::vector<int>& v) {
        return std::vector{b.Op("TANH", {b.Dense(v[0], {1, 8}, 8)}, {1, 8}), v[0]};
      },
      Turns::kOneByOne);
  ExpectLoopAgrees(
      {{4}, {4}, {4}},
      [](Builder& b, int, const std::vector<int>& v) {
        return std::vector{b.Op("MUL", {v[0], b.Weights({4})}, {4}), v[0], v[1]};
      },
      Turns::kOneByOne);
}

// Which of two results comes where is learnt of their values.
TEST(Loop, OfTwoValuesOfOneShape) {
  ExpectLoopAgrees({{1, 8}, {1, 8}}, [](Builder& b, int, const std::vector<int>& v) {
    return std::vector{b.Op("TANH", {b.Dense(v[1], {1, 8}, 8)}, {1, 8}),
                       b.Op("SIN", {b.Op("ADD", {v[0], v[1]}, {1, 8})}, {1, 8})};
  });
}

TEST(Loop, WithATensorThatNobodyUses) {
  ExpectLoopAgrees({{1, 8}}, [](Builder& b, int, const std::vector<int>& v) {
    b.AddTensor("unused", kFloat, {1, 8});
    return std::vector{b.Op("TANH", {b.Dense(v[0], {1, 8}, 8)}, {1, 8})};
  });
}

// A state of the body's own is none of the values that the loop begins with.
TEST(Loop, OfABodyThatKeepsAState) {
  ExpectLoopAgrees({{1, 3, 4}, {1, 3, 4}}, [](Builder& b, int, const std::vector<int>& v) {
    const int state = b.AddTensor({"state", kFloat, {1, 4}, {}, {}, true, {}});
    const int row =
        b.Op("UNIDIRECTIONAL_SEQUENCE_RNN",
             {v[1], b.Weights({4, 4}), b.Weights({4, 4}), b.Weights({4}), state}, {1, 3, 4});
    return std::vector{b.Op("TANH", {row}, {1, 3, 4}), b.Op("SIN", {v[0]}, {1, 3, 4})};
  });
}

// Runs of few turns, so that what is watched in one is used in the next.
TEST(Loop, OfAsManyTurnsAsTheRunSays) {
  constexpr Body kBodies[] = {
      [](Builder& b, int, const std::vector<int>& v) {
        return std::vector{v[1], b.Op("TANH", {b.Op("SUB", {v[0], v[1]}, {4})}, {4}), v[2]};
      },
      [](Builder& b, int, const std::vector<int>& v) {
        return std::vector{b.Op("MUL", {v[0], b.Weights({4})}, {4}), v[0], v[1]};
      },
      [](Builder& b, int, const std::vector<int>& v) {
        return std::vector{b.Op("SIN", {v[1]}, {4}), b.Op("COS", {v[0]}, {4}), v[2]};
      },
      [](Builder& b, int, const std::vector<int>& v) {
        return std::vector{b.Op("SIN", {v[1]}, {4}), b.Weights({4}),
                           b.Op("NEG", {b.Weights({4})}, {4})};
      },
      [](Builder&, int, const std::vector<int>& v) {
        return std::vector{v[1], v[2], v[0]};
      },
  };
  for (const Body& body : kBodies) {
    for (const int32_t limit : {2, 3, 4, 6}) {
      SCOPED_TRACE("body " + std::to_string(&body - kBodies) + " to " + std::to_string(limit));
      Builder b;
      WriteLoop(b, {{4}, {4}, {4}}, body, limit, Start::kInput);
      ExpectDelegateAgrees(b, BestOptions(), 12);
    }
  }
}

// Values that are equal in the first two turns tell nothing.
TEST(Loop, OfValuesThatBeginEqual) {
  for (const int32_t limit : kLimits) {
    Builder b;
    const int x = b.In({4}), count = b.AddTensor("count", kInt, Shape());
    const int last = b.AddTensor("last", kFloat, {4}), other = b.AddTensor("other", kFloat, {4});
    b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), x, x},
                     {count, last, other});
    b.End({last, other});
    b.Below(std::min(limit, 20), {{4}, {4}});
    b.AddSubgraph("body");
    const int turn = b.In(Shape(), kInt);
    b.In({4});  // what it begins with is handed to nobody
    const int second = b.In({4});
    const int times = b.Op("CAST", {b.Op("MAXIMUM", {turn, b.Number(1)}, Shape(), kInt)}, Shape());
    b.End({b.Next(turn), second, b.Op("MUL", {second, times}, {4})});
    ExpectDelegateAgrees(b);
  }
}

// What a turn gives may be a constant, another one than the loop began with.
TEST(Loop, ThatGoesOnWithAConstant) {
  ExpectLoopAgrees({{4}, {1, 8}}, [](Builder& b, int, const std::vector<int>& v) {
    const int sum = b.Op("MEAN", {v[0], b.AddConstant("axis", kInt, {1}, std::vector{0})}, Shape());
    return std::vector{
        b.Weights({4}),
        b.Op("TANH", {b.Op("ADD", {b.Dense(v[1], {1, 8}, 8), sum}, {1, 8})}, {1, 8})};
  });
}

// The host is watched anew for what a loop of other shapes hands on.
TEST(Loop, OfOtherShapesThanBefore) {
  Builder b;
  WriteLoop(
      b, {{2, 8}},
      [](Builder& body, int, const std::vector<int>& v) {
        return std::vector{body.Op("TANH", {body.Dense(v[0], {2, 8}, 8)}, {2, 8})};
      },
      20);
  const std::vector<std::byte> file = b.Finish();
  const auto model = LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Delegate delegate(BestOptions());
  std::unique_ptr<Interpreter> alone = *Interpreter::Create(*model),
                               delegated = *Interpreter::Create(*model);
  ASSERT_TRUE(delegated->ApplyDelegate(delegate.c_struct()).ok());
  delegated->SetProfiling(true);
  for (const int32_t rows : {2, 5, 2}) {
    SCOPED_TRACE(rows);
    for (Interpreter* each : {alone.get(), delegated.get()}) {
      ASSERT_TRUE(each->ResizeInput(0, Shape({rows, 8}).dims()).ok());
      ASSERT_TRUE(each->AllocateTensors().ok());
    }
    for (const int calls : {3, 1}) {
      for (Interpreter* each : {alone.get(), delegated.get()}) {
        Random random(rows);
        Fill(each->input(0), random);
        ASSERT_TRUE(each->Invoke().ok());
      }
      EXPECT_EQ(std::ranges::count(delegated->TakeEvents(), 2, &NodeEvent::subgraph), calls);
      for (int i = 0; i < 2; ++i) ExpectSame(alone->output(i), delegated->output(i));
    }
  }
}

// Two layers to a row and the state, as recurrent cells have them; the sequence stays.
std::vector<int> Cell(Builder& b, int count, const std::vector<int>& v) {
  const int row = b.Op("GATHER", {v[0], count}, {1, 6});
  const int both = b.Op("ADD", {b.Dense(row, {1, 6}, 8), b.Dense(v[1], {1, 8}, 8)}, {1, 8});
  return {v[0], b.Op("TANH", {both}, {1, 8})};
}

TEST(Loop, OverTheRowsOfASequence) { ExpectLoopAgrees({{600, 1, 6}, {1, 8}}, Cell); }

// The rows change while the loop runs: what was computed of them ahead is of no use.
TEST(Loop, OverRowsThatItChanges) {
  ExpectLoopAgrees({{600, 1, 6}, {1, 8}}, [](Builder& b, int count, const std::vector<int>& v) {
    std::vector<int> results = Cell(b, count, v);
    results[0] = b.Op("MUL", {v[0], b.Weights({6})}, {600, 1, 6});
    return results;
  });
  ExpectLoopAgrees({{600, 1, 6}, {1, 8}}, [](Builder& b, int count, const std::vector<int>& v) {
    const int back = b.Op("SUB", {b.Number(599), count}, Shape(), kInt);
    return Cell(b, back, v);
  });
}

// What it gives is made of constants alone, and read in two partitions.
TEST(Loop, OfConstants) {
  Builder b;
  const int x = b.In({1, 8}), from = b.Weights({1, 8});
  const int count = b.AddTensor("count", kInt, Shape()), last = b.AddTensor("last", kFloat, {1, 8});
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {b.Number(0), from}, {count, last});
  const int sum = b.Op("ADD", {b.Dense(x, {1, 8}, 8), last}, {1, 8});
  const int between = b.Op("COS", {sum}, {1, 8});
  b.End({b.Dense(b.Op("MUL", {between, last}, {1, 8}), {1, 8}, 8), last});
  b.Below(3, {{1, 8}});
  b.AddSubgraph("body");
  const int turn = b.In(Shape(), kInt), value = b.In({1, 8});
  b.End({b.Next(turn), b.Op("TANH", {value}, {1, 8})});
  Options options = BestOptions();
  for (const char* denied : {"", "COS"}) {
    options.ops_deny = {denied};
    ExpectDelegateAgrees(b, options);
  }
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
    // Which loop calls is not to be seen, so that none goes on by itself.
    EXPECT_THAT(ExpectDelegateAgrees(b).calls[2], ::testing::Each(2 * limit - 1));
  }
}

}  // namespace
}  // namespace fuselite::partitioner
