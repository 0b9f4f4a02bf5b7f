#include "partitioner/import/subgraphs.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

void KeepQuiet(TfLiteContext* /*context*/, const char* /*format*/, ...) {}

// Tensors that hold their values before the graph runs.
bool IsGiven(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteMmapRo || tensor.is_variable;
}

Result<TfLiteNode*> NodeAt(TfLiteContext* graph, int index,
                           TfLiteRegistration** its_registration = nullptr) {
  TfLiteNode* node = nullptr;
  TfLiteRegistration* registration = nullptr;
  if (graph->GetNodeAndRegistration(graph, index, &node, &registration) != kTfLiteOk ||
      node == nullptr || registration == nullptr) {
    return Unsupported("the host does not show node ", index, " of a subgraph");
  }
  if (its_registration != nullptr) *its_registration = registration;
  return node;
}

// The host's plan, whose array its next call overwrites.
Result<std::vector<int>> ExecutionPlan(TfLiteContext* graph) {
  TfLiteIntArray* plan = nullptr;
  if (graph->GetExecutionPlan(graph, &plan) != kTfLiteOk) {
    return Unsupported("the host does not show the plan of a subgraph");
  }
  const std::span<const int> elements = Elements(plan);
  return std::vector<int>(elements.begin(), elements.end());
}

bool SameKind(const TfLiteTensor& a, const TfLiteTensor& b) {
  return a.type == b.type && std::ranges::equal(Elements(a.dims), Elements(b.dims));
}

// Whether a converter has named the argument by its place: "odml.rms_norm.impl_arg1".
bool IsNamedByPlace(const TfLiteTensor& tensor, int place) {
  return tensor.name != nullptr &&
         std::string_view(tensor.name).ends_with(internal::Join("arg", place));
}

// Whether another order of the first `count` tensors would be taken as well.
bool HasExchangeableInputs(const TfLiteContext& graph, int count) {
  std::set<std::pair<TfLiteType, size_t>> kinds;
  bool alike = false, named = true;
  for (int i = 0; i < count; ++i) {
    const TfLiteTensor& tensor = graph.tensors[i];
    alike |= !kinds.insert({tensor.type, Elements(tensor.dims).size()}).second;
    named &= IsNamedByPlace(tensor, i);
  }
  return alike && !named;
}

}  // namespace

Result<HostSubgraph> HostSubgraph::Acquire(TfLiteContext* context, int index) {
  TfLiteContext* graph = nullptr;
  const auto report = context->ReportError;
  context->ReportError = KeepQuiet;
  const TfLiteStatus status = context->AcquireSubgraphContext(context, index, &graph);
  context->ReportError = report;
  if (status != kTfLiteOk || graph == nullptr) return Unsupported("there is no subgraph ", index);
  return HostSubgraph(context, index, graph);
}

HostSubgraph::~HostSubgraph() {
  // The host would close the subgraph that is being prepared, which it has opened itself.
  if (owner_ != nullptr && graph_ != owner_) owner_->ReleaseSubgraphContext(owner_, index_);
}

Result<std::vector<int>> HostSubgraph::Plan() const {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> shown, ExecutionPlan(graph_));
  std::vector<int> plan;
  for (int index : shown) {
    FUSELITE_ASSIGN_OR_RETURN(const TfLiteNode* const node, NodeAt(graph_, index));
    if (node->delegate == nullptr) {
      plan.push_back(index);
      continue;
    }
    const auto* params = static_cast<const TfLiteDelegateParams*>(node->builtin_data);
    if (params == nullptr) return Unsupported("a delegate has taken nodes of subgraph ", index_);
    const std::span<const int> nodes = Elements(params->nodes_to_replace);
    plan.insert(plan.end(), nodes.begin(), nodes.end());
  }
  return plan;
}

Result<std::vector<int>> HostSubgraph::BuiltinCodes() const {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, Plan());
  std::vector<int> codes;
  for (int index : plan) {
    TfLiteRegistration* registration = nullptr;
    FUSELITE_RETURN_IF_ERROR(NodeAt(graph_, index, &registration).status());
    codes.push_back(registration->builtin_code);
  }
  return codes;
}

Result<std::vector<int>> HostSubgraph::Inputs(int count) const {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, Plan());
  std::set<int> made, read;
  for (int index : plan) {
    FUSELITE_ASSIGN_OR_RETURN(const TfLiteNode* const node, NodeAt(graph_, index));
    for (int tensor : Elements(node->inputs)) read.insert(tensor);
    for (int tensor : Elements(node->outputs)) made.insert(tensor);
  }
  const auto size = static_cast<int>(graph_->tensors_size);
  const auto is_end = [&](int tensor) {
    return tensor < size && !made.contains(tensor) && !IsGiven(graph_->tensors[tensor]);
  };
  std::vector<int> inputs;
  for (int tensor = 0; tensor < count; ++tensor) {
    if (is_end(tensor)) inputs.push_back(tensor);
  }
  const auto others =
      std::ranges::count_if(read, [&](int tensor) { return tensor >= count && is_end(tensor); });
  if (static_cast<int>(inputs.size()) != count || others > 0) {
    return Unsupported("the inputs of subgraph ", index_, " are not its first ", count, " tensors");
  }
  if (HasExchangeableInputs(*graph_, count)) {
    return Unsupported("the host does not show the order of the inputs of subgraph ", index_);
  }
  return inputs;
}

Result<std::vector<int>> HostSubgraph::Outputs(const TfLiteContext& caller,
                                               std::span<const int> results) const {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, ExecutionPlan(graph_));
  const IntArrayPtr nodes = MakeIntArray(plan);
  TfLiteDelegateParams* params = nullptr;
  int partitions = 0;
  if (nodes == nullptr) return OutOfMemory("no memory for a list of nodes");
  if (graph_->PreviewDelegatePartitioning(graph_, nodes.get(), &params, &partitions) != kTfLiteOk ||
      partitions != 1) {
    return Unsupported("the host does not show the outputs of subgraph ", index_);
  }
  const std::span<const int> given = Elements(params[0].output_tensors);
  if (given.size() != results.size()) {
    return Unsupported("subgraph ", index_, " gives ", given.size(), " tensors, expected ",
                       results.size());
  }
  if (given.size() == 1) return std::vector<int>{given[0]};
  std::vector<int> outputs;
  for (int result : results) {
    const auto fits = [&](int tensor) {
      return SameKind(graph_->tensors[tensor], caller.tensors[result]);
    };
    const auto first = std::ranges::find_if(given, fits);
    if (std::ranges::count_if(given, fits) != 1 ||
        std::ranges::find(outputs, *first) != outputs.end()) {
      return Unsupported("the host does not show the order of the outputs of subgraph ", index_);
    }
    outputs.push_back(*first);
  }
  return outputs;
}

}  // namespace fuselite::partitioner
