// libFuzzer: any bytes give a model or one line that says what is wrong. Where they give a model
// whose tensors are small, it is also planned and run, since everything behind the loader relies on
// what the loader checked.
//
//   loader_fuzz -max_len=4096 CORPUS_FOLDER

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "interpreter/interpreter.h"

namespace fuselite::interpreter {
namespace {

void Check(bool holds) {
  if (!holds) std::abort();  // what libFuzzer reports as a finding
}

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

void Fuzz(std::span<const std::byte> bytes) {
  const auto model = LoadModelFromMemory(bytes, nullptr);
  if (!model.ok()) {
    Check(!model.status().message().empty());
    Check(model.status().message().find('\n') == std::string::npos);
    return;
  }
  if (!Small(**model)) return;
  const auto interpreter = Interpreter::Create(*model);
  if (!interpreter.ok()) return;
  if (!(*interpreter)->AllocateTensors().ok()) return;
  if (!(*interpreter)->Invoke().ok()) return;
}

}  // namespace
}  // namespace fuselite::interpreter

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuselite::interpreter::Fuzz(std::as_bytes(std::span(data, size)));
  return 0;
}
