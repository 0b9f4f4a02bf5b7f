#include "fusion/plan/strips.h"

#include <optional>
#include <set>
#include <utility>

#include "fusion/plan/rows.h"
#include "fusion/rewrites/replace.h"

namespace fuselite::fusion {
namespace {

// No kernel is asked for such a node, and nobody may move the rows that its parts read or write.
constexpr kernels::OperatorDef kStrips = {
    .name = "FUSELITE_STRIPS",
    .max_inputs = -1,
    .max_outputs = -1,
    .infer = [](kernels::OpDescription& op) { return Unsupported("rows of ", op.op->name); },
};

// So many nodes without rows may stand between two of a run.
constexpr size_t kFurthest = 16;

class StripMaker {
 public:
  StripMaker(Graph& graph, const StoragePlan& plan, const StripLimits& limits, int threads,
             RewriteContext& context)
      : graph_(graph), plan_(plan), limits_(limits), threads_(threads), context_(context) {}

  std::map<NodeId, Strips> Run() && {
    const std::vector<NodeId> order = graph_.order();
    for (size_t i = 0; i < order.size(); ++i) {
      // A run is looked at once, from its first node on: from each of its nodes it would take time
      // in proportion to their square. Without a node that was refused it is another run.
      while (IsOpen(order[i])) {
        const RunOfRows run = RunFrom(std::span(order).subspan(i));
        if (run.nodes().empty()) break;
        const std::vector<RunOfRows::Cut> cuts = run.Cuts();
        if (cuts.empty() || run.HasOverlaps() || Make(run, cuts)) {
          closed_.insert(run.nodes().begin(), run.nodes().end());
        }
      }
    }
    return std::move(strips_);
  }

 private:
  // Whether a run may begin with the node, or go on with it.
  bool IsOpen(NodeId id) const { return graph_.alive(id) && !closed_.contains(id); }

  // The nodes that compute as many rows as the first of `order` reads.
  RunOfRows RunFrom(std::span<const NodeId> order) const {
    RunOfRows run(graph_, plan_, limits_, threads_, RowsOf(graph_.node(order[0])));
    if (run.rows() < 2 || plan_.silent(order[0]) || !run.Add(order[0])) return run;
    for (size_t i = 1, last = 0; i < order.size() && i - last <= kFurthest; ++i) {
      if (IsOpen(order[i]) && run.Add(order[i])) last = i;
    }
    run.DropUnreadReshapes();
    return run;
  }

  int64_t RowsOf(const Node& node) const {
    if (node.inputs.empty() || node.inputs[0] == kNone) return 1;
    const Shape& shape = graph_.value(node.inputs[0]).info.shape;
    return shape.rank() == 0 ? 1 : shape.elements(0, shape.rank() - 1);
  }

  // Puts one node in the place of the run's first one. False where a node would have a worse kernel
  // in a part; it is closed then.
  bool Make(const RunOfRows& run, const std::vector<RunOfRows::Cut>& cuts) {
    Strips strips;
    const std::vector<ValueId> outputs = run.Outputs();
    for (const RunOfRows::Cut& cut : cuts) {
      std::optional<Graph> part = PartOf(run, outputs, cut.rows);
      if (!part) return false;
      strips.parts.push_back({*std::move(part), cut});
    }
    Node node;
    node.op = &kStrips;
    node.host_nodes = MergeHostNodes(graph_, run.nodes());
    for (const auto& [v, by_rows] : run.inputs()) {
      node.inputs.push_back(v);
      strips.input_rows.push_back(by_rows ? run.RowBytes(v) : 0);
    }
    for (ValueId v : outputs) strips.output_rows.push_back(run.RowBytes(v));
    node.outputs = outputs;
    context_.Record("compute in strips of rows", node.host_nodes);
    Replace(run.nodes(), std::move(node), std::move(strips));
    return true;
  }

  void Replace(const std::vector<NodeId>& nodes, Node node, Strips strips) {
    std::vector<ValueId> constants;
    for (NodeId id : nodes) {
      for (ValueId v : graph_.node(id).inputs) {
        if (v != kNone && graph_.value(v).info.constant()) constants.push_back(v);
      }
    }
    for (size_t i = 1; i < nodes.size(); ++i) graph_.Remove(nodes[i]);
    graph_.Replace(nodes[0], std::move(node));
    // The parts hold them until they are packed.
    for (ValueId v : constants) {
      if (graph_.consumers(v).empty()) graph_.value(v).storage.reset();
    }
    strips_.emplace(nodes[0], std::move(strips));
  }

  // 0: dense.
  int64_t PitchOf(ValueId v) const {
    const int64_t pitch = plan_.of(v).pitch;
    return pitch == graph_.value(v).info.pitch() ? 0 : pitch;
  }

  // The run's nodes with `rows` rows; nullopt, and a node is closed, where it has no kernel for
  // them that is as good as its own.
  std::optional<Graph> PartOf(const RunOfRows& run, const std::vector<ValueId>& outputs,
                              int32_t rows) {
    Graph part;
    std::map<ValueId, ValueId> ids;
    const auto add = [&](ValueId v, bool by_rows) {
      const auto [entry, fresh] = ids.try_emplace(v, kNone);
      if (!fresh) return entry->second;
      Value value = graph_.value(v);
      value.input = value.observed = false;
      if (by_rows) value.info.shape = SomeRows(value.info.shape, run.rows(), rows);
      return entry->second = part.AddValue(std::move(value));
    };
    // Bound values lie as the plan has them.
    const auto bind = [&](ValueId v, ValueId id) {
      part.value(id).info.row_pitch = PitchOf(v);
      return id;
    };
    for (const auto& [v, by_rows] : run.inputs()) {
      part.inputs.push_back(bind(v, add(v, by_rows)));
      part.value(part.inputs.back()).input = true;
    }
    for (ValueId v : outputs) {
      part.outputs.push_back(bind(v, add(v, true)));
      part.value(part.outputs.back()).observed = true;
    }
    for (NodeId id : run.nodes()) {
      Node node = graph_.node(id);
      for (ValueId& v : node.inputs) v = v == kNone ? kNone : add(v, false);
      for (ValueId& v : node.outputs) v = add(v, true);
      if (node.op->reshapes) node = ReshapeOf(std::move(node), part);
      const kernels::OpDescription op = part.Describe(node);
      const bool accepted = node.op == graph_.node(id).op
                                ? context_.AcceptsInsteadOf(plan_.Describe(id), op)
                                : context_.Accepts(op);
      if (!accepted) {
        closed_.insert(id);
        return std::nullopt;
      }
      part.AddNode(std::move(node));
    }
    return part;
  }

  // The node as a RESHAPE to the shape that its output has in `part`.
  static Node ReshapeOf(Node node, Graph& part) {
    const std::span<const int32_t> dims = part.value(node.outputs[0]).info.shape.dims();
    const Shape count({static_cast<int32_t>(dims.size())});
    Node reshape = MakeNode("RESHAPE", {node.inputs[0]});
    reshape.inputs.push_back(
        part.AddConstant({.type = DataType::kInt32, .shape = count}, std::as_bytes(dims), "shape"));
    reshape.outputs = std::move(node.outputs);
    reshape.host_nodes = std::move(node.host_nodes);
    reshape.host_op = node.name();
    return reshape;
  }

  Graph& graph_;
  const StoragePlan& plan_;
  const StripLimits& limits_;
  const int threads_;
  RewriteContext& context_;
  std::set<NodeId> closed_;  // that no further run takes
  std::map<NodeId, Strips> strips_;
};

}  // namespace

std::map<NodeId, Strips> MakeStrips(Graph& graph, const StoragePlan& plan,
                                    const StripLimits& limits, int threads,
                                    RewriteContext& context) {
  if (threads < 2) return {};
  return StripMaker(graph, plan, limits, threads, context).Run();
}

}  // namespace fuselite::fusion
