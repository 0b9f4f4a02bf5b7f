#include "fusion/match.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fuselite::fusion {
namespace {

const kernels::Field* ActivationField(const Node& node) {
  for (const kernels::Field& field : node.op->fields) {
    if (field.kind == kernels::FieldKind::kActivation) return &field;
  }
  return nullptr;
}

template <class T>
std::optional<std::vector<int32_t>> ToInt32(const TensorInfo& info) {
  std::vector<int32_t> out(info.elements());
  for (size_t i = 0; i < out.size(); ++i) {
    T element;
    std::memcpy(&element, static_cast<const T*>(info.data) + i, sizeof(T));
    out[i] = static_cast<int32_t>(element);
    if (out[i] != element) return std::nullopt;
  }
  return out;
}

}  // namespace

bool Is(const Graph& graph, NodeId node, std::string_view op) {
  return node != kNone && graph.alive(node) && graph.node(node).op->name == op;
}

bool IsBare(const Graph& graph, NodeId node, std::string_view op) {
  return Is(graph, node, op) && graph.node(node).tail.empty();
}

NodeId ProducerIs(const Graph& graph, ValueId value, std::string_view op) {
  const NodeId node = graph.producer(value);
  return IsBare(graph, node, op) ? node : kNone;
}

NodeId OwnProducerIs(const Graph& graph, ValueId value, std::string_view op) {
  if (value == kNone || graph.SingleUse(value) == kNone) return kNone;
  return ProducerIs(graph, value, op);
}

std::optional<float> ScalarConstant(const Graph& graph, ValueId value) {
  if (value == kNone) return std::nullopt;
  const TensorInfo& info = graph.value(value).info;
  if (!info.constant() || info.type != DataType::kFloat32 || info.elements() != 1) {
    return std::nullopt;
  }
  float scalar;
  std::memcpy(&scalar, info.data, sizeof scalar);
  return scalar;
}

bool IsScalar(const Graph& graph, ValueId value, float expected) {
  constexpr float kNo = std::numeric_limits<float>::quiet_NaN();
  const float scalar = ScalarConstant(graph, value).value_or(kNo);
  return std::abs(scalar - expected) <= 1e-6f * std::abs(expected);
}

std::optional<std::vector<int32_t>> IntConstant(const Graph& graph, ValueId value) {
  if (value == kNone) return std::nullopt;
  const TensorInfo& info = graph.value(value).info;
  if (!info.constant() && info.elements() > 0) return std::nullopt;
  switch (info.type) {
    case DataType::kInt8: return ToInt32<int8_t>(info);
    case DataType::kInt16: return ToInt32<int16_t>(info);
    case DataType::kInt32: return ToInt32<int32_t>(info);
    case DataType::kInt64: return ToInt32<int64_t>(info);
    default: return std::nullopt;
  }
}

std::optional<std::vector<float>> FloatConstant(const Graph& graph, ValueId value) {
  if (value == kNone) return std::nullopt;
  const TensorInfo& info = graph.value(value).info;
  if (!info.constant() || info.type != DataType::kFloat32) return std::nullopt;
  std::vector<float> out(info.elements());
  if (!out.empty()) std::memcpy(out.data(), info.data, out.size() * sizeof(float));
  return out;
}

bool OnlyReadWithin(const Graph& graph, const std::vector<NodeId>& nodes, NodeId last) {
  for (NodeId id : nodes) {
    for (ValueId v : graph.node(id).outputs) {
      if (graph.value(v).observed) return false;
      for (const auto& [reader, inputs] : graph.consumers(v)) {
        if (reader != last && std::ranges::find(nodes, reader) == nodes.end()) return false;
      }
    }
  }
  return true;
}

void SortUnique(std::vector<int>* ids) {
  std::ranges::sort(*ids);
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

bool IsFloat(const Graph& graph, ValueId value) {
  return value != kNone && graph.value(value).info.type == DataType::kFloat32;
}

bool HasDynamicRange(const Graph& graph, const Node& node) {
  const auto& product = node.op->product_inputs;
  return product && IsFloat(graph, node.inputs[product->x]) &&
         !IsFloat(graph, node.inputs[product->weights]);
}

kernels::Activation FusedActivation(const Node& node) {
  const kernels::Field* field = ActivationField(node);
  if (!field) return kernels::Activation::kNone;
  kernels::Activation activation;
  std::memcpy(&activation, static_cast<const std::byte*>(node.params.data()) + field->offset,
              sizeof activation);
  return activation;
}

bool NothingFollows(const Node& node) {
  return node.tail.empty() && FusedActivation(node) == kernels::Activation::kNone;
}

void SetFusedActivation(Node& node, kernels::Activation activation) {
  std::memcpy(static_cast<std::byte*>(node.params.data()) + ActivationField(node)->offset,
              &activation, sizeof activation);
}

NodeId PatternWalk::Take(NodeId id) {
  if (id == kNone || !NothingFollows(graph_.node(id))) return kNone;
  nodes.push_back(id);
  return id;
}

NodeId PatternWalk::Step(ValueId value, std::string_view op) {
  return Take(ProducerIs(graph_, value, op));
}

NodeId PatternWalk::OwnStep(ValueId value, std::string_view op) {
  return Take(OwnProducerIs(graph_, value, op));
}

}  // namespace fuselite::fusion
