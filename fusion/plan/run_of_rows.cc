#include "fusion/plan/run_of_rows.h"

#include <algorithm>
#include <utility>

#include "fusion/match.h"
#include "fusion/plan/rows.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::fusion {
namespace {

// An only row is summed in another order than several are, as LiteRT does it (LayerNormRow).
constexpr int64_t kLeastRows = 2;

bool IsOfIntegers(const TensorInfo& info) {
  switch (info.type) {
    case DataType::kInt4:
    case DataType::kInt8:
    case DataType::kUInt8:
    case DataType::kInt16: return true;
    default: return false;
  }
}

// Whether the node sums floats in an order that kernels may choose by the number of rows. Products
// by integers sum integers, each row in its own scale; nothing else that computes row by row sums
// across elements that are not those of one row.
bool SumsFloats(const Graph& graph, const Node& node) {
  const auto& product = node.op->product_inputs;
  if (product) return !IsOfIntegers(graph.value(node.inputs[product->weights]).info);
  const bool reduces = node.op->samples == kernels::SampleRule::kApartByKept;
  return reduces && IsFloat(graph, node.inputs[0]);
}

}  // namespace

size_t RunOfRows::RowBytes(ValueId v) const {
  const TensorInfo& info = graph_.value(v).info;
  const int64_t width = info.shape.dim(-1), pitch = plan_.of(v).pitch;
  const size_t dense = info.bytes() / static_cast<size_t>(rows_);
  return pitch == width ? dense : dense / static_cast<size_t>(width) * static_cast<size_t>(pitch);
}

// Where rows of the innermost dimension lie apart, each row has to be made of some of these.
bool RunOfRows::CanBeCut(ValueId v) const {
  const Value& value = graph_.value(v);
  const Shape& shape = value.info.shape;
  if (value.variable || value.info.quantization.per_channel()) return false;
  if (BitWidth(value.info.type) < 8) return false;
  return plan_.of(v).pitch == value.info.pitch() || rows_ <= shape.elements(0, shape.rank() - 1);
}

bool RunOfRows::TakesInputs(const Node& node, const std::vector<bool>& by_rows) {
  std::map<ValueId, bool> inputs;
  std::set<ValueId> weights;
  size_t weight_bytes = weight_bytes_;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNone) continue;
    const Value& value = graph_.value(v);
    if (!by_rows[i] && !weights_.contains(v) && weights.insert(v).second) {
      weight_bytes += value.info.bytes();
    }
    if (value.info.constant()) continue;
    if (!CanBeCut(v)) return false;
    if (made_.contains(v)) {
      if (!by_rows[i]) return false;  // rows of all strips
      continue;
    }
    if (!nodes_.empty() && !graph_.Precedes(graph_.maker(v), nodes_.front())) return false;
    const auto known = inputs_.find(v);
    if (known != inputs_.end() && known->second != by_rows[i]) return false;
    if (inputs.try_emplace(v, by_rows[i]).first->second != by_rows[i]) return false;
  }
  if (weight_bytes > limits_.most_weights) return false;
  inputs_.merge(inputs);
  weights_.merge(weights);
  weight_bytes_ = weight_bytes;
  return true;
}

// What the node reads and writes of rows.
int64_t RunOfRows::BytesOf(const Node& node, const std::vector<bool>& by_rows) const {
  size_t bytes = graph_.value(node.outputs[0]).info.bytes();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (by_rows[i]) bytes += graph_.value(node.inputs[i]).info.bytes();
  }
  return static_cast<int64_t>(bytes);
}

bool RunOfRows::Add(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.outputs.size() != 1 || !CanBeCut(node.outputs[0])) return false;
  if (SumsFloats(graph_, node)) return false;
  const std::optional<std::vector<bool>> by_rows = InputsByRows(graph_, node, rows_);
  if (!by_rows) return false;
  const int64_t bytes = BytesOf(node, *by_rows);
  if (bytes > threads_ * limits_.most_of_step || !TakesInputs(node, *by_rows)) return false;
  nodes_.push_back(id);
  members_.insert(id);
  made_.insert(node.outputs[0]);
  if (node.op->reshapes) return true;
  ++steps_;
  bytes_ += bytes;
  return true;
}

bool RunOfRows::IsReadInside(ValueId v) const {
  for (const auto& [reader, uses] : graph_.consumers(v)) {
    if (members_.contains(reader)) return true;
  }
  return false;
}

void RunOfRows::DropUnreadReshapes() {
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = graph_.node(nodes_[i]);
    if (!node.op->reshapes || IsReadInside(node.outputs[0])) continue;
    members_.erase(nodes_[i]);
    made_.erase(node.outputs[0]);
    nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(i));
  }
}

std::vector<ValueId> RunOfRows::Outputs() const {
  std::vector<ValueId> outputs;
  for (NodeId id : nodes_) {
    const ValueId v = graph_.node(id).outputs[0];
    bool read = graph_.value(v).observed;
    for (const auto& [reader, uses] : graph_.consumers(v)) {
      read |= !members_.contains(reader);
    }
    if (read) outputs.push_back(v);
  }
  return outputs;
}

bool RunOfRows::HasOverlaps() const {
  std::set<std::pair<ValueId, size_t>> places;
  const auto is_new = [&](ValueId v) {
    return places.insert({plan_.of(v).root, plan_.of(v).offset}).second;
  };
  const auto is_new_input = [&](const auto& input) { return is_new(input.first); };
  return !std::ranges::all_of(inputs_, is_new_input) || !std::ranges::all_of(Outputs(), is_new);
}

std::vector<RunOfRows::Cut> RunOfRows::Cuts() const {
  const int64_t strips = std::min<int64_t>(threads_, bytes_ / limits_.least_of_strip);
  if (steps_ < 2 || strips < 2) return {};
  const int64_t rows = std::max(CeilDiv(rows_, strips), kLeastRows);
  int64_t count = rows_ / rows, rest = rows_ % rows;
  if (rest > 0 && rest < kLeastRows) {
    rest += rows;
    --count;
  }
  if (count + (rest > 0 ? 1 : 0) < 2) return {};
  std::vector<Cut> cuts = {{static_cast<int32_t>(rows), static_cast<int32_t>(count)}};
  if (rest > 0) cuts.push_back({static_cast<int32_t>(rest), 1});
  return cuts;
}

}  // namespace fuselite::fusion
