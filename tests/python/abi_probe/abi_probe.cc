// A delegate that writes down what it reads of its host's graph, for tests/python/test_abi.py.
// Options:
//   output   the text file to write
//   claim    "none", or "add": also take over float32 ADD operators and compute them here
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/tflite/abi.h"
#include "runtime/tflite/arrays.h"

using namespace fuselite::tflite;  // NOLINT(google-build-using-namespace): a test program of one
                                   // file

namespace {

struct Probe {
  TfLiteDelegate delegate{};
  std::string output;
  bool claim_add = false;
  FILE* file = nullptr;
};

void PrintInts(FILE* file, const char* name, const TfLiteIntArray* array) {
  std::fprintf(file, " %s=", name);
  if (array == nullptr) std::fprintf(file, "null");
  for (int i = 0; array != nullptr && i < array->size; ++i) {
    std::fprintf(file, "%s%d", i ? "," : "", array->data[i]);
  }
}

void DumpTensor(FILE* file, int index, const TfLiteTensor& tensor) {
  std::fprintf(file, "tensor %d type=%d bytes=%zu allocation=%d variable=%d", index, tensor.type,
               tensor.bytes, tensor.allocation_type, tensor.is_variable);
  PrintInts(file, "dims", tensor.dims);
  PrintInts(file, "signature", tensor.dims_signature);
  std::fprintf(file, " scale=%.9g zero_point=%d", tensor.params.scale, tensor.params.zero_point);
  if (tensor.quantization.type == kTfLiteAffineQuantization) {
    auto* affine = static_cast<const TfLiteAffineQuantization*>(tensor.quantization.params);
    std::fprintf(file, " scales=");
    for (int i = 0; i < affine->scale->size; ++i) {
      std::fprintf(file, "%s%.9g", i ? "," : "", affine->scale->data[i]);
    }
    PrintInts(file, "zero_points", affine->zero_point);
    std::fprintf(file, " axis=%d", affine->quantized_dimension);
  }
  std::fprintf(file, " name=%s\n", tensor.name ? tensor.name : "");
}

void DumpParams(FILE* file, int code, int version, const void* data) {
  if (data == nullptr) return;
  switch (code) {
    case kTfLiteBuiltinConv2d: {
      auto& p = *static_cast<const TfLiteConvParams*>(data);
      std::fprintf(file, " padding=%d stride=%d,%d activation=%d dilation=%d,%d", p.padding,
                   p.stride_width, p.stride_height, p.activation, p.dilation_width_factor,
                   p.dilation_height_factor);
      if (version >= 8) std::fprintf(file, " bias_type=%d", p.quantized_bias_type);
      break;
    }
    case kTfLiteBuiltinDepthwiseConv2d: {
      auto& p = *static_cast<const TfLiteDepthwiseConvParams*>(data);
      std::fprintf(file, " padding=%d stride=%d,%d multiplier=%d activation=%d", p.padding,
                   p.stride_width, p.stride_height, p.depth_multiplier, p.activation);
      break;
    }
    case kTfLiteBuiltinAveragePool2d:
    case kTfLiteBuiltinMaxPool2d: {
      auto& p = *static_cast<const TfLitePoolParams*>(data);
      std::fprintf(file, " padding=%d stride=%d,%d filter=%d,%d activation=%d", p.padding,
                   p.stride_width, p.stride_height, p.filter_width, p.filter_height, p.activation);
      break;
    }
    case kTfLiteBuiltinFullyConnected: {
      auto& p = *static_cast<const TfLiteFullyConnectedParams*>(data);
      std::fprintf(file, " activation=%d format=%d keep_num_dims=%d", p.activation,
                   p.weights_format, p.keep_num_dims);
      break;
    }
    case kTfLiteBuiltinSoftmax:
      std::fprintf(file, " beta=%g", static_cast<const TfLiteSoftmaxParams*>(data)->beta);
      break;
    case kTfLiteBuiltinAdd:
      std::fprintf(file, " activation=%d", static_cast<const TfLiteAddParams*>(data)->activation);
      break;
    case kTfLiteBuiltinReshape: {
      auto& p = *static_cast<const TfLiteReshapeParams*>(data);
      std::fprintf(file, " shape=");
      for (int i = 0; i < p.num_dimensions; ++i)
        std::fprintf(file, "%s%d", i ? "," : "", p.shape[i]);
      break;
    }
    default: break;
  }
}

// A delegate kernel that adds its operators one after the other; all are float32 of equal shapes.
struct AddKernel {
  std::vector<std::array<int, 4>> adds;  // two inputs, an output, the fused activation
};

void* InitAdds(TfLiteContext* context, const char* buffer, size_t) {
  auto* params = reinterpret_cast<const TfLiteDelegateParams*>(buffer);
  auto kernel = std::make_unique<AddKernel>();
  auto* probe = static_cast<Probe*>(params->delegate->data_);
  std::fprintf(probe->file, "partition");
  PrintInts(probe->file, "nodes", params->nodes_to_replace);
  PrintInts(probe->file, "inputs", params->input_tensors);
  PrintInts(probe->file, "outputs", params->output_tensors);
  std::fprintf(probe->file, "\n");
  for (int index : Elements(params->nodes_to_replace)) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk) break;
    const int activation = static_cast<const TfLiteAddParams*>(node->builtin_data)->activation;
    kernel->adds.push_back(
        {node->inputs->data[0], node->inputs->data[1], node->outputs->data[0], activation});
  }
  return kernel.release();
}

void FreeAdds(TfLiteContext*, void* kernel) { delete static_cast<AddKernel*>(kernel); }

TfLiteStatus PrepareAdds(TfLiteContext*, TfLiteNode*) { return kTfLiteOk; }

TfLiteStatus InvokeAdds(TfLiteContext* context, TfLiteNode* node) {
  for (const auto& [a, b, sum, activation] : static_cast<AddKernel*>(node->user_data)->adds) {
    const TfLiteTensor& output = context->tensors[sum];
    for (size_t i = 0; i < output.bytes / sizeof(float); ++i) {
      const float value = context->tensors[a].data.f[i] + context->tensors[b].data.f[i];
      output.data.f[i] = activation == kTfLiteActRelu ? std::max(value, 0.0f) : value;
    }
  }
  return kTfLiteOk;
}

bool IsPlainAdd(const TfLiteContext* context, const TfLiteNode& node,
                const TfLiteRegistration& registration) {
  if (registration.builtin_code != kTfLiteBuiltinAdd || node.builtin_data == nullptr) return false;
  const int activation = static_cast<const TfLiteAddParams*>(node.builtin_data)->activation;
  if (activation != kTfLiteActNone && activation != kTfLiteActRelu) return false;
  const TfLiteTensor& a = context->tensors[node.inputs->data[0]];
  const TfLiteTensor& b = context->tensors[node.inputs->data[1]];
  return a.type == kTfLiteFloat32 && b.type == kTfLiteFloat32 && a.bytes == b.bytes;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  auto& probe = *static_cast<Probe*>(delegate->data_);
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  const std::vector<int> nodes(plan->data, plan->data + plan->size);
  std::vector<int> claimed;
  std::fprintf(probe.file, "context tensors=%zu threads=%d\n", context->tensors_size,
               context->recommended_num_threads);
  for (int index : nodes) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk) {
      return kTfLiteError;
    }
    std::fprintf(probe.file, "node %d code=%d version=%d", index, registration->builtin_code,
                 registration->version);
    PrintInts(probe.file, "inputs", node->inputs);
    PrintInts(probe.file, "outputs", node->outputs);
    DumpParams(probe.file, registration->builtin_code, registration->version, node->builtin_data);
    std::fprintf(probe.file, "\n");
    if (probe.claim_add && IsPlainAdd(context, *node, *registration)) claimed.push_back(index);
  }
  for (size_t i = 0; i < context->tensors_size; ++i) {
    DumpTensor(probe.file, static_cast<int>(i), context->tensors[i]);
  }
  TfLiteStatus status = kTfLiteOk;
  if (!claimed.empty()) {
    const IntArrayPtr array = MakeIntArray(claimed);
    TfLiteRegistration kernel{};
    kernel.init = InitAdds;
    kernel.free = FreeAdds;
    kernel.prepare = PrepareAdds;
    kernel.invoke = InvokeAdds;
    kernel.builtin_code = kTfLiteBuiltinDelegate;
    kernel.custom_name = "AbiProbe";
    kernel.version = 1;
    status = context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, array.get(), delegate);
  }
  std::fflush(probe.file);
  return status;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) TfLiteDelegate* tflite_plugin_create_delegate(
    char** keys, char** values, size_t count, void (*report_error)(const char*)) {
  auto probe = std::make_unique<Probe>();
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(keys[i], "output") == 0) probe->output = values[i];
    if (std::strcmp(keys[i], "claim") == 0) probe->claim_add = std::strcmp(values[i], "add") == 0;
  }
  probe->file = std::fopen(probe->output.c_str(), "w");
  if (probe->file == nullptr) {
    report_error(("abi_probe: cannot write the file of option output: " + probe->output).c_str());
    return nullptr;
  }
  probe->delegate.data_ = probe.get();
  probe->delegate.Prepare = Prepare;
  return &probe.release()->delegate;
}

extern "C" __attribute__((visibility("default"))) void tflite_plugin_destroy_delegate(
    TfLiteDelegate* delegate) {
  auto* probe = static_cast<Probe*>(delegate->data_);
  std::fclose(probe->file);
  delete probe;
}
