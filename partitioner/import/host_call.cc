#include "partitioner/import/host_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "partitioner/import/host_memory.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/builtin_codes.h"
#include "runtime/tflite/params.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// How often it turns, and what shapes that gives, is never known before.
const kernels::OperatorDef& Definition(int code) {
  const auto define = [](std::string_view name, int of) {
    kernels::OperatorDef def;
    def.name = name;
    def.builtin_code = of;
    def.max_inputs = def.max_outputs = -1;
    def.infer = [](kernels::OpDescription&) {
      return DynamicShape("what its subgraphs give is known at run time");
    };
    return def;
  };
  static const kernels::OperatorDef kWhile = define("WHILE", kTfLiteBuiltinWhile);
  static const kernels::OperatorDef kIf = define("IF", kTfLiteBuiltinIf);
  return code == kTfLiteBuiltinIf ? kIf : kWhile;
}

// Resources, variants and strings are the host's to hand on.
Status CheckTensors(const TfLiteContext& context, std::span<const int> tensors) {
  for (int tensor : tensors) {
    FUSELITE_RETURN_IF_ERROR(ImportHostTensor(context, tensor).status());
  }
  return Status();
}

// What the host's kernel gave back. It has reported its reason, and told the kind of the error.
Status OfHost(TfLiteStatus code, const char* failed) {
  if (code == kTfLiteOk) return Status();
  if (code == kTfLiteCancelled) return Status(StatusCode::kCancelled, "the invoke was cancelled");
  return Internal(failed);
}

// Gives output `to` the shape that input `from` has.
Status ShapeAs(TfLiteContext* context, int from, int to) {
  FUSELITE_ASSIGN_OR_RETURN(const TensorInfo info, ImportHostTensor(*context, from));
  return Resize(context, to, info.shape);
}

}  // namespace

Result<std::shared_ptr<HostCall>> HostCall::Take(const TfLiteNode& node,
                                                 const TfLiteRegistration& registration) {
  if (registration.prepare == nullptr || registration.invoke == nullptr) {
    return Unsupported("the host does not show the kernel that runs its subgraphs");
  }
  std::shared_ptr<HostCall> call(new HostCall);
  TfLiteNode& own = call->node_;
  own.inputs = MakeIntArray(Elements(node.inputs)).release();
  own.outputs = MakeIntArray(Elements(node.outputs)).release();
  own.intermediates = MakeIntArray({}).release();
  own.temporaries = MakeIntArray({}).release();
  if (own.inputs == nullptr || own.outputs == nullptr || own.intermediates == nullptr ||
      own.temporaries == nullptr) {
    return OutOfMemory("no memory for a node");
  }
  const std::span<const int> outputs = Elements(node.outputs);
  call->outputs_.assign(outputs.begin(), outputs.end());
  own.user_data = node.user_data;
  own.builtin_data = node.builtin_data;
  call->prepare_ = registration.prepare;
  call->invoke_ = registration.invoke;
  return call;
}

HostCall::~HostCall() {
  for (TfLiteIntArray* array :
       {node_.inputs, node_.outputs, node_.intermediates, node_.temporaries}) {
    std::free(array);
  }
}

std::array<int, 2> HostCall::subgraphs() const {
  // The structs of both are two indices of subgraphs.
  static_assert(sizeof(TfLiteWhileParams) == sizeof(TfLiteIfParams));
  const auto& params = *static_cast<const TfLiteWhileParams*>(node_.builtin_data);
  return {params.cond_subgraph_index, params.body_subgraph_index};
}

bool HostCall::IsPrepared(const TfLiteContext* context) const {
  return std::ranges::equal(
      Elements(node_.inputs), prepared_, [&](int tensor, const std::vector<int>& shape) {
        return std::ranges::equal(Elements(context->tensors[tensor].dims), shape);
      });
}

Status HostCall::ShapeHandedOn(TfLiteContext* context) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (node_.outputs->data[i] == outputs_[i]) continue;
    const TfLiteTensor& input = context->tensors[node_.inputs->data[i]];
    TfLiteTensor& output = context->tensors[outputs_[i]];
    if (input.allocation_type == kTfLiteDynamic && output.allocation_type != kTfLiteDynamic) {
      output.allocation_type = kTfLiteDynamic;
      output.data.data = nullptr;
    }
    FUSELITE_RETURN_IF_ERROR(ShapeAs(context, node_.inputs->data[i], outputs_[i]));
  }
  return Status();
}

Status HostCall::CopyHandedOn(TfLiteContext* context) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (node_.outputs->data[i] == outputs_[i]) continue;
    const TfLiteTensor& input = context->tensors[node_.inputs->data[i]];
    TfLiteTensor& output = context->tensors[outputs_[i]];
    // It may have become dynamic since it was given a shape, with others whose shapes change.
    if (output.allocation_type == kTfLiteDynamic) {
      FUSELITE_RETURN_IF_ERROR(ShapeAs(context, node_.inputs->data[i], outputs_[i]));
    }
    if (output.data.data == nullptr || input.bytes == 0) continue;  // nobody reads it
    if (output.bytes != input.bytes) {
      return Internal("the host gives tensor ", outputs_[i], " ", output.bytes, " bytes of ",
                      input.bytes);
    }
    std::memcpy(output.data.data, input.data.data, input.bytes);
  }
  return Status();
}

Status HostCall::Prepare(TfLiteContext* context) {
  prepared_.clear();
  FUSELITE_RETURN_IF_ERROR(OfHost(prepare_(context, &node_), "the host does not prepare it"));
  FUSELITE_RETURN_IF_ERROR(ShapeHandedOn(context));
  for (int tensor : Elements(node_.inputs)) {
    const std::span<const int> dims = Elements(context->tensors[tensor].dims);
    prepared_.emplace_back(dims.begin(), dims.end());
  }
  return Status();
}

Status HostCall::Invoke(TfLiteContext* context) {
  if (!IsPrepared(context)) FUSELITE_RETURN_IF_ERROR(Prepare(context));
  FUSELITE_RETURN_IF_ERROR(OfHost(invoke_(context, &node_), "the host does not run it"));
  return CopyHandedOn(context);
}

Status ImportHostCall(const TfLiteContext& context, const TfLiteNode& node,
                      const TfLiteRegistration& registration, bool whole_structs,
                      ImportedNode& imported) {
  if (!whole_structs) return Unsupported("the host does not show its subgraphs");
  if (node.builtin_data == nullptr) return InvalidArgument("has no options");
  FUSELITE_RETURN_IF_ERROR(CheckTensors(context, Elements(node.inputs)));
  FUSELITE_RETURN_IF_ERROR(CheckTensors(context, Elements(node.outputs)));
  FUSELITE_ASSIGN_OR_RETURN(imported.host_call, HostCall::Take(node, registration));
  imported.op = &Definition(registration.builtin_code);
  return Status();
}

}  // namespace fuselite::partitioner
