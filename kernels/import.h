// Turns a host's tensors into descriptions: what the nodes of every host go through, LiteRT's as
// those of fuselite's own interpreter.
#pragma once

#include <span>
#include <vector>

#include "kernels/operator.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {

// Whose values are fixed when a node is described.
enum class Constants {
  kOfModel,   // what stands in the file
  kPrepared,  // what nodes that are prepared already have computed, too
};

// Describes one of the context's tensors with the shape that it has now. `data` is set for
// constants only, and stays valid as long as the host's graph; sparse constants have none before
// they are unpacked. kUnsupported for unknown types, quantizations and ranks; kInvalidArgument for
// those at odds with themselves. Messages go on from the tensor's name: "is quantized in blocks".
Result<TensorInfo> ImportTensor(const tflite::TfLiteContext& context,
                                const tflite::TfLiteTensor& tensor, Constants constants);

// Puts the operator of another form in the place of `*op`, which has `params`: LSTM has a basic
// one, of five inputs, whose states are variables or values that it only reads; FULLY_CONNECTED
// takes shuffled weights.
void TakeForm(std::span<const int> inputs, const Params& params,
              const tflite::TfLiteContext& context, const OperatorDef** op);

// Where one of the node's inputs is quantized in blocks: puts the operator that takes their scales
// in the place of `*op`, and the tensor that has them behind `inputs` (UseBlockScales).
// kUnsupported for zero points and for operators that take no scales, kInvalidArgument for scales
// that do not fit.
Status TakeBlockScales(const tflite::TfLiteContext& context, const OperatorDef** op,
                       std::vector<int>* inputs);

// Kernels write an operator's state in place; anything but a variable is not theirs to write.
// `inputs` are the node's: indices in the context, -1 for those left out.
Status CheckState(const OperatorDef& op, std::span<const int> inputs,
                  const tflite::TfLiteContext& context);

// The quantizations of values that never become tensors; `tensors` stand for them.
Result<std::vector<Quantization>> ImportIntermediates(const tflite::TfLiteContext& context,
                                                      std::span<const int> tensors);

}  // namespace fuselite::kernels
