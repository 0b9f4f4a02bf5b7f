#include "kernels/evaluation.h"

#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {

bool ReadsShapesOnly(const OperatorDef& op) {
  return op.builtin_code == tflite::kTfLiteBuiltinShape ||
         op.builtin_code == tflite::kTfLiteBuiltinRank;
}

bool GivesConstants(const OperatorDef& op) {
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinRandomUniform:
    case tflite::kTfLiteBuiltinRandomStandardNormal:
    case tflite::kTfLiteBuiltinMultinomial: return false;
    default: return op.state_inputs.empty();
  }
}

double Cost(const OpDescription& op) {
  if (op.op->reshapes) return 0;
  if (op.op->cost != nullptr) return op.op->cost(op);
  return op.outputs.empty() ? 0.0 : static_cast<double>(op.outputs[0].elements());
}

}  // namespace fuselite::kernels
