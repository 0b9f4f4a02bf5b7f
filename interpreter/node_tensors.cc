#include "interpreter/node_tensors.h"

#include <algorithm>

namespace fuselite::interpreter {

Status CheckCounts(const tflite::TfLiteNode& node, int inputs, int outputs) {
  const auto given = tflite::Elements(node.inputs);
  if (static_cast<int>(given.size()) == inputs && node.outputs->size == outputs &&
      std::ranges::none_of(given, [](int tensor) { return tensor < 0; })) {
    return Status();
  }
  return InvalidArgument("has ", given.size(), " inputs and ", node.outputs->size,
                         " outputs, expected ", inputs, " and ", outputs);
}

}  // namespace fuselite::interpreter
