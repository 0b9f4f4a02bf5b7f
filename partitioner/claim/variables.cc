#include "partitioner/claim/variables.h"

#include <algorithm>
#include <cstring>

#include "kernels/reshape/reshape.h"
#include "partitioner/claim/verdict.h"
#include "partitioner/import/host_age.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/builtin_codes.h"
#include "runtime/tflite/params.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

struct HostNode {
  TfLiteNode* node = nullptr;
  TfLiteRegistration* registration = nullptr;
  bool is(int builtin_code) const { return registration->builtin_code == builtin_code; }
  int input(int i) const { return node->inputs->data[i]; }
};

std::optional<HostNode> NodeAt(TfLiteContext* context, int index) {
  HostNode host;
  if (context->GetNodeAndRegistration(context, index, &host.node, &host.registration) !=
          kTfLiteOk ||
      host.node == nullptr || host.registration == nullptr) {
    return std::nullopt;
  }
  return host;
}

bool HasCounts(const HostNode& host, int inputs, int outputs) {
  return host.node->inputs->size == inputs && host.node->outputs->size == outputs;
}

// The subgraph that a CALL_ONCE runs; nullopt for other nodes, and for one with tensors, which
// hosts refuse.
std::optional<int> InitializerOf(const HostNode& host) {
  if (!host.is(kTfLiteBuiltinCallOnce) || host.node->builtin_data == nullptr) return std::nullopt;
  if (!HasCounts(host, 0, 0)) return std::nullopt;
  return static_cast<const TfLiteCallOnceParams*>(host.node->builtin_data)->init_subgraph_index;
}

// A VAR_HANDLE whose handle the nodes of a variable take: one number.
bool MakesHandle(const TfLiteContext& context, const HostNode& host) {
  if (!host.is(kTfLiteBuiltinVarHandle) || !HasCounts(host, 0, 1)) return false;
  const int tensor = host.node->outputs->data[0];
  if (tensor < 0 || tensor >= static_cast<int>(context.tensors_size)) return false;
  const TfLiteTensor& handle = context.tensors[tensor];
  return (handle.type == kTfLiteResource || handle.type == kTfLiteInt32) &&
         std::ranges::all_of(Elements(handle.dims), [](int dim) { return dim == 1; });
}

bool IsVariableNode(int builtin_code) {
  return builtin_code == kTfLiteBuiltinVarHandle || builtin_code == kTfLiteBuiltinReadVariable ||
         builtin_code == kTfLiteBuiltinAssignVariable;
}

std::pair<std::string, std::string> NameOf(const HostNode& handle) {
  const auto* params = static_cast<const TfLiteVarHandleParams*>(handle.node->builtin_data);
  const auto text = [](const char* name) { return std::string(name != nullptr ? name : ""); };
  if (params == nullptr) return {};
  return {text(params->container), text(params->shared_name)};
}

bool SameValue(const TensorInfo& a, const TensorInfo& b) {
  return a.type == b.type && a.shape == b.shape;
}

}  // namespace

Result<std::shared_ptr<VariableMemory>> VariableMemory::New(
    std::span<const TensorInfo> first_values) {
  auto memory = std::make_shared<VariableMemory>();
  for (const TensorInfo& value : first_values) {
    AlignedBuffer& buffer = memory->buffers_.emplace_back(std::max<size_t>(value.bytes(), 1));
    if (buffer.data() == nullptr) {
      return OutOfMemory("no memory for a variable of ", value.bytes(), " bytes");
    }
    std::memcpy(buffer.data(), value.data, value.bytes());
  }
  return memory;
}

GraphVariables::GraphVariables(TfLiteContext* context, std::span<const int> plan) {
  status_ = ReadNodes(context, plan);
  if (nodes_.empty()) return;
  if (status_.ok()) status_ = ReadSubgraphs(context);
  if (status_.ok()) status_ = CheckUse(context);
  if (!status_.ok()) return;
  for (const auto& [tensor, variable] : of_handle_) {
    TensorInfo info = first_values_[variable];
    info.data = nullptr;
    handles_[tensor] = std::move(info);
  }
}

int GraphVariables::IdOf(const Name& name) {
  const auto [entry, added] = ids_.try_emplace(name, static_cast<int>(first_values_.size()));
  if (added) first_values_.emplace_back();
  return entry->second;
}

Status GraphVariables::ReadNodes(TfLiteContext* context, std::span<const int> plan) {
  Status status;
  for (int index : plan) {
    const std::optional<HostNode> host = NodeAt(context, index);
    if (!host) continue;
    const int code = host->registration->builtin_code;
    if (const std::optional<int> initializer = InitializerOf(*host)) {
      nodes_[index] = {.builtin_code = code};
      initializers_.insert(*initializer);
      continue;
    }
    if (!IsVariableNode(code)) {
      const auto is_handle = [&](int tensor) { return of_handle_.contains(tensor); };
      if (std::ranges::any_of(Elements(host->node->inputs), is_handle)) {
        status = Unsupported("node ", index, " hands a variable on");
      }
      continue;
    }
    Access& access = nodes_[index] = {.builtin_code = code};
    if (MakesHandle(*context, *host)) {
      access.handle = host->node->outputs->data[0];
      access.variable = of_handle_[access.handle] = IdOf(NameOf(*host));
      continue;
    }
    const bool read = code == kTfLiteBuiltinReadVariable;
    const bool fits = read ? HasCounts(*host, 1, 1) : HasCounts(*host, 2, 0);
    const int value = !fits ? -1 : read ? host->node->outputs->data[0] : host->input(1);
    if (value < 0) {
      status = Unsupported("node ", index, " reads or assigns no value");
      continue;
    }
    const auto variable = of_handle_.find(host->input(0));
    if (variable == of_handle_.end()) {
      status = Unsupported("node ", index, " uses a variable whose handle is no VAR_HANDLE's");
      continue;
    }
    access.handle = host->input(0);
    access.variable = variable->second;
    access.value = value;
  }
  return status;
}

// The other subgraphs: initializers give the first values, and nobody else may use the variables.
Status GraphVariables::ReadSubgraphs(TfLiteContext* context) {
  if (!HasSubgraphFunctions(context)) {
    return Unsupported("the host does not show who initializes the variables");
  }
  // Initializers come first: they know more variables than the graph itself may name.
  for (const int initializer : initializers_) {
    FUSELITE_ASSIGN_OR_RETURN(const HostSubgraph subgraph,
                              HostSubgraph::Acquire(context, initializer));
    FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, subgraph.Plan());
    FUSELITE_RETURN_IF_ERROR(ReadInitializer(subgraph.graph(), plan));
  }
  for (int i = 0;; ++i) {
    const Result<HostSubgraph> subgraph = HostSubgraph::Acquire(context, i);
    if (!subgraph.ok()) return Status();  // there are no more
    if (subgraph->graph() == context || initializers_.contains(i)) continue;
    FUSELITE_RETURN_IF_ERROR(CheckApart(context, *subgraph, i));
  }
}

Status GraphVariables::CheckApart(TfLiteContext* context, const HostSubgraph& subgraph,
                                  int index) const {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, subgraph.Plan());
  const auto is_own = [&](int number) {
    const Result<HostSubgraph> other = HostSubgraph::Acquire(context, number);
    return other.ok() && other->graph() == context;
  };
  bool initializes = false, shares = false;
  for (int node : plan) {
    const std::optional<HostNode> host = NodeAt(subgraph.graph(), node);
    if (!host) continue;
    const std::optional<int> initializer = InitializerOf(*host);
    initializes |= initializer && is_own(*initializer);
    shares |= host->is(kTfLiteBuiltinVarHandle) && ids_.contains(NameOf(*host));
  }
  if (!shares) return Status();
  if (initializes) {
    return Unsupported("its graph sets the variables of graph ", index,
                       " once, when the model opens");
  }
  return Unsupported("graph ", index, " uses the same variables");
}

Status GraphVariables::ReadInitializer(TfLiteContext* graph, std::span<const int> plan) {
  std::map<int, int> of_handle;
  for (int index : plan) {
    const std::optional<HostNode> host = NodeAt(graph, index);
    if (!host) return Unsupported("the host does not show a node of the initializer");
    if (MakesHandle(*graph, *host)) {
      of_handle[host->node->outputs->data[0]] = IdOf(NameOf(*host));
      continue;
    }
    if (!host->is(kTfLiteBuiltinAssignVariable) || !HasCounts(*host, 2, 0) ||
        !of_handle.contains(host->input(0))) {
      return Unsupported("CALL_ONCE runs ", NodeName(*host->registration));
    }
    FUSELITE_ASSIGN_OR_RETURN(TensorInfo value, ImportHostTensor(*graph, host->input(1)));
    if (!value.constant()) return Unsupported("CALL_ONCE assigns what is no constant");
    first_values_[of_handle.at(host->input(0))] = std::move(value);
  }
  return Status();
}

Status GraphVariables::CheckUse(TfLiteContext* context) const {
  for (const auto& [name, id] : ids_) {
    if (!first_values_[id].constant()) {
      return Unsupported("no CALL_ONCE gives variable '", name.second, "' its first value");
    }
  }
  for (const auto& [index, access] : nodes_) {
    if (access.value < 0 || access.builtin_code != kTfLiteBuiltinReadVariable) continue;
    FUSELITE_ASSIGN_OR_RETURN(const TensorInfo value, ImportHostTensor(*context, access.value));
    if (!SameValue(value, first_values_[access.variable])) {
      return Unsupported("node ", index, " reads ", DataTypeName(value.type), value.shape,
                         " from a variable of ", DataTypeName(first_values_[access.variable].type),
                         first_values_[access.variable].shape);
    }
  }
  return Status();
}

Result<ImportedNode> GraphVariables::Import(int host_node) const {
  FUSELITE_RETURN_IF_ERROR(status_);
  const Access& access = nodes_.at(host_node);
  ImportedNode node;
  node.host_node = host_node;
  if (access.value < 0) return node;
  node.op = kernels::FindOperator(kTfLiteBuiltinReshape);
  auto& params = node.params.as<kernels::ReshapeParams>();
  const Shape& shape = first_values_[access.variable].shape;
  for (int32_t dim : shape.dims()) params.new_shape.values[params.new_shape.count++] = dim;
  const bool read = access.builtin_code == kTfLiteBuiltinReadVariable;
  node.host_op = read ? "READ_VARIABLE" : "ASSIGN_VARIABLE";
  node.inputs = {read ? access.handle : access.value};
  node.outputs = {read ? access.value : access.handle};
  return node;
}

std::optional<int> GraphVariables::VariableOf(int tensor) const {
  const auto variable = of_handle_.find(tensor);
  if (variable == of_handle_.end()) return std::nullopt;
  return variable->second;
}

int GraphVariables::WithdrawUnlessWhole(std::vector<Verdict>& verdicts) const {
  const auto concerns = [&](const Verdict& verdict) { return Concerns(verdict.host_node); };
  const auto left = std::ranges::find_if(
      verdicts, [&](const Verdict& verdict) { return concerns(verdict) && !verdict.claimed; });
  if (left == verdicts.end()) return 0;
  int withdrawn = 0;
  for (Verdict& verdict : verdicts) {
    if (!concerns(verdict) || !verdict.claimed) continue;
    verdict.claimed = false;
    verdict.reason = "node " + std::to_string(left->host_node) + " " + left->op +
                     ", which is left to the host, uses the variables too";
    ++withdrawn;
  }
  return withdrawn;
}

}  // namespace fuselite::partitioner
