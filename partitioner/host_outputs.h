// The outputs of a partition as tensors of the host.
#pragma once

#include "partitioner/constants.h"
#include "runtime/status.h"
#include "runtime/tflite_abi.h"

namespace fuselite::partitioner {

Status Resize(tflite::TfLiteContext* context, int tensor, const Shape& shape);

// kInternal where the host has given the tensor too little memory.
Status CopyTo(tflite::TfLiteTensor& tensor, const ConstantOutput& constant);

bool IsMemoryOfTheUser(const tflite::TfLiteTensor& tensor);

// Shows a constant output to the host as its own kernels do: what is known when preparing lies in
// memory of the tensor's own, where whoever prepares later finds it. Memory that the user has given
// is filled at each run.
Status Publish(tflite::TfLiteContext* context, const ConstantOutput& constant);

}  // namespace fuselite::partitioner
