#include "tests/fuzz/model_grower.h"

#include <flatbuffers/flexbuffers.h>

#include <string>

#include "kernels/arg_max/arg_max.h"
#include "kernels/random/random.h"
#include "runtime/tflite/builtin_codes.h"
#include "tests/fuzz/change_model.h"
#include "tests/fuzz/custom_phrases.h"
#include "tests/fuzz/text_phrases.h"

namespace fuselite::fuzz {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32;
// The shape of what goes through subgraphs.
const Shape kRow = {2, 5};
// The name by which the graph and its initializer mean the same variable.
constexpr char kVariable[] = "kept";
// What a loop over a sequence has: how many rows that has, of how many numbers, and how many the
// state has.
constexpr int32_t kSteps = 19, kWidth = 6, kCells = 8;

// What a file says of a composite: mostly what its name needs.
std::vector<std::byte> CompositeAttributes(Random& random) {
  if (random.Chance(0.1)) return {};
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Float(random.Chance(0.9) ? "epsilon" : "scale", random.Pick({1e-3f, 0.5f, -1.0f}));
  });
  builder.Finish();
  const auto bytes = std::as_bytes(std::span(builder.GetBuffer()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::vector<std::byte> ModelGrower::Grow() {
  const int64_t nodes = random_.Int(1, 6);
  for (int64_t i = 0; i < nodes; ++i) {
    switch (random_.Int(0, 27)) {
      case 0: AddBranches(); break;
      case 1: AddLoop(); break;
      case 2: AddVariable(); break;
      case 3: AddSequence(); break;
      case 4: AddComposite(); break;
      case 5: AddTexts(); break;
      case 6: random_.Chance(0.5) ? AddRandomNumbers() : AddMeasured(); break;
      case 7:
      case 8: AddCustom(); break;
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
    return writer_.AddTensor({.name = "constant",
                              .type = info.type,
                              .shape = info.shape,
                              .quantization = info.quantization,
                              .data = drawn.DrawValuesOf(i, random_)});
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
  const bool two = random_.Chance(0.7);
  branches_ = subgraphs_;
  branch_count_ = two ? 2 : 3;
  subgraphs_ += branch_count_;
  const int selector = writer_.AddTensor("selector", two ? DataType::kBool : kI32, {1});
  graph_.inputs.push_back(selector);
  const int x = Floats();
  std::vector<int> each;
  for (int i = 0; i < branch_count_; ++i) each.push_back(branches_ + i);
  writer_.AddControlFlow(two ? tflite::kTfLiteBuiltinIf : tflite::kTfLiteBuiltinStablehloCase, each,
                         {selector, x}, {Made(kF32, kRow)});
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

void ModelGrower::AddSequence() {
  if (sequence_ >= 0) return;
  sequence_ = subgraphs_;
  subgraphs_ += 2;
  const int counter = writer_.AddConstant<int32_t>("counter", kI32, {}, {0});
  const Shape rows = {kSteps, 1, kWidth}, cells = {1, kCells};
  const int x = writer_.AddTensor("sequence", kF32, rows), state = Weights(cells);
  graph_.inputs.push_back(x);
  writer_.AddControlFlow(tflite::kTfLiteBuiltinWhile, {sequence_, sequence_ + 1},
                         {counter, x, state},
                         {Made(kI32, {}), Made(kF32, rows), Made(kF32, cells)});
}

void ModelGrower::AddComposite() {
  if (composite_ >= 0) return;
  composite_ = subgraphs_++;
  const char* name = random_.Pick({"odml.rms_norm", "odml.rms_norm", "another.relu"});
  const std::vector<int> inputs = {Floats(), Weights({kRow[1]})};
  writer_.AddComposite(name, CompositeAttributes(random_), composite_, inputs, {Made(kF32, kRow)});
}

void ModelGrower::AddTexts() {
  for (int made : AddTextPhrase(writer_, random_, graph_.inputs)) graph_.outputs.push_back(made);
}

void ModelGrower::AddCustom() {
  for (int made : AddCustomPhrase(writer_, random_, graph_.inputs)) {
    graph_.made.push_back(made);
    graph_.outputs.push_back(made);
  }
}

// Operators that the interpreter alone runs, each run with further numbers.
void ModelGrower::AddRandomNumbers() {
  const std::string_view name =
      random_.Pick({"RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL"});
  kernels::Params params;
  params.as<kernels::RandomParams>() = {random_.Int(0, 2), random_.Int(-1, 2)};
  const kernels::OperatorDef& op = *kernels::FindOperator(name);
  const auto count = static_cast<int32_t>(random_.Int(0, 9));
  if (name == "MULTINOMIAL") {
    const int number = writer_.AddConstant<int32_t>("count", kI32, {}, {count});
    const DataType type = random_.Pick({kI32, DataType::kInt64});
    writer_.AddOperator(op, params, {Floats(), number}, {Made(type, {kRow[0], count})});
    return;
  }
  const int shape = writer_.AddConstant<int32_t>("shape", kI32, {2}, {count, 3});
  writer_.AddOperator(op, params, {shape}, {Made(kF32, {count, 3})});
}

// Values whose sizes are known when it runs: as many as are positive, as large as others say.
void ModelGrower::AddMeasured() {
  const int x = Floats(), zero = writer_.AddConstant<float>("zero", kF32, {}, {0});
  int measured;
  if (random_.Chance(0.3)) {
    const int positive = Op("GREATER", {x, zero}, kRow, DataType::kBool);
    const int places = Op("WHERE", {positive}, {1, 2}, DataType::kInt64);
    measured = Op("GATHER_ND", {x, places}, {1});
  } else {
    const int axis = writer_.AddConstant<int32_t>("axis", kI32, {1}, {1});
    const int sizes = writer_.AddTensor("sizes", kI32, {kRow[0]});
    kernels::Params params;
    params.as<kernels::ArgMaxParams>().output_type = kI32;
    writer_.AddOperator(*kernels::FindOperator("ARG_MAX"), params, {x, axis}, {sizes});
    measured =
        random_.Chance(0.5) ? Op("FILL", {sizes, zero}, {1, 1}) : Op("TILE", {x, sizes}, {1, 1});
  }
  if (random_.Chance(0.5)) measured = Op("NEG", {measured}, {1, 1});
  graph_.outputs.push_back(Op("TANH", {measured}, {1, 1}));
}

// In the order in which their numbers were given away.
void ModelGrower::AddSubgraphs() {
  for (int subgraph = 1; subgraph < subgraphs_; ++subgraph) {
    graph_ = {};
    const bool branch = branches_ >= 0 && subgraph >= branches_;
    if (branch && subgraph < branches_ + branch_count_) AddBranch("branch");
    if (subgraph == loop_) AddCondition();
    if (subgraph == loop_ + 1 && loop_ >= 0) AddBody();
    if (subgraph == initializer_) AddInitializer();
    if (subgraph == sequence_) AddSequenceCondition();
    if (subgraph == sequence_ + 1 && sequence_ >= 0) AddSequenceBody();
    if (subgraph == composite_) AddBranch("decomposition");
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
  const bool composite = std::string_view(name) == "decomposition";
  writer_.SetInputs(composite ? std::vector{x, writer_.AddTensor("scales", kF32, {kRow[1]})}
                              : std::vector{x});
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

int ModelGrower::Weights(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = random_.Float(-0.5f, 0.5f);
  return writer_.AddConstant<float>("weights", kF32, shape, values);
}

int ModelGrower::Op(std::string_view name, std::vector<int> inputs, const Shape& shape,
                    DataType type) {
  const int out = writer_.AddTensor(std::string(name), type, shape);
  writer_.AddOperator(*kernels::FindOperator(name), std::move(inputs), {out});
  return out;
}

int ModelGrower::Dense(int x, int32_t from, int32_t to) {
  const int weights = Weights({to, from}), bias = random_.Chance(0.7) ? Weights({to}) : -1;
  return Op("FULLY_CONNECTED", {x, weights, bias}, {1, to});
}

void ModelGrower::AddSequenceCondition() {
  writer_.AddSubgraph("goes on");
  const int counter = writer_.AddTensor("counter", kI32, {});
  const int x = writer_.AddTensor("x", kF32, {kSteps, 1, kWidth});
  const int state = writer_.AddTensor("state", kF32, {1, kCells});
  const auto turns = static_cast<int32_t>(random_.Int(0, kSteps + 1));
  const int limit = writer_.AddConstant<int32_t>("limit", kI32, {}, {turns});
  writer_.SetInputs({counter, x, state});
  writer_.SetOutputs({Op("LESS", {counter, limit}, {}, DataType::kBool)});
}

void ModelGrower::AddSequenceBody() {
  writer_.AddSubgraph("body");
  const int counter = writer_.AddTensor("counter", kI32, {});
  const int x = writer_.AddTensor("x", kF32, {kSteps, 1, kWidth});
  const int state = writer_.AddTensor("state", kF32, {1, kCells});
  const int one = writer_.AddConstant<int32_t>("one", kI32, {}, {1});
  const int next = Op("ADD", {counter, one}, {}, kI32);
  const int row = Op("GATHER", {x, random_.Chance(0.9) ? counter : next}, {1, kWidth});
  const int ahead = Dense(row, kWidth, kCells), behind = Dense(state, kCells, kCells);
  const int sum = Op("ADD", {ahead, behind}, {1, kCells});
  const int cell = Op(random_.Pick({"TANH", "RELU", "LOGISTIC"}), {sum}, {1, kCells});
  // Rows that the loop changes were not there to be multiplied ahead.
  const bool changes = random_.Chance(0.2);
  const int rows = changes ? Op("NEG", {x}, {kSteps, 1, kWidth}) : x;
  writer_.SetInputs({counter, x, state});
  writer_.SetOutputs({next, rows, cell});
}

}  // namespace fuselite::fuzz
