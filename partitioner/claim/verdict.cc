#include "partitioner/claim/verdict.h"

#include <algorithm>
#include <map>

#include "fusion/planner.h"
#include "kernels/evaluation.h"
#include "partitioner/import/branches.h"
#include "partitioner/import/composites.h"
#include "partitioner/import/host_age.h"
#include "partitioner/import/host_call.h"
#include "partitioner/import/subgraphs.h"
#include "runtime/support/is_index.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

// What every node of a graph is judged with.
struct Judging {
  tflite::TfLiteContext* context;
  bool whole_structs;  // as ImportNode's
  const GraphVariables& variables;
  const Options& options;
  TensorTable& table;
  fusion::Planner& planner;
  Nesting* nesting = nullptr;  // of the node whose subgraph this is; null for the graph itself
};

std::vector<Verdict> JudgeGraph(const Judging& judging, std::span<const int> plan);

std::string DescribeOutputs(std::span<const TensorInfo> outputs) {
  std::string text;
  for (const TensorInfo& output : outputs) {
    if (!text.empty()) text += ", ";
    text += std::string(DataTypeName(output.type)) + output.shape.ToString();
  }
  return text;
}

// Custom operators that nobody registered have a place holder, which fails when it is run.
bool IsUnresolved(const tflite::TfLiteRegistration& registration) {
  return registration.builtin_code == tflite::kTfLiteBuiltinCustom &&
         registration.registration_external == nullptr && registration.init == nullptr &&
         registration.prepare == nullptr;
}

// The node's operator and tensors, which exist whether or not it can be imported.
void ReadNode(tflite::TfLiteContext* context, Verdict& verdict) {
  tflite::TfLiteNode* node = nullptr;
  tflite::TfLiteRegistration* registration = nullptr;
  if (context->GetNodeAndRegistration(context, verdict.host_node, &node, &registration) !=
          tflite::kTfLiteOk ||
      node == nullptr || registration == nullptr) {
    return;
  }
  verdict.op = NodeName(*registration);
  verdict.host_lacks = IsUnresolved(*registration);
  const std::span<const int> inputs = tflite::Elements(node->inputs);
  const std::span<const int> outputs = tflite::Elements(node->outputs);
  verdict.inputs.assign(inputs.begin(), inputs.end());
  verdict.outputs.assign(outputs.begin(), outputs.end());
}

// Whether what was wrong with the node's shapes may be right when the model runs: they depend on
// values, or the file leaves dimensions of its inputs open, and states them as 1.
bool MayFitAtRunTime(const tflite::TfLiteContext* context, const TensorTable& table,
                     const ImportedNode& node, const Status& status) {
  if (status.code() == StatusCode::kDynamicShape) return true;
  if (status.code() != StatusCode::kInvalidArgument) return false;
  return std::ranges::any_of(node.inputs, [&](int tensor) {
    if (tensor < 0) return false;
    const std::span<const int> signature =
        tflite::Elements(context->tensors[tensor].dims_signature);
    return table.IsUnknown(tensor) || std::ranges::find(signature, -1) != signature.end();
  });
}

bool ReadsUnknown(const TensorTable& table, const Verdict& verdict) {
  return std::ranges::any_of(verdict.inputs, [&](int tensor) { return table.IsUnknown(tensor); });
}

// Whether some kernel computes the operation, whose cost is then added.
Status JudgeOperation(const Judging& judging, const kernels::OpDescription& op, Verdict& verdict) {
  const fusion::Choice& choice = judging.planner.Choose(op);
  // The delegate refuses what is beyond the budget when it is compiled: it is not for the host to
  // compute.
  if (!choice.beyond_budget) FUSELITE_RETURN_IF_ERROR(choice.status);
  verdict.cost += kernels::Cost(op);
  return Status();
}

// A composite by the nodes of its decomposition.
Status JudgeBody(const Judging& judging, const ImportedNode& node, Verdict& verdict) {
  FUSELITE_ASSIGN_OR_RETURN(const BuiltGraph body, BuildBody(node, judging.table));
  for (fusion::NodeId id : body.graph.order()) {
    const kernels::OpDescription op = body.graph.Describe(id);
    if (Status status = JudgeOperation(judging, op, verdict); !status.ok()) {
      return status.In(op.op->name);
    }
  }
  std::vector<TensorInfo> outputs;
  for (fusion::ValueId v : body.graph.outputs) outputs.push_back(body.graph.value(v).info);
  verdict.shapes = DescribeOutputs(outputs);
  return Status();
}

// A node by all of its branches. What runs, and what shapes that gives, depends on a value.
Status JudgeBranches(const Judging& judging, Verdict& verdict) {
  Status status = judging.table.Infer(*verdict.node).status();
  if (status.code() != StatusCode::kDynamicShape) return status;
  for (int i = 0; i < static_cast<int>(verdict.node->branches.size()); ++i) {
    const Status judged = JudgeBody(judging, BranchOf(*verdict.node, i), verdict);
    if (!judged.ok()) return judged.In("branch " + std::to_string(i));
  }
  verdict.possible = true;
  return Status();
}

Result<ImportedNode> Import(const Judging& judging, int host_node) {
  return judging.variables.Concerns(host_node)
             ? judging.variables.Import(host_node)
             : ImportNode(judging.context, host_node, judging.whole_structs, judging.nesting);
}

// Whether the delegate would take the subgraph whole: judged as it will be when the host shows it.
Status JudgeSubgraph(const Judging& judging, int subgraph, Nesting& nesting) {
  FUSELITE_ASSIGN_OR_RETURN(const HostSubgraph callee,
                            HostSubgraph::Acquire(judging.context, subgraph));
  tflite::TfLiteContext* const graph = callee.graph();
  NestingLevel level(nesting);
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, callee.Plan());
  FUSELITE_RETURN_IF_ERROR(level.Admit(judging.context, graph, plan.size()));
  TensorTable table(graph);
  fusion::Planner planner(judging.planner.context(), judging.planner.jit(),
                          judging.planner.budget());
  const GraphVariables no_variables(graph, {});
  const Judging inside{
      graph, judging.whole_structs, no_variables, judging.options, table, planner, &nesting};
  for (const Verdict& verdict : JudgeGraph(inside, plan)) {
    if (verdict.claimed) continue;
    return Unsupported(verdict.reason)
        .In(internal::Join("node ", verdict.host_node, " (", verdict.op, ") of subgraph ",
                           subgraph));
  }
  return Status();
}

// A node that the host runs by its subgraphs, whose work is theirs.
Status JudgeHostCall(const Judging& judging, Verdict& verdict) {
  // LiteRT's IF copies between memory of an earlier run where shapes change from run to run, which
  // goes wrong where that was on the heap, as a partition's dynamic values are.
  const bool branches = verdict.node->op->builtin_code == tflite::kTfLiteBuiltinIf;
  if (branches && ReadsUnknown(judging.table, verdict)) {
    return Unsupported("has inputs whose shapes depend on values");
  }
  Nesting own;
  Nesting& nesting = judging.nesting != nullptr ? *judging.nesting : own;
  for (const int subgraph : verdict.node->host_call->subgraphs()) {
    FUSELITE_RETURN_IF_ERROR(JudgeSubgraph(judging, subgraph, nesting));
  }
  verdict.possible = true;
  return Status();
}

// Whether no node writes over a constant or over what another one writes. LiteRT runs such graphs
// in the order of the plan, which partitions would change.
Status CheckWrites(const tflite::TfLiteContext& context, std::span<const Verdict> verdicts) {
  std::map<int, int> writers;
  for (const Verdict& verdict : verdicts) {
    for (int tensor : verdict.outputs) {
      if (tensor < 0 || tensor >= static_cast<int>(context.tensors_size)) continue;
      const tflite::TfLiteTensor& host = context.tensors[tensor];
      if (host.allocation_type == tflite::kTfLiteMmapRo) {
        return Unsupported("node ", verdict.host_node, " writes over ", TensorName(host, tensor),
                           ", a constant");
      }
      const auto [writer, is_first] = writers.try_emplace(tensor, verdict.host_node);
      if (!is_first) {
        return Unsupported("nodes ", writer->second, " and ", verdict.host_node, " both write ",
                           TensorName(host, tensor));
      }
    }
  }
  return Status();
}

// Leaves nodes that share a state to the host where other nodes are left to it: who reads and
// writes the state follows the order of the plan, which partitions may change.
void WithdrawSharedStates(const tflite::TfLiteContext& context, std::span<Verdict> verdicts) {
  if (std::ranges::all_of(verdicts, &Verdict::claimed)) return;
  const auto is_state = [&](int tensor) {
    return IsIndex(tensor, context.tensors_size) && context.tensors[tensor].is_variable;
  };
  std::map<int, int> users;  // by the state's tensor
  for (const Verdict& verdict : verdicts) {
    for (const int tensor : verdict.inputs) {
      if (is_state(tensor)) ++users[tensor];
    }
  }
  const auto is_shared = [&](int tensor) { return is_state(tensor) && users[tensor] > 1; };
  for (Verdict& verdict : verdicts) {
    if (!verdict.claimed || std::ranges::none_of(verdict.inputs, is_shared)) continue;
    verdict.claimed = false;
    verdict.reason = "shares its state with other nodes of a graph that is not taken whole";
  }
}

Status JudgeNode(const Judging& judging, Verdict& verdict) {
  const bool denied = std::ranges::any_of(judging.options.ops_deny, [&](const std::string& name) {
    return verdict.op == name || verdict.op == CustomName(name);
  });
  if (denied) return Unsupported("the option ops_deny names this operator");
  FUSELITE_ASSIGN_OR_RETURN(ImportedNode imported, Import(judging, verdict.host_node));
  verdict.node = std::make_shared<ImportedNode>(std::move(imported));
  if (verdict.node->op == nullptr) return Status();
  if (!verdict.node->branches.empty()) return JudgeBranches(judging, verdict);
  if (verdict.node->host_call != nullptr) return JudgeHostCall(judging, verdict);
  const Result<kernels::OpDescription> described = judging.table.Infer(*verdict.node);
  const bool waits = described.status().code() == StatusCode::kDynamicShape;
  if (!described.ok() && !waits && verdict.node->body != nullptr) {
    return JudgeBody(judging, *verdict.node, verdict);
  }
  if (!described.ok()) {
    verdict.possible =
        MayFitAtRunTime(judging.context, judging.table, *verdict.node, described.status());
    return verdict.possible ? Status() : described.status();
  }
  verdict.shapes = DescribeOutputs(described->outputs);
  return JudgeOperation(judging, *described, verdict);
}

std::vector<Verdict> JudgeGraph(const Judging& judging, std::span<const int> plan) {
  std::vector<Verdict> verdicts(plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    verdicts[i].host_node = plan[i];
    ReadNode(judging.context, verdicts[i]);
  }
  const Status writes = CheckWrites(*judging.context, verdicts);
  for (Verdict& verdict : verdicts) {
    const Status status = writes.ok() ? JudgeNode(judging, verdict) : writes;
    verdict.claimed = status.ok();
    if (!status.ok()) verdict.reason = status.message();
    if (!status.ok() || verdict.possible || ReadsUnknown(judging.table, verdict)) {
      for (int tensor : verdict.outputs) judging.table.MarkUnknown(tensor);
    }
  }
  WithdrawSharedStates(*judging.context, verdicts);
  return verdicts;
}

}  // namespace

std::vector<Verdict> Judge(tflite::TfLiteContext* context, std::span<const int> plan,
                           const GraphVariables& variables, const Options& options,
                           TensorTable& table, fusion::Planner& planner) {
  for (const auto& [tensor, info] : variables.handles()) table.SetVariable(tensor, info);
  return JudgeGraph({context, HasSubgraphFunctions(context), variables, options, table, planner},
                    plan);
}

}  // namespace fuselite::partitioner
