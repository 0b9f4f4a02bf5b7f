// The loader of models: any bytes give a model or one line that says what is wrong. Where they give
// a model whose tensors are small, it is also planned and run, since everything behind the loader
// relies on what the loader checked.

#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "tests/fuzz/target.h"

namespace fuselite::fuzz {
namespace {

using namespace interpreter;

bool Small(const Model& model) {
  constexpr int64_t kMaxElements = 1 << 12;
  for (const ModelSubgraph& graph : model.subgraphs) {
    for (const ModelTensor& tensor : graph.tensors) {
      if (tensor.shape.elements() > kMaxElements) return false;
    }
    for (const ModelOperator& op : graph.operators) {
      if (!op.subgraphs.empty()) return false;  // a loop may be meant to be endless
    }
  }
  return true;
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  const auto model = LoadModelFromMemory(std::as_bytes(bytes), nullptr);
  if (!model.ok()) {
    EXPECT_FALSE(model.status().message().empty());
    EXPECT_EQ(model.status().message().find('\n'), std::string::npos);
    return;
  }
  if (!Small(**model)) return;
  InterpreterOptions options;
  options.budget = {.max_memory = 64 << 20, .max_multiply_adds = 1'000'000};
  const auto interpreter = Interpreter::Create(*model, options);
  if (!interpreter.ok()) return;
  if (!(*interpreter)->AllocateTensors().ok()) return;
  if (!(*interpreter)->Invoke().ok()) return;
}

}  // namespace fuselite::fuzz
