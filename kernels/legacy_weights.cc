#include "kernels/legacy_weights.h"

#include <algorithm>

#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {
namespace {

// Operators whose weights old converters quantized; the recurrent ones that know of uint8
// themselves are not among them.
bool MayHaveLegacyWeights(const OperatorDef& op) {
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinConv2d:
    case tflite::kTfLiteBuiltinFullyConnected:
    case tflite::kTfLiteBuiltinLstm:
    case tflite::kTfLiteBuiltinUnidirectionalSequenceLstm:
    case tflite::kTfLiteBuiltinBidirectionalSequenceLstm: return true;
    default: return false;
  }
}

}  // namespace

void ReadLegacyWeights(OpDescription& op) {
  if (!MayHaveLegacyWeights(*op.op) || op.inputs.empty()) return;
  if (op.inputs[0].type != DataType::kFloat32) return;
  // Several weights have one type.
  const auto is_int8 = [](const TensorInfo& info) { return info.type == DataType::kInt8; };
  if (std::ranges::any_of(op.inputs, is_int8)) return;
  for (TensorInfo& info : op.inputs) {
    if (info.type != DataType::kUInt8 || info.quantization.empty()) continue;
    info.type = DataType::kInt8;
    info.quantization = {{info.quantization.scale()}, {0}};
  }
}

}  // namespace fuselite::kernels
