#include "partitioner/host_call.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/tflite_arrays.h"
#include "runtime/tflite_builtin_codes.h"
#include "runtime/tflite_params.h"

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

Status HostCall::Prepare(TfLiteContext* context) {
  prepared_.clear();
  if (prepare_(context, &node_) != kTfLiteOk) return Internal("the host does not prepare it");
  for (int tensor : Elements(node_.inputs)) {
    const std::span<const int> dims = Elements(context->tensors[tensor].dims);
    prepared_.emplace_back(dims.begin(), dims.end());
  }
  return Status();
}

Status HostCall::Invoke(TfLiteContext* context) {
  if (!IsPrepared(context)) FUSELITE_RETURN_IF_ERROR(Prepare(context));
  return invoke_(context, &node_) == kTfLiteOk ? Status() : Internal("the host does not run it");
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
