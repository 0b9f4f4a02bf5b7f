// Whole models: a file of drawn operators, its structure or some of its bytes changed, loaded, and
// run in our interpreter with its own kernels and with the delegate.
#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "interpreter/writer.h"
#include "partitioner/delegate.h"
#include "tests/fuzz/change_model.h"
#include "tests/fuzz/random_operation.h"
#include "tests/fuzz/target.h"

namespace fuselite::fuzz {
namespace {

using namespace interpreter;

constexpr Budget kBudget{.max_memory = 64 << 20, .max_multiply_adds = 3'000'000};

// A file of a few operators, each of which may read what stands before it.
class ModelGrower {
 public:
  explicit ModelGrower(Random& random) : random_(random) {}

  std::vector<std::byte> Grow() {
    const int64_t nodes = random_.Int(1, 6);
    for (int64_t i = 0; i < nodes; ++i) Add();
    writer_.SetInputs(inputs_);
    writer_.SetOutputs(outputs_);
    std::vector<std::byte> bytes = writer_.Finish();
    if (random_.Chance(0.5)) {
      const auto count = static_cast<int>(random_.Int(1, 6));
      bytes = ChangeModel(bytes, count, random_);
    }
    const int64_t changes = random_.Chance(0.1) ? random_.Int(1, 8) : 0;
    for (int64_t i = 0; i < changes; ++i) {
      const int64_t place = random_.Int(0, static_cast<int64_t>(bytes.size()) - 1);
      bytes[place] = static_cast<std::byte>(random_.Int(0, 255));
    }
    return bytes;
  }

 private:
  void Add() {
    const auto operators = DrawableOperators();
    const auto& op = *operators[random_.Int(0, static_cast<int64_t>(operators.size()) - 1)];
    const RandomOperation drawn = DrawOperation(op, random_);
    std::vector<int> in, out;
    for (size_t i = 0; i < drawn.inputs.size(); ++i) in.push_back(Operand(drawn, i));
    // Shapes that the file states need not be those that come out.
    for (const TensorInfo& output : drawn.outputs) {
      out.push_back(writer_.AddTensor("made", output.type, output.shape, output.quantization));
      made_.push_back(out.back());
      outputs_.push_back(out.back());
    }
    writer_.AddOperator(op, drawn.params, in, out, static_cast<int>(random_.Int(1, 3)));
  }

  int Operand(const RandomOperation& drawn, size_t i) {
    const TensorInfo& info = drawn.inputs[i];
    if (info.absent()) return -1;
    if (i == 0 && !made_.empty() && random_.Chance(0.7)) return made_.back();
    if (drawn.constant[i]) {
      return writer_.AddTensor({"constant",
                                info.type,
                                info.shape,
                                info.quantization,
                                drawn.DrawValuesOf(i, random_),
                                false,
                                {}});
    }
    inputs_.push_back(writer_.AddTensor("in", info.type, info.shape, info.quantization));
    return inputs_.back();
  }

  Random& random_;
  ModelWriter writer_;
  std::vector<int> inputs_, outputs_, made_;
};

bool IsFloat(DataType type) {
  return type != DataType::kInt8 && type != DataType::kUInt8 && type != DataType::kInt16 &&
         type != DataType::kInt32 && type != DataType::kInt64 && type != DataType::kBool;
}

bool HasFloats(const Interpreter& interpreter) {
  for (int i = 0; i < interpreter.tensor_count(); ++i) {
    if (IsFloat(interpreter.tensor(i).type)) return true;
  }
  return false;
}

void FillInputs(Interpreter& interpreter, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < interpreter.inputs().size(); ++i) {
    const TensorView input = interpreter.input(static_cast<int>(i));
    const auto values = DrawValues({.type = input.type, .shape = input.shape}, random);
    const bool fits = input.data != nullptr && !input.constant && values.size() == input.bytes;
    if (fits && !values.empty()) std::memcpy(input.data, values.data(), values.size());
  }
}

// The interpreter after a run, or null where something was refused.
std::unique_ptr<Interpreter> Run(const std::shared_ptr<const Model>& model,
                                 partitioner::Delegate* delegate, uint64_t seed) {
  InterpreterOptions options;
  options.budget = kBudget;
  auto interpreter = Interpreter::Create(model, options);
  if (!interpreter.ok()) return nullptr;
  if (delegate != nullptr && !(*interpreter)->ApplyDelegate(delegate->c_struct()).ok()) {
    return nullptr;
  }
  if (!(*interpreter)->AllocateTensors().ok()) return nullptr;
  FillInputs(**interpreter, seed);
  return (*interpreter)->Invoke().ok() ? *std::move(interpreter) : nullptr;
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  Random random(bytes);
  partitioner::Options options;
  options.isa = random.Chance(0.8) ? DetectIsa() : Isa::kScalar;
  options.jit = random.Chance(0.8);
  options.num_threads = random.Chance(0.8) ? 1 : 2;
  options.budget = kBudget;
  const std::vector<std::byte> file = ModelGrower(random).Grow();
  const auto model = LoadModelFromMemory(file, nullptr);
  if (!model.ok()) return;
  for (const ModelSubgraph& graph : (*model)->subgraphs) {
    for (const ModelTensor& tensor : graph.tensors) {
      if (tensor.shape.elements() > 1 << 20) return;  // a changed byte in a shape
    }
  }
  const auto expected = Run(*model, nullptr, 1);
  partitioner::Delegate delegate(options);
  const auto actual = Run(*model, &delegate, 1);
  if (expected == nullptr || actual == nullptr) return;
  const bool exact = !HasFloats(*expected);
  for (size_t i = 0; i < expected->outputs().size(); ++i) {
    const TensorView wanted = expected->output(static_cast<int>(i));
    const TensorView given = actual->output(static_cast<int>(i));
    EXPECT_EQ(wanted.shape, given.shape) << "output " << i;
    if (!exact || wanted.bytes != given.bytes || wanted.bytes == 0) continue;
    EXPECT_EQ(std::memcmp(wanted.data, given.data, wanted.bytes), 0)
        << "output " << i << " of " << expected->Plan().front();
  }
}

}  // namespace fuselite::fuzz
