// PyTorch's quantizer leaves residuals in float: bytes are dequantized, added and quantized again,
// and the float sum goes on to the next residual beside its bytes. Each of these sums is computed
// from the bytes that it is made of, so that nothing in float is stored.
#include <algorithm>
#include <optional>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/dequantized_sum/dequantized_sum.h"
#include "kernels/elementwise/as_tail.h"

namespace fuselite::fusion {
namespace {

using kernels::DequantizedSumParams;
using kernels::TailStage;
using Range = DequantizedSumParams::Range;

constexpr Range kAll = {DequantizedSumParams::kLowest, DequantizedSumParams::kHighest};

// The way down a chain of sums, from the last one on.
class Sums {
 public:
  explicit Sums(const Graph& graph) : graph_(graph) {}

  // False where `sum` is none of bytes, or there is nothing to gain: others read it as well, and
  // not all of its terms are bytes.
  bool Find(ValueId sum) {
    first_ = sum;
    while (steps_.size() + 1 < DequantizedSumParams::kMaxTerms && Descend()) {
    }
    const auto of_bytes = [&](const Step& step) { return Bytes(step.term) != kNone; };
    if (!std::ranges::all_of(steps_, of_bytes) || Bytes(first_) == kNone) StopAtShared();
    return !steps_.empty() && (std::ranges::any_of(steps_, of_bytes) || Bytes(first_) != kNone);
  }

  // A node that computes the sum. Precondition: Find().
  Node ToNode() const {
    Node node = MakeNode("FUSELITE_DEQUANTIZED_SUM", {OrBytes(first_)});
    std::vector<NodeId> nodes = MakersOf(first_);
    Range* range = node.params.as<DequantizedSumParams>().ranges;
    *range++ = kAll;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      node.inputs.push_back(OrBytes(step->term));
      *range++ = step->range;
      nodes.insert(nodes.end(), step->nodes.begin(), step->nodes.end());
      for (const NodeId id : MakersOf(step->term)) nodes.push_back(id);
    }
    SortUnique(&nodes);
    node.host_nodes = MergeHostNodes(graph_, nodes);
    return node;
  }

 private:
  // `sum` = what is below + `term`, brought into `range`.
  struct Step {
    ValueId sum, term;
    Range range = kAll;
    std::vector<NodeId> nodes{};
  };

  const Node& node(NodeId id) const { return graph_.node(id); }

  NodeId PlainAdd(ValueId v) const {
    const NodeId id = ProducerIs(graph_, v, "ADD");
    if (id == kNone) return kNone;
    const Shape& shape = graph_.value(v).info.shape;
    const auto repeats = [&](ValueId x) { return graph_.value(x).info.shape != shape; };
    return std::ranges::any_of(node(id).inputs, repeats) ? kNone : id;
  }

  // The clamp that makes `v`; kNone where another node does.
  NodeId Clamp(ValueId v, Range* range) const {
    const NodeId id = graph_.producer(v);
    if (id == kNone || node(id).inputs.size() != 1 || !node(id).tail.empty()) return kNone;
    const std::optional<TailStage> stage = kernels::UnaryStage(graph_.Describe(id));
    if (!stage || stage->unary != kernels::UnaryKind::kClamp) return kNone;
    *range = {std::max(stage->a, kAll.low), std::min(stage->b, kAll.high)};
    return id;
  }

  // The sum that makes `v`, maybe behind a clamp.
  std::optional<Step> StepOf(ValueId v) const {
    Step step{.sum = v, .term = kNone};
    if (const NodeId clamp = Clamp(v, &step.range); clamp != kNone) {
      step.nodes.push_back(clamp);
      v = node(clamp).inputs[0];
    }
    const NodeId add = PlainAdd(v);
    if (add == kNone) return std::nullopt;
    const kernels::Activation activation = FusedActivation(node(add));
    if (activation != kernels::Activation::kNone) {
      if (!step.nodes.empty()) return std::nullopt;
      kernels::ActivationRange(activation, &step.range.low, &step.range.high);
    }
    step.nodes.push_back(add);
    return step;
  }

  // One step down, along the operand that is a sum, too.
  bool Descend() {
    std::optional<Step> step = StepOf(first_);
    if (!step) return false;
    const auto& operands = node(step->nodes.back()).inputs;
    const int below = !StepOf(operands[0]) && StepOf(operands[1]) ? 1 : 0;
    first_ = operands[below];
    step->term = operands[1 - below];
    steps_.push_back(*std::move(step));
    return true;
  }

  // Sums that others read stay, and are terms.
  void StopAtShared() {
    const auto shared = std::ranges::find_if(
        steps_, [&](const Step& step) { return graph_.SingleUse(step.sum) == kNone; });
    if (shared == steps_.end()) return;
    first_ = shared->sum;
    steps_.erase(shared, steps_.end());
  }

  NodeId Dequantize(ValueId v) const { return ProducerIs(graph_, v, "DEQUANTIZE"); }
  // What `v` is dequantized from; kNone where it is not, or not from bytes with one scale.
  ValueId Bytes(ValueId v) const {
    const NodeId id = Dequantize(v);
    if (id == kNone) return kNone;
    const Value& from = graph_.value(node(id).inputs[0]);
    const bool takes = IsByte(from.info) && !from.info.quantization.per_channel();
    return takes ? node(id).inputs[0] : kNone;
  }
  ValueId OrBytes(ValueId v) const { return Bytes(v) != kNone ? Bytes(v) : v; }
  std::vector<NodeId> MakersOf(ValueId v) const {
    if (Bytes(v) == kNone) return {};
    return {Dequantize(v)};
  }

  const Graph& graph_;
  std::vector<Step> steps_;  // the last sum first
  ValueId first_ = kNone;    // the first term
};

}  // namespace

bool SumDequantized(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "QUANTIZE")) return false;
  const ValueId from = graph.node(id).inputs[0], out = graph.node(id).outputs[0];
  Sums sums(graph);
  if (!sums.Find(from)) return false;
  Node node = sums.ToNode();
  node.outputs = {out};
  node.host_nodes.insert(node.host_nodes.end(), graph.node(id).host_nodes.begin(),
                         graph.node(id).host_nodes.end());
  SortUnique(&node.host_nodes);
  const auto accepts = [&](const auto& op) { return context.AcceptsComposite(op); };
  if (!ReplaceIf(graph, id, std::move(node), accepts)) return false;
  context.Record("sum dequantized bytes", graph.node(id).host_nodes);
  return true;
}

}  // namespace fuselite::fusion
