#include "interpreter/resources.h"

#include <algorithm>
#include <array>

#include "interpreter/node_tensors.h"
#include "interpreter/op_resolver.h"
#include "interpreter/registration.h"
#include "interpreter/subgraph.h"
#include "runtime/support/is_index.h"
#include "runtime/tflite/params.h"

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteNode;
using tflite::TfLiteTensor;

Status CheckHandle(const TfLiteTensor& tensor) {
  const bool handle = tensor.type == tflite::kTfLiteResource || tensor.type == tflite::kTfLiteInt32;
  if (handle && tensor.bytes == sizeof(int32_t)) return Status();
  return InvalidArgument("its first input is no handle of a variable");
}

Status PrepareHandle(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 0, 1));
  const auto& params = *static_cast<const tflite::TfLiteVarHandleParams*>(node.builtin_data);
  TfLiteTensor& output = Output(graph, node);
  if (output.type != tflite::kTfLiteResource) return InvalidArgument("its output is no resource");
  graph.SetPersistent(output);
  FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(output, std::array{1}));
  output.data.i32[0] = graph.host().resources.IdOf(params.container, params.shared_name);
  return Status();
}

// The handle's value is there since it was prepared.
Status InvokeHandle(Subgraph&, const TfLiteNode&) { return Status(); }

// A shape of rank 0 may be one that the file does not know.
Status PrepareRead(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 1, 1));
  FUSELITE_RETURN_IF_ERROR(CheckHandle(Input(graph, node, 0)));
  TfLiteTensor& output = Output(graph, node);
  if (output.dims->size == 0) graph.SetDynamic(output);
  return Status();
}

Status InvokeRead(Subgraph& graph, const TfLiteNode& node) {
  const int id = Input(graph, node, 0).data.i32[0];
  const ResourceVariable* variable = graph.host().resources.Find(id);
  TfLiteTensor& output = Output(graph, node);
  if (variable == nullptr || variable->type == tflite::kTfLiteNoType) {
    return InvalidArgument("nothing was assigned to its variable");
  }
  if (variable->type != output.type) return InvalidArgument("its variable has another type");
  if (output.allocation_type == tflite::kTfLiteDynamic) {
    FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(output, variable->dims));
  }
  if (output.bytes != variable->size) {
    return InvalidArgument("its variable has ", variable->size, " bytes, its output ",
                           output.bytes);
  }
  std::copy_n(variable->bytes.as<const char>(), output.bytes, output.data.raw);
  return Status();
}

Status PrepareAssign(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 2, 0));
  return CheckHandle(Input(graph, node, 0));
}

Status InvokeAssign(Subgraph& graph, const TfLiteNode& node) {
  ResourceVariable* variable = graph.host().resources.Find(Input(graph, node, 0).data.i32[0]);
  if (variable == nullptr) return InvalidArgument("its handle names no variable");
  const TfLiteTensor& value = Input(graph, node, 1);
  if (variable->bytes.size() < value.bytes) {
    FUSELITE_RETURN_IF_ERROR(graph.CheckMemory(static_cast<double>(value.bytes)));
    AlignedBuffer memory(value.bytes);
    if (memory.data() == nullptr) {
      return OutOfMemory("no memory for a variable of ", value.bytes, " bytes");
    }
    variable->bytes = std::move(memory);
  }
  const auto dims = Elements(static_cast<const tflite::TfLiteIntArray*>(value.dims));
  variable->dims.assign(dims.begin(), dims.end());
  std::copy_n(value.data.raw, value.bytes, variable->bytes.as<char>());
  variable->size = value.bytes;
  variable->type = value.type;
  return Status();
}

int InitializerOf(const TfLiteNode& node) {
  return static_cast<const tflite::TfLiteCallOnceParams*>(node.builtin_data)->init_subgraph_index;
}

Status PrepareCallOnce(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 0, 0));
  const Subgraph& initializer = *graph.host().subgraphs[InitializerOf(node)];
  if (initializer.inputs().empty() && initializer.outputs().empty()) return Status();
  return InvalidArgument("subgraph ", initializer.index(), ", its initializer, has inputs");
}

Status InvokeCallOnce(Subgraph& graph, const TfLiteNode& node) {
  const int initializer = InitializerOf(node);
  Resources& resources = graph.host().resources;
  if (resources.IsInitialized(initializer)) return Status();
  Subgraph& callee = *graph.host().subgraphs[initializer];
  FUSELITE_RETURN_IF_ERROR(callee.AllocateTensors());
  FUSELITE_RETURN_IF_ERROR(callee.Invoke());
  resources.SetInitialized(initializer);
  return Status();
}

}  // namespace

int Resources::IdOf(const std::string& container, const std::string& name) {
  const auto known = ids_.find({container, name});
  if (known != ids_.end()) return known->second;
  const auto id = static_cast<int>(variables_.size());
  // Before its name, so that no name stands for a variable that there was no memory for.
  variables_.push_back(std::make_unique<ResourceVariable>());
  ids_.emplace(std::pair(container, name), id);
  return id;
}

double Resources::bytes() const {
  double bytes = 0;
  for (const auto& variable : variables_) bytes += static_cast<double>(variable->bytes.size());
  for (const auto& [id, table] : tables_) bytes += static_cast<double>(table.bytes);
  return bytes;
}

ResourceVariable* Resources::Find(int id) {
  return IsIndex(id, variables_.size()) ? variables_[id].get() : nullptr;
}

void AddResources(OpResolver& resolver) {
  resolver.AddBuiltin(tflite::kTfLiteBuiltinVarHandle, Registration<PrepareHandle, InvokeHandle>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinReadVariable, Registration<PrepareRead, InvokeRead>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinAssignVariable,
                      Registration<PrepareAssign, InvokeAssign>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinCallOnce,
                      Registration<PrepareCallOnce, InvokeCallOnce>());
}

}  // namespace fuselite::interpreter
