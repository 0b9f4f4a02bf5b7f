// Models with custom operators, through the shared libraries, as an application has them.
#pragma once

#include "fuselite/custom_operators.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fuselite/delegate.h"
#include "fuselite/interpreter.h"
#include "interpreter/file/writer.h"

namespace fuselite::interpreter::testing {

template <auto function>
struct Calls {
  void operator()(auto* object) const { function(object); }
};
using OperatorPtr = std::unique_ptr<TfLiteOperator, Calls<TfLiteOperatorDelete>>;
using ModelPtr = std::unique_ptr<FuseliteModel, Calls<FuseliteModelDelete>>;
using InterpreterPtr = std::unique_ptr<FuseliteInterpreter, Calls<FuseliteInterpreterDelete>>;
using DelegatePtr = std::unique_ptr<struct TfLiteDelegate, Calls<FuseliteDelegateDelete>>;

inline OperatorPtr MakeOperator(const char* name,
                                TfLiteStatus (*prepare)(TfLiteOpaqueContext*, TfLiteOpaqueNode*),
                                TfLiteStatus (*invoke)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  OperatorPtr op(TfLiteOperatorCreate(kTfLiteBuiltinCustom, name, 1, nullptr));
  TfLiteOperatorSetPrepare(op.get(), prepare);
  TfLiteOperatorSetInvoke(op.get(), invoke);
  return op;
}

inline const float* Floats(const TfLiteOpaqueTensor* tensor) {
  return static_cast<const float*>(TfLiteOpaqueTensorData(tensor));
}
inline float* Floats(TfLiteOpaqueTensor* tensor) {
  return static_cast<float*>(TfLiteOpaqueTensorData(tensor));
}
inline int Elements(const TfLiteOpaqueTensor* tensor) {
  return static_cast<int>(TfLiteOpaqueTensorByteSize(tensor) / sizeof(float));
}

inline TfLiteStatus Resize(TfLiteOpaqueContext* context, TfLiteOpaqueTensor* tensor, int length) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
  shape->data[0] = length;
  return TfLiteOpaqueContextResizeTensor(context, tensor, shape);
}

// The output has the shape of the input, a vector of floats.
inline TfLiteStatus PrepareLikeInput(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorNumDims(input), 1);
  TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, TfLiteOpaqueTensorType(input), kTfLiteFloat32);
  return Resize(context, TfLiteOpaqueNodeGetOutput(context, node, 0),
                TfLiteOpaqueTensorDim(input, 0));
}

// A vector that is fed through operators of which some are custom ones, the output last.
class Chain {
 public:
  explicit Chain(int length) : length_(length) {
    last_ = writer_.AddTensor({"x", DataType::kFloat32, Shape{length}, {}, {}, false, {-1}});
    writer_.SetInputs({last_});
  }
  // y = y + value, which the delegate takes.
  Chain& Add(float value) {
    const int constant =
        writer_.AddConstant("value", DataType::kFloat32, Shape{1}, std::vector<float>{value});
    const int sum = writer_.AddTensor("sum", DataType::kFloat32, Shape{length_});
    writer_.AddOperator(*kernels::FindOperator("ADD"), {last_, constant}, {sum});
    last_ = sum;
    return *this;
  }
  Chain& Custom(const std::string& name, std::vector<std::byte> options = {},
                std::vector<int> more_inputs = {}) {
    more_inputs.insert(more_inputs.begin(), last_);
    last_ = writer_.AddTensor(name + " of it", DataType::kFloat32, Shape{length_});
    writer_.AddCustomOperator(name, std::move(options), std::move(more_inputs), {last_});
    return *this;
  }
  ModelPtr Load() {
    writer_.SetOutputs({last_});
    const std::vector<std::byte> bytes = writer_.Finish();
    return ModelPtr(FuseliteModelLoadMemory(bytes.data(), bytes.size()));
  }

 private:
  ModelWriter writer_;
  int length_, last_;
};

inline InterpreterPtr Open(const ModelPtr& model,
                           const std::vector<const TfLiteOperator*>& operators) {
  FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
  options.operators = operators.data();
  options.operator_count = operators.size();
  options.num_threads = 2;
  return InterpreterPtr(FuseliteInterpreterCreate(model.get(), &options));
}

// What the model gives; empty, with the reason as a failure, where it cannot run.
inline std::vector<float> RunOn(const InterpreterPtr& interpreter, const std::vector<float>& x) {
  const auto length = static_cast<int32_t>(x.size());
  FuseliteTensor output;
  const bool ran =
      interpreter != nullptr &&
      FuseliteInterpreterResizeInput(interpreter.get(), 0, &length, 1) == kFuseliteOk &&
      FuseliteInterpreterAllocate(interpreter.get()) == kFuseliteOk &&
      FuseliteInterpreterCopyIn(interpreter.get(), 0, x.data(), x.size() * sizeof(float)) ==
          kFuseliteOk &&
      FuseliteInterpreterInvoke(interpreter.get()) == kFuseliteOk &&
      FuseliteInterpreterTensor(interpreter.get(), FuseliteInterpreterOutput(interpreter.get(), 0),
                                &output) == kFuseliteOk;
  EXPECT_TRUE(ran) << FuseliteLastError();
  if (!ran) return {};
  const auto* data = static_cast<const float*>(output.data);
  return {data, data + output.bytes / sizeof(float)};
}

}  // namespace fuselite::interpreter::testing
