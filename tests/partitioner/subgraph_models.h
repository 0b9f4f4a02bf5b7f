// Models of several subgraphs for tests, and runs of them with the delegate and without it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/file/writer.h"
#include "interpreter/interpreter.h"
#include "kernels/generate/generate.h"
#include "partitioner/delegate.h"
#include "runtime/tflite/builtin_codes.h"
#include "tests/kernels/random.h"

namespace fuselite::partitioner::testing {

inline constexpr DataType kFloat = DataType::kFloat32, kInt = DataType::kInt32,
                          kBool = DataType::kBool;

// A model under construction, one subgraph after the other.
class Builder : public interpreter::ModelWriter {
 public:
  int In(const Shape& shape, DataType type = kFloat, const char* name = "in") {
    inputs_.push_back(AddTensor(name, type, shape));
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
  int ShapeOf(int x, int rank) {
    kernels::Params as_int;
    as_int.as<kernels::ShapeParams>().out_type = kInt;
    const int shape = AddTensor("shape", kInt, {rank});
    AddOperator(*kernels::FindOperator("SHAPE"), as_int, {x}, {shape});
    return shape;
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
  // The condition and the body of a recurrent network's loop over a sequence of 20 rows of 6, with
  // a state of 8 cells.
  void TurnsOverRows() {
    Below(20, {{20, 1, 6}, {1, 8}});
    AddSubgraph("body");
    const int turn = In(Shape(), kInt), sequence = In({20, 1, 6}), before = In({1, 8});
    const int row = Dense(Op("GATHER", {sequence, turn}, {1, 6}), {1, 6}, 8);
    const int sum = Op("ADD", {row, Dense(before, {1, 8}, 8)}, {1, 8});
    End({Next(turn), sequence, Op("TANH", {sum}, {1, 8})});
  }

 private:
  kernels::testing::Random random_{1};
  std::vector<int> inputs_;
};

inline void Fill(const interpreter::TensorView& input, kernels::testing::Random& random) {
  for (size_t i = 0; i < static_cast<size_t>(input.shape.elements()); ++i) {
    if (input.type == kFloat) static_cast<float*>(input.data)[i] = random.Float(-1, 1);
    if (input.type == kInt) static_cast<int32_t*>(input.data)[i] = random.Int(0, 2);
    if (input.type == kBool) static_cast<bool*>(input.data)[i] = random.Chance(0.5);
  }
}

inline void ExpectSame(const interpreter::TensorView& expected,
                       const interpreter::TensorView& actual) {
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

// What the host did with the delegate.
struct Delegated {
  std::vector<std::string> plan;
  std::vector<std::string> reasons;       // why nodes of the first subgraph were not taken
  std::vector<std::string> shapes;        // of what the others give
  std::map<int, std::vector<int>> calls;  // by subgraph: of its partitions in each run
  std::vector<int> host_run;  // nodes in partitions of the first subgraph, by the host's kernels

  void Read(const interpreter::Interpreter& host, const Delegate& delegate) {
    plan = host.Plan();
    const Explanation explanation = delegate.Explain();
    for (const Verdict& verdict : explanation.graphs.at(0).verdicts) {
      if (!verdict.claimed) reasons.push_back(verdict.op + ": " + verdict.reason);
      if (verdict.claimed) shapes.push_back(verdict.shapes);
    }
  }
  bool whole() const { return plan == std::vector<std::string>{"delegate FuseliteDelegate"}; }
};

inline Options BestOptions() {
  Options options;
  options.isa = DetectIsa();
  return options;
}

// Offers the model to the delegate, and runs nothing.
inline Delegated Open(const interpreter::ModelWriter& writer,
                      const Options& options = BestOptions()) {
  Delegated result;
  const std::vector<std::byte> file = writer.Finish();
  const auto model = interpreter::LoadModelFromMemory(file, nullptr);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  if (!model.ok()) return result;
  Delegate delegate(options);
  const std::unique_ptr<interpreter::Interpreter> host = *interpreter::Interpreter::Create(*model);
  EXPECT_TRUE(host->ApplyDelegate(delegate.c_struct()).ok());
  result.Read(*host, delegate);
  return result;
}

// Runs the model several times on different inputs, alone and with the delegate.
inline Delegated ExpectDelegateAgrees(const interpreter::ModelWriter& writer,
                                      const Options& options = BestOptions(), int runs = 3) {
  using interpreter::Interpreter;
  Delegated result;
  const std::vector<std::byte> file = writer.Finish();
  const auto model = interpreter::LoadModelFromMemory(file, nullptr);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  if (!model.ok()) return result;
  Delegate delegate(options);
  std::unique_ptr<Interpreter> alone = *Interpreter::Create(*model),
                               delegated = *Interpreter::Create(*model);
  EXPECT_TRUE(delegated->ApplyDelegate(delegate.c_struct()).ok());
  result.Read(*delegated, delegate);
  for (Interpreter* each : {alone.get(), delegated.get()}) {
    const Status status = each->AllocateTensors();
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (!status.ok()) return result;
  }
  delegated->SetProfiling(true);
  for (int run = 0; run < runs; ++run) {
    for (Interpreter* each : {alone.get(), delegated.get()}) {
      kernels::testing::Random random(100 + run);
      for (size_t i = 0; i < each->inputs().size(); ++i) {
        Fill(each->input(static_cast<int>(i)), random);
      }
      const Status status = each->Invoke();
      EXPECT_TRUE(status.ok()) << status.ToString();
      if (!status.ok()) return result;
    }
    for (const interpreter::NodeEvent& event : delegated->TakeEvents()) {
      std::vector<int>& calls = result.calls[event.subgraph];
      calls.resize(runs);
      if (event.name == "delegate FuseliteDelegate") ++calls[run];
    }
    for (size_t i = 0; i < alone->outputs().size(); ++i) {
      SCOPED_TRACE("run " + std::to_string(run) + ", output " + std::to_string(i));
      ExpectSame(alone->output(static_cast<int>(i)), delegated->output(static_cast<int>(i)));
    }
  }
  const Explanation explanation = delegate.Explain();
  for (const PartitionReport& partition : explanation.graphs.at(0).partitions) {
    result.host_run.insert(result.host_run.end(), partition.host_run_nodes.begin(),
                           partition.host_run_nodes.end());
  }
  return result;
}

}  // namespace fuselite::partitioner::testing
