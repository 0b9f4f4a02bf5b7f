// The operators of kernels/ behind TfLiteRegistration: prepare runs the shape rule and builds the
// reference kernel, invoke binds pointers and runs it.
#pragma once

#include "interpreter/file/model.h"
#include "kernels/operator.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

// The functions. `user_data` of the node is to be NewBuiltinOp()'s result; they free it.
tflite::TfLiteRegistration BuiltinRegistration(const kernels::OperatorDef& def, int version);
void* NewBuiltinOp(const kernels::OperatorDef& def, int version);

// The TfLite*Params of `op`, malloc'ed; null where the operator has none.
void* MakeBuiltinData(const ModelOperator& op);

}  // namespace fuselite::interpreter
