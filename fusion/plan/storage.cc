#include "fusion/plan/storage.h"

#include <algorithm>

namespace fuselite::fusion {
namespace {

size_t ElementBytes(const TensorInfo& info) { return static_cast<size_t>(BitWidth(info.type)) / 8; }

// Strides of tail operands count rows of a dense operand; here its rows are `pitch` apart.
void Spread(kernels::TailOperand& operand, int64_t width, int64_t pitch) {
  if (width <= 0 || width == pitch) return;
  operand.batch_stride = operand.batch_stride / width * pitch;
  operand.row_stride = operand.row_stride / width * pitch;
}

}  // namespace

bool IsInternal(const Value& value) {
  return !value.input && !value.variable && !value.observed && !value.info.constant();
}

StoragePlan::StoragePlan(const Graph& graph)
    : graph_(&graph),
      storages_(graph.value_count()),
      inside_(graph.value_count()),
      silent_(graph.node_slots(), false) {
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    storages_[v] = {v, 0, graph.value(v).info.pitch()};
    inside_[v].push_back(v);
  }
}

size_t StoragePlan::Span(ValueId value) const {
  const TensorInfo& info = graph_->value(value).info;
  const int64_t width = info.shape.rank() ? info.shape.dim(-1) : 1;
  if (storages_[value].pitch == width || info.elements() == 0) return info.bytes();
  const int64_t rows = info.elements() / width;
  return static_cast<size_t>((rows - 1) * storages_[value].pitch + width) * ElementBytes(info);
}

// In a root whose rows move apart, a value can follow if its own rows are as far apart as they are.
bool StoragePlan::CanMove(ValueId value, ValueId root, int64_t pitch) const {
  const int64_t root_pitch = storages_[root].pitch;
  return pitch == root_pitch || storages_[value].pitch == root_pitch;
}

bool StoragePlan::Place(ValueId value, ValueId whole, size_t offset, int64_t pitch) {
  const ValueId root = storages_[value].root;
  const Storage target = storages_[whole];
  if (!IsInternal(graph_->value(root)) || target.root == root) return false;
  if (Span(value) != Span(root)) return false;  // what fills its root begins where that does
  const TensorInfo& info = graph_->value(root).info;
  if (info.elements() == 0) return false;
  const int64_t old_pitch = storages_[root].pitch;
  if (storages_[value].pitch != old_pitch && pitch != storages_[value].pitch) return false;
  const int64_t new_pitch = storages_[value].pitch == pitch ? old_pitch : pitch;
  // Those that went elsewhere with their root stay in its list: nothing asks for it any more.
  const auto& inside = inside_[root];
  if (!std::ranges::all_of(inside, [&](ValueId v) { return CanMove(v, root, new_pitch); })) {
    return false;
  }
  const size_t row_bytes = static_cast<size_t>(old_pitch) * ElementBytes(info);
  const size_t new_row_bytes = static_cast<size_t>(new_pitch) * ElementBytes(info);
  Move& move = moves_.emplace_back();
  move.to = target.root;
  for (ValueId v : inside) {
    Storage& s = storages_[v];
    move.before.emplace_back(v, s);
    if (new_pitch != old_pitch) {
      s.offset = s.offset / row_bytes * new_row_bytes + s.offset % row_bytes;
      s.pitch = new_pitch;
    }
    s.root = target.root;
    s.offset += target.offset + offset;
  }
  for (ValueId v : inside) inside_[target.root].push_back(v);
  return true;
}

void StoragePlan::Undo() {
  for (auto move = moves_.rbegin(); move != moves_.rend(); ++move) {
    for (const auto& [value, storage] : move->before) storages_[value] = storage;
    auto& inside = inside_[move->to];
    inside.erase(inside.end() - move->before.size(), inside.end());
  }
  moves_.clear();
}

std::vector<ValueId> StoragePlan::Repitched() const {
  std::vector<ValueId> values;
  for (const Move& move : moves_) {
    for (const auto& [value, storage] : move.before) {
      if (storage.pitch != storages_[value].pitch) values.push_back(value);
    }
  }
  return values;
}

kernels::OpDescription StoragePlan::Describe(NodeId id) const {
  kernels::OpDescription op = graph_->Describe(id);
  const Node& node = graph_->node(id);
  const auto pitch = [&](ValueId v, TensorInfo& info) {
    if (v != kNone && info.pitch() != storages_[v].pitch) info.row_pitch = storages_[v].pitch;
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) pitch(node.inputs[i], op.inputs[i]);
  for (size_t i = 0; i < op.outputs.size(); ++i) pitch(node.outputs[i], op.outputs[i]);
  for (kernels::TailStage& stage : op.tail.stages) {
    if (stage.operand.input < 0) continue;
    const TensorInfo& info = op.inputs[stage.operand.input];
    Spread(stage.operand, info.shape.rank() ? info.shape.dim(-1) : 1, info.pitch());
  }
  return op;
}

}  // namespace fuselite::fusion
