#include "partitioner/claim/loops.h"

#include <array>
#include <optional>
#include <utility>

#include "partitioner/import/host_age.h"
#include "partitioner/import/import.h"
#include "partitioner/import/subgraphs.h"
#include "runtime/tflite/arrays.h"
#include "runtime/tflite/builtin_codes.h"
#include "runtime/tflite/params.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

struct WhileNode {
  const TfLiteContext* graph = nullptr;
  std::vector<int> inputs;
  int condition = -1, body = -1;
};

Status AddWhileNodes(const HostSubgraph& subgraph, std::vector<WhileNode>& nodes) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, subgraph.Plan());
  TfLiteContext* const graph = subgraph.graph();
  for (int index : plan) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (graph->GetNodeAndRegistration(graph, index, &node, &registration) != kTfLiteOk) continue;
    if (registration->builtin_code != kTfLiteBuiltinWhile || node->builtin_data == nullptr) {
      continue;
    }
    const auto& params = *static_cast<const TfLiteWhileParams*>(node->builtin_data);
    const std::span<const int> inputs = Elements(node->inputs);
    nodes.push_back({graph,
                     {inputs.begin(), inputs.end()},
                     params.cond_subgraph_index,
                     params.body_subgraph_index});
  }
  return Status();
}

// The WHILE nodes of all subgraphs.
Result<std::vector<WhileNode>> AllWhileNodes(TfLiteContext* context) {
  std::vector<WhileNode> nodes;
  for (int i = 0;; ++i) {
    const Result<HostSubgraph> subgraph = HostSubgraph::Acquire(context, i);
    if (!subgraph.ok()) return nodes;
    FUSELITE_RETURN_IF_ERROR(AddWhileNodes(*subgraph, nodes));
  }
}

bool IsSubgraph(TfLiteContext* context, int index) {
  const Result<HostSubgraph> subgraph = HostSubgraph::Acquire(context, index);
  return subgraph.ok() && subgraph->graph() == context;
}

// Reads the nodes of a condition, all of which the delegate must compute.
Status ReadCondition(TfLiteContext* context, int index, Loop& loop) {
  FUSELITE_ASSIGN_OR_RETURN(const HostSubgraph condition, HostSubgraph::Acquire(context, index));
  loop.condition = condition.graph();
  FUSELITE_ASSIGN_OR_RETURN(loop.test.outputs, condition.Outputs(*context, std::array{0}));
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int> plan, condition.Plan());
  for (int node_index : plan) {
    FUSELITE_ASSIGN_OR_RETURN(ImportedNode node, ImportNode(condition.graph(), node_index,
                                                            HasSubgraphFunctions(context)));
    loop.test.nodes.push_back(std::make_shared<const ImportedNode>(std::move(node)));
  }
  return Status();
}

}  // namespace

std::shared_ptr<const Loop> FindLoop(TfLiteContext* body) {
  // The first graph is the one that the host's caller runs.
  if (!HasSubgraphFunctions(body) || IsSubgraph(body, 0)) return nullptr;
  const Result<std::vector<WhileNode>> nodes = AllWhileNodes(body);
  if (!nodes.ok()) return nullptr;
  std::optional<WhileNode> mine;
  for (const WhileNode& node : *nodes) {
    if (IsSubgraph(body, node.condition)) return nullptr;
    if (!IsSubgraph(body, node.body)) continue;
    if (mine) return nullptr;
    mine = node;
  }
  if (!mine) return nullptr;
  auto loop = std::make_shared<Loop>();
  loop->caller = mine->graph;
  loop->arguments = mine->inputs;
  if (!ReadCondition(body, mine->condition, *loop).ok()) return nullptr;
  return loop;
}

}  // namespace fuselite::partitioner
