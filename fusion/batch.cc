#include "fusion/batch.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "fusion/graph/cost.h"
#include "fusion/match.h"
#include "kernels/concatenation/concatenation.h"

namespace fuselite::fusion {
namespace {

// Which operand tells an operator the dimensions of its result; -1: none.
int ShapeOperand(std::string_view op) {
  if (op == "RESHAPE") return 1;
  if (op == "SLICE") return 2;
  return op == "TRANSPOSE_CONV" ? 0 : -1;
}

// Makes the part's graph, node by node.
class Cutter {
 public:
  Cutter(const Graph& whole, int32_t samples, int32_t of_part)
      : graph_(whole), samples_(samples), of_part_(of_part), cut_(whole.value_count()) {}

  std::optional<Graph> Run() && {
    for (ValueId v : graph_.inputs) {
      if (graph_.value(v).variable || !Cut(v)) return std::nullopt;
    }
    for (NodeId id : graph_.order()) {
      if (!CutNode(id)) return std::nullopt;
    }
    const auto is_cut = [&](ValueId v) { return cut_[v]; };
    if (!std::ranges::all_of(graph_.outputs, is_cut)) return std::nullopt;
    return std::move(graph_);
  }

 private:
  bool IsCut(ValueId v) const { return v != kNone && cut_[v]; }

  // Leaves the part's share of dimension 0.
  bool Cut(ValueId v) {
    Shape& shape = graph_.value(v).info.shape;
    if (shape.rank() == 0 || shape[0] % samples_ != 0) return false;
    shape.set(0, shape[0] / samples_ * of_part_);
    return cut_[v] = true;
  }

  bool CutNode(NodeId id) {
    Node node = graph_.node(id);
    for (ValueId v : node.outputs) {
      if (!Cut(v)) return false;
    }
    if (!KeepsSamples(node)) return false;
    CutShapeOperand(node);
    // What the shape rule makes of the part of its operands is the part of its result.
    kernels::OpDescription op = graph_.Describe(node);
    if (!kernels::Infer(op).ok()) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (op.outputs[i].shape != graph_.value(node.outputs[i]).info.shape) return false;
    }
    graph_.Replace(id, std::move(node));
    return true;
  }

  // Whether the node, whose inputs and outputs are cut, computes each sample on its own, so far as
  // its operator, the ranks of its operands and its axis tell: what else mixes samples does not
  // keep dimension 0.
  bool KeepsSamples(const Node& node) const {
    int rank = 0, cut = 0;
    for (ValueId v : node.inputs) {
      if (!IsCut(v)) continue;
      const int of_value = graph_.value(v).info.shape.rank();
      if (cut++ > 0 && rank != of_value) return false;
      rank = of_value;
    }
    if (node.op->samples == kernels::SampleRule::kApartByRows) return rank > 1;
    const std::string_view name = node.op->name;
    if (name == "CONCATENATION") {
      return !IsFirst(node.params.as<kernels::ConcatenationParams>().axis, rank);
    }
    if (name == "SPLIT") return !IsFirst(IntConstant(graph_, node.inputs[0])->front(), rank);
    if (name == "GATHER") return cut == 1;
    if (name == "SLICE") return TakesWhole(node);
    if (name == "STRIDED_SLICE") return TakesWhole(node) && TakesForward(node);
    return node.op->elementwise || node.op->samples != kernels::SampleRule::kMixed;
  }
  static bool IsFirst(int32_t axis, int rank) { return axis == 0 || axis == -rank; }

  // Whether a slice takes all of dimension 0, which may have several rows of each sample: some of
  // them would be others in each part.
  bool TakesWhole(const Node& node) const {
    return graph_.value(node.inputs[0]).info.shape[0] ==
           graph_.value(node.outputs[0]).info.shape[0];
  }
  // Whether it takes dimension 0 in its order. The shape rule has read the strides.
  bool TakesForward(const Node& node) const {
    const auto strides = IntConstant(graph_, node.inputs[3]);
    return !strides->empty() && strides->front() > 0;
  }

  // Leaves the part's share of what tells the result's dimension 0.
  void CutShapeOperand(Node& node) {
    const int operand = ShapeOperand(node.op->name);
    if (operand < 0 || operand >= static_cast<int>(node.inputs.size())) return;
    auto dims = IntConstant(graph_, node.inputs[operand]);
    if (!dims) return;  // the node's parameters tell it
    dims->front() = graph_.value(node.outputs[0]).info.shape[0];
    const Shape shape({static_cast<int32_t>(dims->size())});
    node.inputs[operand] = graph_.AddConstant({.type = DataType::kInt32, .shape = shape},
                                              std::as_bytes(std::span(*dims)), "shape");
  }

  Graph graph_;
  const int32_t samples_, of_part_;
  std::vector<bool> cut_;  // of each value of the whole: it has samples
};

int32_t SamplesOf(const Graph& graph) {
  if (graph.inputs.empty()) return 1;
  const Shape& shape = graph.value(graph.inputs[0]).info.shape;
  return shape.rank() == 0 ? 1 : shape[0];
}

// What runs of the graph read and write beside constants, at the node that does most of it.
int64_t WidestBytes(const Graph& graph) {
  int64_t widest = 0;
  for (NodeId id : graph.order()) {
    int64_t bytes = 0;
    for (const std::vector<ValueId>* values : {&graph.node(id).inputs, &graph.node(id).outputs}) {
      for (ValueId v : *values) {
        if (v == kNone || graph.value(v).info.constant()) continue;
        bytes += static_cast<int64_t>(graph.value(v).info.bytes());
      }
    }
    widest = std::max(widest, bytes);
  }
  return widest;
}

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const TensorInfo& info = graph.value(v).info;
    if (info.constant() && !graph.consumers(v).empty()) bytes += static_cast<int64_t>(info.bytes());
  }
  return bytes;
}

int32_t LargestDivisorWithin(int32_t number, int64_t most) {
  auto divisor = static_cast<int32_t>(std::clamp<int64_t>(most, 1, number));
  while (number % divisor != 0) --divisor;
  return divisor;
}

// The largest number of samples that divides the batch and whose values stay in the cache; 1 where
// those of one do not. A part takes 0.15 us beside its steps: where a batch of 127 has no better
// parts than single samples of 3 KB, it is computed whole, if the next cache holds that.
int32_t SamplesOfPart(const Graph& graph, int32_t samples, int64_t most_bytes) {
  const int64_t of_sample = std::max<int64_t>(WidestBytes(graph) / samples, 1);
  const int32_t part = LargestDivisorWithin(samples, most_bytes / of_sample);
  if (part == samples || part * of_sample >= most_bytes / 8) return part;
  for (int32_t next = part + 1; next * of_sample <= 4 * most_bytes; ++next) {
    if (samples % next == 0) return next;
  }
  return part;
}

}  // namespace

std::optional<BatchPart> PartOfBatch(const Graph& graph, const BatchLimits& limits) {
  const int32_t samples = SamplesOf(graph);
  if (samples < 2 || limits.most_bytes == 0) return std::nullopt;
  const int32_t of_part = SamplesOfPart(graph, samples, limits.most_bytes);
  if (of_part == samples) return std::nullopt;
  const double work = GraphCost(graph) / samples * of_part;
  if (work < limits.least_work * static_cast<double>(ConstantBytes(graph))) return std::nullopt;
  std::optional<Graph> part = Cutter(graph, samples, of_part).Run();
  if (!part) return std::nullopt;
  return BatchPart{*std::move(part), samples / of_part};
}

}  // namespace fuselite::fusion
