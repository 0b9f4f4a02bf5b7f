#include "tests/fuzz/model_grower.h"

#include <string>

#include "runtime/tflite_builtin_codes.h"
#include "tests/fuzz/change_model.h"

namespace fuselite::fuzz {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32;
// Of what goes through subgraphs.
const Shape kRow = {2, 5};
// The name by which the graph and its initializer mean the same variable.
constexpr char kVariable[] = "kept";

}  // namespace

std::vector<std::byte> ModelGrower::Grow() {
  const int64_t nodes = random_.Int(1, 6);
  for (int64_t i = 0; i < nodes; ++i) {
    switch (random_.Int(0, 19)) {
      case 0: AddBranches(); break;
      case 1: AddLoop(); break;
      case 2: AddVariable(); break;
      default: Add();
    }
  }
  writer_.SetInputs(graph_.inputs);
  writer_.SetOutputs(graph_.outputs);
  if (!graph_.inputs.empty() && !graph_.outputs.empty() && random_.Chance(0.3)) {
    writer_.AddSignature("serve", {{"x", graph_.inputs[0]}}, {{"y", graph_.outputs[0]}});
  }
  AddSubgraphs();
  std::vector<std::byte> bytes = writer_.Finish();
  if (random_.Chance(0.5)) {
    bytes = ChangeModel(bytes, static_cast<int>(random_.Int(1, 6)), random_);
  }
  const int64_t changes = random_.Chance(0.1) ? random_.Int(1, 8) : 0;
  for (int64_t i = 0; i < changes; ++i) {
    const int64_t place = random_.Int(0, static_cast<int64_t>(bytes.size()) - 1);
    bytes[place] = static_cast<std::byte>(random_.Int(0, 255));
  }
  return bytes;
}

void ModelGrower::Add() {
  const auto operators = DrawableOperators();
  const auto& op = *operators[random_.Int(0, static_cast<int64_t>(operators.size()) - 1)];
  const RandomOperation drawn = DrawOperation(op, random_);
  std::vector<int> in, out;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) in.push_back(Operand(drawn, i));
  // Shapes that the file states need not be those that come out.
  for (const TensorInfo& output : drawn.outputs) {
    out.push_back(writer_.AddTensor("made", output.type, output.shape, output.quantization));
    graph_.made.push_back(out.back());
    graph_.outputs.push_back(out.back());
  }
  writer_.AddOperator(op, drawn.params, in, out, static_cast<int>(random_.Int(1, 3)));
}

int ModelGrower::Operand(const RandomOperation& drawn, size_t i) {
  const TensorInfo& info = drawn.inputs[i];
  if (info.absent()) return -1;
  if (i == 0 && !graph_.made.empty() && random_.Chance(0.7)) return graph_.made.back();
  if (drawn.constant[i]) {
    return writer_.AddTensor({"constant",
                              info.type,
                              info.shape,
                              info.quantization,
                              drawn.DrawValuesOf(i, random_),
                              false,
                              {}});
  }
  graph_.inputs.push_back(writer_.AddTensor("in", info.type, info.shape, info.quantization));
  return graph_.inputs.back();
}

int ModelGrower::Floats() {
  graph_.inputs.push_back(writer_.AddTensor("row", kF32, kRow));
  return graph_.inputs.back();
}

int ModelGrower::Made(DataType type, const Shape& shape) {
  const int tensor = writer_.AddTensor("made", type, shape);
  graph_.made.push_back(tensor);
  graph_.outputs.push_back(tensor);
  return tensor;
}

void ModelGrower::AddBranches() {
  if (branches_ >= 0) return;
  branches_ = subgraphs_;
  subgraphs_ += 2;
  const int selector = writer_.AddTensor("selector", DataType::kBool, {1});
  graph_.inputs.push_back(selector);
  const int x = Floats();
  writer_.AddControlFlow(tflite::kTfLiteBuiltinIf, {branches_, branches_ + 1}, {selector, x},
                         {Made(kF32, kRow)});
}

void ModelGrower::AddLoop() {
  if (loop_ >= 0) return;
  loop_ = subgraphs_;
  subgraphs_ += 2;
  const int counter = writer_.AddConstant<int32_t>("counter", kI32, {1}, {0});
  const int x = Floats();
  const int turns = Made(kI32, {1});
  writer_.AddControlFlow(tflite::kTfLiteBuiltinWhile, {loop_, loop_ + 1}, {counter, x, x},
                         {turns, Made(kF32, kRow), Made(kF32, kRow)});
  exchanged_ = random_.Chance(0.3);
}

void ModelGrower::AddVariable() {
  if (initializer_ >= 0) return;
  initializer_ = subgraphs_++;
  const int handle = writer_.AddTensor("handle", DataType::kResource, {1});
  writer_.AddVariableHandle(kVariable, handle);
  writer_.AddControlFlow(tflite::kTfLiteBuiltinCallOnce, {initializer_}, {}, {});
  const int before = Made(kF32, kRow);
  writer_.AddOperator(tflite::kTfLiteBuiltinReadVariable, {handle}, {before});
  writer_.AddOperator(tflite::kTfLiteBuiltinAssignVariable, {handle, Chain(before)}, {});
  if (random_.Chance(0.5)) {
    writer_.AddOperator(tflite::kTfLiteBuiltinReadVariable, {handle}, {Made(kF32, kRow)});
  }
}

// In the order in which their numbers were given away.
void ModelGrower::AddSubgraphs() {
  for (int subgraph = 1; subgraph < subgraphs_; ++subgraph) {
    graph_ = {};
    if (subgraph == branches_) AddBranch("then");
    if (subgraph == branches_ + 1 && branches_ >= 0) AddBranch("else");
    if (subgraph == loop_) AddCondition();
    if (subgraph == loop_ + 1 && loop_ >= 0) AddBody();
    if (subgraph == initializer_) AddInitializer();
  }
}

int ModelGrower::Chain(int value) {
  for (int64_t i = random_.Int(1, 3); i > 0; --i) {
    const char* name = random_.Pick({"RELU", "TANH", "ABS", "NEG", "LOGISTIC", "SIN"});
    const kernels::OperatorDef* op = kernels::FindOperator(name);
    if (op == nullptr) continue;
    const int out = writer_.AddTensor("step", kF32, kRow);
    writer_.AddOperator(*op, {value}, {out});
    value = out;
  }
  return value;
}

void ModelGrower::AddBranch(const char* name) {
  writer_.AddSubgraph(name);
  const int x = writer_.AddTensor("x", kF32, kRow);
  writer_.SetInputs({x});
  // Any operator may read the branch's argument.
  graph_.made = {x};
  if (random_.Chance(0.3)) Add();
  writer_.SetOutputs({random_.Chance(0.8) ? Chain(x) : graph_.made.back()});
}

void ModelGrower::AddCondition() {
  writer_.AddSubgraph("goes on");
  const int counter = writer_.AddTensor("counter", kI32, {1});
  const int x = writer_.AddTensor("x", kF32, kRow), y = writer_.AddTensor("y", kF32, kRow);
  const auto turns = static_cast<int32_t>(random_.Int(0, 20));
  const int limit = writer_.AddConstant<int32_t>("limit", kI32, {1}, {turns});
  const int goes_on = writer_.AddTensor("goes on", DataType::kBool, {1});
  if (const auto* less = kernels::FindOperator("LESS")) {
    writer_.AddOperator(*less, {counter, limit}, {goes_on});
  }
  writer_.SetInputs({counter, x, y});
  writer_.SetOutputs({goes_on});
}

void ModelGrower::AddBody() {
  writer_.AddSubgraph("body");
  const int counter = writer_.AddTensor("counter", kI32, {1});
  const int x = writer_.AddTensor("x", kF32, kRow), y = writer_.AddTensor("y", kF32, kRow);
  writer_.SetInputs({counter, x, y});
  const int one = writer_.AddConstant<int32_t>("one", kI32, {1}, {1});
  const int next = writer_.AddTensor("next", kI32, {1});
  const int sum = writer_.AddTensor("sum", kF32, kRow);
  if (const auto* add = kernels::FindOperator("ADD")) {
    writer_.AddOperator(*add, {counter, one}, {next});
    writer_.AddOperator(*add, {x, y}, {sum});
  }
  const int moved = Chain(x), other = random_.Chance(0.3) ? y : Chain(sum);
  writer_.SetOutputs(exchanged_ ? std::vector{next, other, moved}
                                : std::vector{next, moved, other});
}

void ModelGrower::AddInitializer() {
  writer_.AddSubgraph("once");
  const int handle = writer_.AddTensor("handle", DataType::kResource, {1});
  writer_.AddVariableHandle(kVariable, handle);
  const std::vector<float> first(static_cast<size_t>(kRow.elements()), 0.5f);
  const int value = writer_.AddConstant<float>("first", kF32, kRow, first);
  writer_.AddOperator(tflite::kTfLiteBuiltinAssignVariable, {handle, value}, {});
}

}  // namespace fuselite::fuzz
