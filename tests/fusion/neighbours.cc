#include "tests/fusion/neighbours.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "fusion/rewrites/replace.h"
#include "fusion/validate.h"
#include "runtime/status.h"

namespace fuselite::fusion::testing {
namespace {

using internal::Join;
using kernels::Field;
using kernels::FieldKind;

// A graph as lists that can be edited freely; Build() brings the shapes up to date.
struct Draft {
  explicit Draft(const Graph& graph) : inputs(graph.inputs), outputs(graph.outputs) {
    for (ValueId v = 0; v < graph.value_count(); ++v) values.push_back(graph.value(v));
    for (NodeId id : graph.order()) nodes.push_back(graph.node(id));
  }

  ValueId Input(const TensorInfo& like) {
    Value value;
    value.info = like;
    value.info.data = nullptr;
    value.name = Join("input_", inputs.size());
    value.input = true;
    values.push_back(std::move(value));
    inputs.push_back(static_cast<ValueId>(values.size()) - 1);
    return inputs.back();
  }

  ValueId Constant(const std::vector<int32_t>& numbers) {
    Graph maker;
    TensorInfo info;
    info.type = DataType::kInt32;
    info.shape = {static_cast<int32_t>(numbers.size())};
    const ValueId made = maker.AddConstant(info, std::as_bytes(std::span(numbers)), "numbers");
    values.push_back(maker.value(made));
    return static_cast<ValueId>(values.size()) - 1;
  }

  // What `op` makes of `inputs`, computed right before node `at`.
  ValueId Insert(size_t at, std::string_view op, std::vector<ValueId> read) {
    Value value;
    value.info.type = DataType::kFloat32;
    value.name = Join(op, "_before_", at);
    values.push_back(std::move(value));
    Node node = MakeNode(op, std::move(read));
    node.outputs = {static_cast<ValueId>(values.size()) - 1};
    nodes.insert(nodes.begin() + static_cast<ptrdiff_t>(at), std::move(node));
    return static_cast<ValueId>(values.size()) - 1;
  }

  std::optional<Graph> Build() const {
    Graph graph;
    for (const Value& value : values) graph.AddValue(value);
    graph.inputs = inputs;
    graph.outputs = outputs;
    for (const Node& node : nodes) {
      const NodeId id = graph.AddNode(node);
      kernels::OpDescription op = graph.Describe(id);
      if (!kernels::Infer(op).ok()) return std::nullopt;
      for (size_t i = 0; i < op.outputs.size(); ++i) {
        graph.value(node.outputs[i]).info = op.outputs[i];
      }
    }
    return Validate(graph).ok() ? std::optional(std::move(graph)) : std::nullopt;
  }

  std::vector<ValueId> inputs, outputs;
  std::vector<Value> values;
  std::vector<Node> nodes;
};

// Operators that take the same operands.
constexpr std::array<std::array<std::string_view, 2>, 16> kSiblings = {{
    {"ADD", "SUB"},
    {"SUB", "ADD"},
    {"MUL", "DIV"},
    {"DIV", "MUL"},
    {"MAXIMUM", "MINIMUM"},
    {"MINIMUM", "MAXIMUM"},
    {"RELU", "RELU6"},
    {"RELU6", "RELU"},
    {"LOGISTIC", "TANH"},
    {"TANH", "LOGISTIC"},
    {"RSQRT", "SQRT"},
    {"SQRT", "RSQRT"},
    {"MEAN", "SUM"},
    {"GREATER", "LESS"},
    {"SQUARE", "ABS"},
    {"NEG", "ABS"},
}};

class Neighbours {
 public:
  using Visit = std::function<void(const std::string& what, const Graph&)>;
  Neighbours(const Graph& graph, const Visit& visit) : draft_(graph), visit_(visit) {}

  void All() {
    for (size_t v = 0; v < draft_.values.size(); ++v) OfValue(static_cast<ValueId>(v));
    for (size_t n = 0; n < draft_.nodes.size(); ++n) {
      OfOperands(n);
      OfOperator(n);
    }
  }

 private:
  template <class Change>
  void Try(const std::string& what, const Change& change) {
    Draft draft = draft_;
    change(draft);
    if (const std::optional<Graph> graph = draft.Build()) visit_(what, *graph);
  }

  void OfValue(ValueId v) {
    const Value& value = draft_.values[v];
    if (value.info.constant()) return OfConstant(v);
    if (!value.observed && !value.input) {
      Try(Join(value.name, " is read outside, too"), [&](Draft& draft) {
        draft.values[v].observed = true;
        draft.outputs.push_back(v);
      });
      OfReader(v);
    }
    if (value.observed) OfOutput(v);
    for (int d = 0; value.input && d < value.info.shape.rank(); ++d) {
      Try(Join(value.name, " is larger in dimension ", d), [&](Draft& draft) {
        Shape& shape = draft.values[v].info.shape;
        shape.set(d, shape[d] + 1);
      });
    }
    OfQuantization(v);
  }

  // What is read once more is stored; nobody outside looks at it.
  void OfReader(ValueId v) {
    const TensorInfo& info = draft_.values[v].info;
    const bool floats = info.type == DataType::kFloat32;
    if (!floats && info.quantization.empty()) return;
    Try(Join(draft_.values[v].name, " is read by another node, too"), [&](Draft& draft) {
      const size_t end = draft.nodes.size();
      const ValueId read = draft.Insert(end, floats ? "NEG" : "DEQUANTIZE", {v});
      draft.values[read].observed = true;
      draft.outputs.push_back(read);
    });
  }

  // What is given outside goes through another operator first, which can be its maker's tail.
  void OfOutput(ValueId v) {
    if (draft_.values[v].info.type != DataType::kFloat32 || draft_.values[v].variable) return;
    for (const std::string_view op : {"ABS", "RELU6"}) {
      Try(Join(draft_.values[v].name, " goes through ", op), [&](Draft& draft) {
        const ValueId made = draft.Insert(draft.nodes.size(), op, {v});
        draft.values[v].observed = false;
        draft.values[made].observed = true;
        std::ranges::replace(draft.outputs, v, made);
      });
    }
  }

  void OfQuantization(ValueId v) {
    const Value& value = draft_.values[v];
    if (value.info.quantization.empty()) return;
    const auto changed = [](auto values, auto change) {
      std::vector result(values.begin(), values.end());
      change(result[0]);
      return decltype(values)(std::move(result));
    };
    Try(Join(value.name, " has another scale"), [&](Draft& draft) {
      auto& scales = draft.values[v].info.quantization.scales;
      scales = changed(scales, [](float& scale) { scale *= 1.25f; });
    });
    Try(Join(value.name, " has another zero point"), [&](Draft& draft) {
      auto& zero_points = draft.values[v].info.quantization.zero_points;
      zero_points = changed(zero_points, [](int32_t& zero_point) { ++zero_point; });
    });
    const Shape& shape = value.info.shape;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == 1 || value.info.quantization.per_channel()) continue;
      Try(Join(value.name, " has a scale for each part of dimension ", d), [&](Draft& draft) {
        Quantization& own = draft.values[v].info.quantization;
        std::vector<float> scales(shape[d], own.scale());
        for (int32_t i = 0; i < shape[d]; i += 2) scales[i] *= 0.75f;
        own.zero_points = std::vector<int32_t>(shape[d], own.zero_point());
        own.scales = std::move(scales);
        own.axis = d;
      });
    }
    if (value.info.constant()) return;
    for (const DataType type : {DataType::kInt8, DataType::kUInt8, DataType::kInt16}) {
      if (type == value.info.type) continue;
      Try(Join(value.name, " is of ", DataTypeName(type)),
          [&](Draft& draft) { draft.values[v].info.type = type; });
    }
  }

  void OfConstant(ValueId v) {
    const Value& value = draft_.values[v];
    switch (value.info.type) {
      case DataType::kFloat32: OfNumbers<float>(v); break;
      case DataType::kInt32: OfNumbers<int32_t>(v); break;
      case DataType::kInt8: OfNumbers<int8_t>(v); break;
      default: break;
    }
    OfQuantization(v);
    if (value.info.type != DataType::kFloat32) return;
    Try(Join(value.name, " is an input"), [&](Draft& draft) {
      draft.values[v].info.data = nullptr;
      draft.values[v].input = true;
      draft.inputs.push_back(v);
    });
    const Shape& shape = value.info.shape;
    Try(Join(value.name, " is a column"),
        [&](Draft& draft) { draft.values[v].info.shape.push_back(1); });
    Try(Join(value.name, " is one number"), [&](Draft& draft) {
      for (int d = 0; d < shape.rank(); ++d) draft.values[v].info.shape.set(d, 1);
    });
    std::vector<int32_t> turned(shape.dims().rbegin(), shape.dims().rend());
    Try(Join(value.name, " has its dimensions in reverse"),
        [&](Draft& draft) { draft.values[v].info.shape = Shape(std::span(turned)); });
  }

  // Few numbers each, else the first, one in the middle and the last.
  template <class T>
  void OfNumbers(ValueId v) {
    const Value& value = draft_.values[v];
    std::vector<T> numbers(value.info.elements());
    if (numbers.empty()) return;
    std::memcpy(numbers.data(), value.info.data, numbers.size() * sizeof(T));
    const auto with = [&](const char* what, size_t i, const std::vector<T>& other) {
      if (other == numbers) return;
      Try(Join(value.name, " ", v, " ", what, " at ", i), [&](Draft& draft) {
        Graph maker;
        const ValueId made =
            maker.AddConstant(value.info, std::as_bytes(std::span(other)), value.name);
        draft.values[v] = maker.value(made);
      });
    };
    const size_t step = std::max<size_t>(1, numbers.size() <= 8 ? 1 : (numbers.size() - 1) / 2);
    for (size_t i = 0; i < numbers.size(); i += step) {
      std::vector<T> other = numbers;
      other[i] = static_cast<T>(numbers[i] + 1);
      with("is one more", i, other);
      other[i] = static_cast<T>(numbers[i] - 1);
      with("is one less", i, other);
      other[i] = static_cast<T>(-numbers[i]);
      with("is negative", i, other);
      other = numbers;
      std::swap(other[i], other[(i + 1) % other.size()]);
      with("changes places", i, other);
    }
  }

  void OfOperands(size_t n) {
    const Node& node = draft_.nodes[n];
    if (node.inputs.size() >= 2) {
      Try(Join(node.op->name, " ", n, " has its operands exchanged"),
          [&](Draft& draft) { std::swap(draft.nodes[n].inputs[0], draft.nodes[n].inputs[1]); });
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      const TensorInfo& info = draft_.values[node.inputs[i]].info;
      if (info.type == DataType::kFloat32) {
        Try(Join(node.op->name, " ", n, " has an input of its own for operand ", i),
            [&](Draft& draft) { draft.nodes[n].inputs[i] = draft.Input(info); });
        OfShapes(n, i);
        OfWaysTo(n, i);
      }
      for (ValueId other : Alike(n, node.inputs[i])) {
        Try(Join(node.op->name, " ", n, " has ", draft_.values[other].name, " for operand ", i),
            [&](Draft& draft) { draft.nodes[n].inputs[i] = other; });
      }
    }
  }

  // An operand that repeats along a dimension, or has not all of them.
  void OfShapes(size_t n, size_t i) {
    const Node& node = draft_.nodes[n];
    const TensorInfo& info = draft_.values[node.inputs[i]].info;
    for (int d = 0; d < info.shape.rank(); ++d) {
      if (info.shape[d] == 1) continue;
      Try(Join(node.op->name, " ", n, " has operand ", i, " for all of dimension ", d),
          [&](Draft& draft) {
            TensorInfo one = info;
            one.shape.set(d, 1);
            draft.nodes[n].inputs[i] = draft.Input(one);
          });
    }
    if (info.shape.rank() == 0) return;
    Try(Join(node.op->name, " ", n, " has operand ", i, " without its first dimension"),
        [&](Draft& draft) {
          TensorInfo one = info;
          one.shape = Shape(info.shape.dims().subspan(1));
          draft.nodes[n].inputs[i] = draft.Input(one);
        });
  }

  // Something between an operand and where it comes from.
  void OfWaysTo(size_t n, size_t i) {
    const Node& node = draft_.nodes[n];
    const ValueId from = node.inputs[i];
    const Shape& shape = draft_.values[from].info.shape;
    if (draft_.values[from].info.constant()) return;
    for (const std::string_view op : {"ABS", "RELU6"}) {
      Try(Join(node.op->name, " ", n, " has ", op, " of operand ", i), [&](Draft& draft) {
        const ValueId made = draft.Insert(n, op, {from});
        draft.nodes[n + 1].inputs[i] = made;
      });
    }
    const int rank = shape.rank();
    if (rank < 2 || shape[rank - 1] == 1 || shape[rank - 2] == 1) return;
    Try(Join(node.op->name, " ", n, " has operand ", i, " in another order"), [&](Draft& draft) {
      std::vector<int32_t> turned(shape.dims().begin(), shape.dims().end()), order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::swap(turned[rank - 1], turned[rank - 2]);
      std::swap(order[rank - 1], order[rank - 2]);
      const ValueId reshaped = draft.Insert(n, "RESHAPE", {from, draft.Constant(turned)});
      const ValueId made = draft.Insert(n + 1, "TRANSPOSE", {reshaped, draft.Constant(order)});
      draft.nodes[n + 2].inputs[i] = made;
    });
  }

  // The other values of the same type and shape that are there before node `n` runs: the last two.
  std::vector<ValueId> Alike(size_t n, ValueId value) {
    std::vector<ValueId> alike;
    const auto consider = [&](ValueId v) {
      const TensorInfo &a = draft_.values[v].info, &b = draft_.values[value].info;
      if (v != value && a.type == b.type && a.shape == b.shape) alike.push_back(v);
    };
    for (ValueId v : draft_.inputs) consider(v);
    for (size_t m = 0; m < n; ++m) {
      for (ValueId v : draft_.nodes[m].outputs) consider(v);
    }
    if (alike.size() > 2) alike.erase(alike.begin(), alike.end() - 2);
    return alike;
  }

  void OfOperator(size_t n) {
    const Node& node = draft_.nodes[n];
    for (const auto& [name, sibling] : kSiblings) {
      const kernels::OperatorDef* const other = kernels::FindOperator(sibling);
      if (node.op->name != name || other->params_bytes != node.op->params_bytes) continue;
      Try(Join(name, " ", n, " is ", sibling), [&](Draft& draft) {
        draft.nodes[n].op = other;
        draft.nodes[n].version = std::min(node.version, other->max_version);
      });
    }
    for (const Field& field : node.op->fields) OfField(n, field);
  }

  void OfField(size_t n, const Field& field) {
    const auto change = [&](auto number, auto other) {
      Try(Join(draft_.nodes[n].op->name, " ", n, " has ", field.name, " ", other),
          [&](Draft& draft) {
            number = static_cast<decltype(number)>(other);
            auto* const params = static_cast<std::byte*>(draft.nodes[n].params.data());
            std::memcpy(params + field.offset, &number, sizeof number);
          });
    };
    kernels::Params params = draft_.nodes[n].params;
    const std::byte* const at = static_cast<const std::byte*>(params.data()) + field.offset;
    const auto read = [&](auto number) {
      std::memcpy(&number, at, sizeof number);
      return number;
    };
    switch (field.kind) {
      case FieldKind::kActivation:
        for (int32_t activation = 0; activation <= 3; ++activation) {
          if (activation != read(int32_t())) change(int32_t(), activation);
        }
        break;
      case FieldKind::kPadding: change(int32_t(), 1 - read(int32_t())); break;
      case FieldKind::kBool: change(bool(), !read(bool())); break;
      case FieldKind::kInt32: change(int32_t(), read(int32_t()) + 1); break;
      case FieldKind::kFloat: change(float(), read(float()) * 2); break;
      default: break;
    }
  }

  const Draft draft_;
  const Visit& visit_;
};

}  // namespace

void ForEachNeighbour(const Graph& graph,
                      const std::function<void(const std::string& what, const Graph&)>& visit) {
  Neighbours(graph, visit).All();
}

}  // namespace fuselite::fusion::testing
