#include "interpreter/interpreter.h"

#include <algorithm>

#include "interpreter/strings.h"
#include "kernels/import.h"
#include "runtime/support/caught.h"
#include "runtime/support/is_index.h"
#include "runtime/support/printable.h"

namespace fuselite::interpreter {
namespace {

int FindIn(const std::vector<SignatureTensor>& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &SignatureTensor::name);
  return found == tensors.end() ? -1 : found->tensor;
}

// Which subgraphs run where `main` does: it, and those that its operators run.
std::vector<bool> RunFrom(const Model& model, int main) {
  std::vector<bool> runs(model.subgraphs.size());
  std::vector<int> open = {main};
  while (!open.empty()) {
    const int graph = open.back();
    open.pop_back();
    if (runs[graph]) continue;
    runs[graph] = true;
    for (const ModelOperator& op : model.subgraphs[graph].operators) {
      open.insert(open.end(), op.subgraphs.begin(), op.subgraphs.end());
    }
  }
  return runs;
}

}  // namespace

Result<std::unique_ptr<Interpreter>> Interpreter::Create(std::shared_ptr<const Model> model,
                                                         const InterpreterOptions& options) {
  return Guarded("creating the interpreter", [&]() -> Result<std::unique_ptr<Interpreter>> {
    std::unique_ptr<Interpreter> interpreter(new Interpreter());
    SubgraphHost& host = interpreter->host_;
    host.model = std::move(model);
    host.num_threads = options.num_threads;
    host.preserve_all_tensors = options.preserve_all_tensors;
    host.cluster_partitions = options.cluster_partitions;
    host.budget = options.budget;
    FUSELITE_RETURN_IF_ERROR(interpreter->ChooseMain(options.signature));
    static const OpResolver kBuiltins = OpResolver::WithBuiltins();
    const OpResolver& resolver = options.resolver ? *options.resolver : kBuiltins;
    const std::vector<bool> runs = RunFrom(*host.model, interpreter->main_);
    for (size_t i = 0; i < host.model->subgraphs.size(); ++i) {
      FUSELITE_ASSIGN_OR_RETURN(auto graph,
                                Subgraph::Build(host, static_cast<int>(i), resolver, runs[i]));
      host.subgraphs.push_back(std::move(graph));
    }
    return interpreter;
  });
}

Status Interpreter::ChooseMain(const std::string& signature) {
  const std::vector<Signature>& all = model().signatures;
  const auto found = signature.empty() ? std::ranges::find(all, 0, &Signature::subgraph)
                                       : std::ranges::find(all, signature, &Signature::key);
  if (found != all.end()) {
    signature_ = &*found;
    main_ = found->subgraph;
    return Status();
  }
  if (signature.empty()) return Status();
  std::string keys;
  for (const Signature& one : all) keys += (keys.empty() ? "" : ", ") + Printable(one.key);
  return NotFound("the model has no signature '", Printable(signature), "'; ",
                  keys.empty() ? "it has none" : "it has " + keys);
}

Interpreter::~Interpreter() {
  // Delegates' kernels may look into other subgraphs while they are freed.
  for (auto& graph : host_.subgraphs) graph->RemoveDelegates();
}

TensorView Interpreter::tensor(int index) const {
  const Subgraph& graph = main();
  const tflite::TfLiteTensor& tensor = graph.tensor(index);
  TensorView view;
  view.index = index;
  view.name = tensor.name ? tensor.name : "";
  view.data = tensor.data.data;
  view.bytes = tensor.bytes;
  view.constant = tensor.allocation_type == tflite::kTfLiteMmapRo;
  view.is_variable = tensor.is_variable;
  if (const auto info =
          kernels::ImportTensor(graph.context(), tensor, kernels::Constants::kPrepared);
      info.ok()) {
    view.type = info->type;
    view.shape = info->shape;
    view.quantization = info->quantization;
  }
  const auto signature = tflite::Elements(tensor.dims_signature);
  view.shape_signature.assign(signature.begin(), signature.end());
  return view;
}

int Interpreter::FindTensor(std::string_view name) const {
  const auto& tensors = main().model().tensors;
  const auto found = std::ranges::find(tensors, name, &ModelTensor::name);
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

const Signature* Interpreter::FindSignature(std::string_view key) const {
  const auto& signatures = model().signatures;
  const auto found = std::ranges::find(signatures, key, &Signature::key);
  return found == signatures.end() ? nullptr : &*found;
}

int Interpreter::FindInput(const Signature& signature, std::string_view name) {
  return FindIn(signature.inputs, name);
}

int Interpreter::FindOutput(const Signature& signature, std::string_view name) {
  return FindIn(signature.outputs, name);
}

Status Interpreter::ResizeInput(int i, std::span<const int32_t> dims) {
  return Guarded("resizing an input", [&]() -> Status {
    if (!IsIndex(i, inputs().size())) {
      return InvalidArgument("there is no input ", i, ", the model has ", inputs().size());
    }
    return main().ResizeInput(inputs()[i], dims);
  });
}

Status Interpreter::AllocateTensors() {
  return Guarded("allocating tensors", [&] { return main().AllocateTensors(); });
}

Status Interpreter::SetStrings(int i, std::span<const std::byte> table) {
  return Guarded("setting strings", [&]() -> Status {
    tflite::TfLiteTensor& tensor = main().tensor(inputs()[i]);
    const Shape shape = input(i).shape;
    FUSELITE_ASSIGN_OR_RETURN(const auto given, ReadStringTable(table, shape.elements()));
    const std::vector<std::string> strings(given.begin(), given.end());
    const std::vector<int> dims(shape.dims().begin(), shape.dims().end());
    return WriteStrings(main(), tensor, strings, dims);
  });
}

Status Interpreter::Invoke() {
  Status status = Guarded("invoking", [&] { return main().Invoke(); });
  host_.cancelled = false;
  return status;
}

Status Interpreter::ShareMemory(int input, int output) {
  const tflite::TfLiteTensor& from = main().tensor(inputs()[input]);
  tflite::TfLiteTensor& to = main().tensor(outputs()[output]);
  if (!main().ready() || to.allocation_type != tflite::kTfLiteArenaRw || from.bytes != to.bytes) {
    return Unsupported("input ", input, " and output ", output, " cannot share memory");
  }
  to.data.raw = from.data.raw;
  return Status();
}

void Interpreter::ResetVariables() {
  for (auto& graph : host_.subgraphs) graph->ResetVariables();
}

Status Interpreter::ApplyDelegate(tflite::TfLiteDelegate* delegate) {
  return Guarded("applying the delegate", [&]() -> Status {
    for (auto& graph : host_.subgraphs) {
      Status status = graph->ApplyDelegate(delegate);
      if (status.ok()) continue;
      FUSELITE_RETURN_IF_ERROR(RemoveDelegates());
      return status;
    }
    return Status();
  });
}

Status Interpreter::RemoveDelegates() {
  return Guarded("removing the delegates", [&]() -> Status {
    for (auto& graph : host_.subgraphs) {
      const bool was_ready = graph->ready();
      graph->RemoveDelegates();
      if (was_ready) FUSELITE_RETURN_IF_ERROR(graph->AllocateTensors());
    }
    return Status();
  });
}

std::vector<std::string> Interpreter::Plan() const {
  std::vector<std::string> names;
  for (int index : main().plan()) names.push_back(main().node(index).name);
  return names;
}

void Interpreter::SetProfiling(bool on) {
  host_.events = on ? std::make_unique<std::vector<NodeEvent>>() : nullptr;
}

std::vector<NodeEvent> Interpreter::TakeEvents() {
  return host_.events ? std::exchange(*host_.events, {}) : std::vector<NodeEvent>();
}

}  // namespace fuselite::interpreter
