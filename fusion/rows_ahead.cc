#include "fusion/rows_ahead.h"

#include <algorithm>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "kernels/concatenation/concatenation.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gather/gather.h"

namespace fuselite::fusion {
namespace {

// Reading the weights then takes less time than multiplying by them, wherever they lie; a loop that
// ends early has computed fewer rows in vain than it needs turns to be noticed.
constexpr int32_t kRows = 16;

// With as many rows a turn multiplies for longer than it reads weights: an LSTM of 128 cells and
// eight rows took 15.6 us without this, and 16.8 with it.
constexpr int64_t kManyRows = 4;

class Taker {
 public:
  explicit Taker(Graph& body) : body_(body) {}

  std::vector<RowsAhead> Take() && {
    for (NodeId id : body_.order()) {
      if (Is(body_, id, "GATHER") && TakesRow(body_.node(id)) && IsValue(id)) TakeProducts(id);
    }
    return std::move(taken_);
  }

 private:
  bool TakesRow(const Node& gather) const {
    const auto& params = gather.params.as<kernels::GatherParams>();
    const Value& from = body_.value(gather.inputs[0]);
    const Value& index = body_.value(gather.inputs[1]);
    const bool counts = index.info.type == DataType::kInt32 || index.info.type == DataType::kInt64;
    return params.axis == 0 && from.input && index.input && counts && index.info.elements() == 1 &&
           from.info.shape[0] > 1 && from.info.elements() > 0;
  }

  // The row, and what has its bytes in another shape.
  std::vector<ValueId> NamesOf(ValueId row) const {
    std::vector<ValueId> names = {row};
    for (size_t i = 0; i < names.size(); ++i) {
      for (const auto& [id, uses] : body_.consumers(names[i])) {
        const Node& node = body_.node(id);
        if (node.op->reshapes && IsValue(id)) names.push_back(node.outputs[0]);
      }
    }
    return names;
  }

  void TakeProducts(NodeId gather) {
    const Node node = body_.node(gather);
    RowsAhead ahead;
    ahead.from = node.inputs[0];
    ahead.index = node.inputs[1];
    ahead.rows = std::min(kRows, body_.value(ahead.from).info.shape[0]);
    for (ValueId name : NamesOf(node.outputs[0])) {
      for (NodeId reader : ReadersOf(name)) {
        if (Is(body_, reader, "CONCATENATION")) SplitProducts(reader, name);
      }
      for (NodeId reader : ReadersOf(name)) {
        if (IsProduct(reader) && IsValue(reader) && !IsSeen(reader)) {
          TakeProduct(reader, ahead);
        }
      }
    }
    if (!ahead.results.empty()) taken_.push_back(std::move(ahead));
  }

  std::vector<NodeId> ReadersOf(ValueId value) const {
    std::vector<NodeId> readers;
    for (const auto& [id, uses] : body_.consumers(value)) readers.push_back(id);
    return readers;
  }

  // Whether what the node makes stays as it is: it is no state, nor made of it.
  bool IsValue(NodeId id) const { return body_.producer(body_.node(id).outputs[0]) == id; }

  bool IsSeen(NodeId id) const { return body_.value(body_.node(id).outputs[0]).observed; }

  // Whether the node, which reads few rows that are no constant, multiplies them by constants.
  bool IsProduct(NodeId id) const {
    if (!Is(body_, id, "FULLY_CONNECTED")) return false;
    const Node& node = body_.node(id);
    const bool constant = std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId v) {
      return v == kNone || body_.value(v).info.constant();
    });
    if (!constant) return false;
    const Value& product = body_.value(node.outputs[0]);
    const int32_t units = body_.value(node.inputs[1]).info.shape[0];
    return product.info.elements() < kManyRows * units;
  }

  // Products of `row` side by side with other floats become sums of its product and of theirs.
  void SplitProducts(NodeId id, ValueId row) {
    const Node node = body_.node(id);
    const Shape shape = body_.value(node.outputs[0]).info.shape;
    const int axis = node.params.as<kernels::ConcatenationParams>().axis;
    if ((axis < 0 ? axis + shape.rank() : axis) != shape.rank() - 1 || node.inputs.size() < 2 ||
        !IsValue(id) || std::ranges::count(node.inputs, row) != 1) {
      return;
    }
    const auto fits = [&](NodeId reader) {
      return IsProduct(reader) && IsFloat(body_, body_.node(reader).inputs[1]) &&
             body_.value(body_.node(reader).inputs[1]).info.shape[1] == shape.dim(-1);
    };
    const std::vector<NodeId> readers = ReadersOf(node.outputs[0]);
    if (!std::ranges::any_of(readers, fits)) return;
    const int32_t begin = ColumnOf(node, row);
    const int32_t end = begin + body_.value(row).info.shape.dim(-1);
    const ValueId others = WithoutRow(id, row);
    for (NodeId reader : readers) {
      if (fits(reader)) SplitProduct(reader, row, others, begin, end);
    }
  }

  // Where the row begins in what CONCATENATION makes of it.
  int32_t ColumnOf(const Node& concatenation, ValueId row) const {
    int32_t column = 0;
    for (ValueId v : concatenation.inputs) {
      if (v == row) break;
      column += body_.value(v).info.shape.dim(-1);
    }
    return column;
  }

  // The concatenation of its other inputs.
  ValueId WithoutRow(NodeId id, ValueId row) {
    Node rest = body_.node(id);
    std::erase(rest.inputs, row);
    if (rest.inputs.size() == 1) return rest.inputs[0];
    const TensorInfo& whole = body_.value(rest.outputs[0]).info;
    Shape shape = whole.shape;
    shape.set(shape.rank() - 1, shape.dim(-1) - body_.value(row).info.shape.dim(-1));
    rest.outputs = {AddFloat(shape)};
    const ValueId others = rest.outputs[0];
    body_.InsertBefore(id, std::move(rest));
    return others;
  }

  void SplitProduct(NodeId id, ValueId row, ValueId others, int32_t begin, int32_t end) {
    const Node whole = body_.node(id);
    const Shape out = body_.value(whole.outputs[0]).info.shape;
    Node of_row = whole, of_others = whole;
    SetFusedActivation(of_row, kernels::Activation::kNone);
    SetFusedActivation(of_others, kernels::Activation::kNone);
    of_row.inputs = {row, Columns(whole.inputs[1], begin, end, true), kNone};
    of_row.outputs = {AddFloat(out)};
    of_others.inputs[0] = others;
    of_others.inputs[1] = Columns(whole.inputs[1], begin, end, false);
    of_others.outputs = {AddFloat(out)};
    Node sum = MakeNode("ADD", {of_others.outputs[0], of_row.outputs[0]});
    SetFusedActivation(sum, FusedActivation(whole));
    sum.outputs = whole.outputs;
    sum.host_nodes = whole.host_nodes;
    body_.InsertBefore(id, std::move(of_row));
    body_.InsertBefore(id, std::move(of_others));
    body_.Replace(id, std::move(sum));
  }

  // Columns [begin, end) of float weights [units, depth]; without `within`, all others.
  ValueId Columns(ValueId weights, int32_t begin, int32_t end, bool within) {
    const TensorInfo& info = body_.value(weights).info;
    const int32_t units = info.shape[0], depth = info.shape[1];
    const auto* const from = static_cast<const std::byte*>(info.data);
    std::vector<std::byte> columns;
    const auto append = [&](int64_t unit, int32_t first, int32_t last) {
      const std::byte* const row = from + unit * depth * sizeof(float);
      columns.insert(columns.end(), row + first * sizeof(float), row + last * sizeof(float));
    };
    for (int32_t unit = 0; unit < units; ++unit) {
      if (within) {
        append(unit, begin, end);
      } else {
        append(unit, 0, begin);
        append(unit, end, depth);
      }
    }
    const int32_t width = within ? end - begin : depth - (end - begin);
    return body_.AddConstant({.type = DataType::kFloat32, .shape = Shape({units, width})}, columns,
                             body_.value(weights).name);
  }

  ValueId AddFloat(const Shape& shape) {
    Value value;
    value.info = {.type = DataType::kFloat32, .shape = shape};
    return body_.AddValue(std::move(value));
  }

  // Moves a product of the row to the graph that computes several.
  void TakeProduct(NodeId id, RowsAhead& ahead) {
    Node product = body_.node(id);
    body_.Remove(id);
    const ValueId result = product.outputs[0];
    const TensorInfo& info = body_.value(product.inputs[0]).info;
    const Shape& weights = body_.value(product.inputs[1]).info.shape;
    const auto rows = static_cast<int32_t>(info.elements() / weights[1]) * ahead.rows;
    product.params.as<kernels::FullyConnectedParams>().keep_num_dims = false;
    Graph& graph = ahead.graph;
    if (graph.inputs.empty()) {
      Value input = body_.value(product.inputs[0]);
      input.info.shape = Shape({rows, weights[1]});
      input.input = true;
      graph.inputs.push_back(graph.AddValue(std::move(input)));
    }
    product.inputs[0] = graph.inputs[0];
    for (size_t i = 1; i < product.inputs.size(); ++i) {
      if (product.inputs[i] == kNone) continue;
      product.inputs[i] = graph.AddValue(body_.value(product.inputs[i]));
    }
    Value output = body_.value(result);
    output.info.shape = Shape({rows, weights[0]});
    product.outputs[0] = graph.AddValue(std::move(output));
    graph.outputs.push_back(product.outputs[0]);
    graph.AddNode(std::move(product));
    body_.value(result).input = true;
    body_.inputs.push_back(result);
    ahead.results.push_back(result);
  }

  Graph& body_;
  std::vector<RowsAhead> taken_;
};

}  // namespace

std::vector<RowsAhead> TakeRowsAhead(Graph& body) { return Taker(body).Take(); }

}  // namespace fuselite::fusion
