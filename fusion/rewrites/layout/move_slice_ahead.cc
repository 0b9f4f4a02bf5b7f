// Vision transformers write queries, keys and values as one layer, move the three to the outside
// and take them apart there. Taken apart before they are moved, each is a part of the layer's rows,
// an address, and its own TRANSPOSE mostly goes into attention. So do networks over time that gate
// one half of a layer's channels by the other, between a TRANSPOSE and the one that undoes it.
#include <algorithm>
#include <numeric>

#include "fusion/match.h"
#include "fusion/rewrites/layout/meets_transposes.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/movement/movement.h"

namespace fuselite::fusion {
namespace {

// What a node takes of a value along one dimension: of each of `runs`, which are `count` units of
// `length` elements each, its outputs have some.
struct Parts {
  struct Units {
    int32_t first = 0, count = 0;
  };
  ValueId whole = kNone;
  int32_t runs = 0, count = 0, length = 0;
  std::vector<Units> outputs;
};

// The copy as runs of `length` elements that are `period` apart; {0, 0} where it is something else.
std::pair<int64_t, int64_t> RunsOf(const kernels::StridedCopy& copy) {
  using Dim = kernels::StridedCopy::Dim;
  int64_t length = copy.element_bytes, period = 0, expected = 0;
  for (size_t d = copy.dims.size(); d-- > 0;) {
    const Dim& dim = copy.dims[d];
    if (dim.size == 1) continue;
    if (period == 0 && dim.in_stride == length) {
      length *= dim.size;
      continue;
    }
    if (period == 0) period = expected = dim.in_stride;
    if (dim.in_stride != expected) return {0, 0};
    expected *= dim.size;
  }
  return {length / copy.element_bytes, period / copy.element_bytes};
}

bool TakesParts(const kernels::OperatorDef& def) {
  return def.places != nullptr && !def.places_inputs && !def.reshapes;
}

// nullopt where the parts lie along more than one dimension. Precondition: TakesParts().
std::optional<Parts> PartsBy(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const kernels::OperatorDef& def = *node.op;
  const kernels::OpDescription op = graph.Describe(id);
  if (kernels::IsPacked(op.outputs[0].type)) return std::nullopt;  // parts may start within a byte
  const Result<kernels::Movement> movement = def.places(op);
  if (!movement.ok() || movement->parts.empty()) return std::nullopt;
  const int whole = movement->parts[0].input;
  const int64_t elements = op.inputs[whole].elements();
  if (elements == 0) return std::nullopt;
  const int64_t period = RunsOf(movement->parts[0].copy).second;
  const int64_t run = period == 0 ? elements : period;
  int64_t unit = run;
  for (const kernels::CopyPart& part : movement->parts) {
    const auto [length, own_period] = RunsOf(part.copy);
    const int64_t first = part.copy.in_offset / part.copy.element_bytes;
    const bool along = own_period == period && first + length <= run && length > 0 &&
                       part.copy.elements() * run == elements * length;
    if (!along) return std::nullopt;
    unit = std::gcd(unit, std::gcd(first, length));
  }
  Parts parts{node.inputs[whole], static_cast<int32_t>(elements / run),
              static_cast<int32_t>(run / unit), static_cast<int32_t>(unit),
              std::vector<Parts::Units>(op.outputs.size())};
  for (const kernels::CopyPart& part : movement->parts) {
    const int64_t first = part.copy.in_offset / part.copy.element_bytes;
    parts.outputs[part.output] = {static_cast<int32_t>(first / unit),
                                  static_cast<int32_t>(RunsOf(part.copy).first / unit)};
  }
  return parts;
}

// Whether attention alone reads `value`, behind what HeadsIntoAttention and MoveRotaryAhead take
// away in front of it: elsewhere parts of rows would be copied, to be moved then.
bool OnlyAttentionReads(const Graph& graph, ValueId value) {
  const auto goes = [&](const auto& reader) {
    if (Is(graph, reader.node, "FUSELITE_ATTENTION")) return true;
    const Node& node = graph.node(reader.node);
    const bool moves = Rearranges(graph, reader.node) || Is(graph, reader.node, "FUSELITE_ROTARY");
    return moves && node.inputs[0] == value && OnlyAttentionReads(graph, node.outputs[0]);
  };
  return !graph.value(value).observed && !graph.consumers(value).empty() &&
         std::ranges::all_of(graph.consumers(value), goes);
}

// The units as columns of what the whole was moved from: [rows, count * width].
struct Columns {
  ValueId source = kNone;
  int32_t rows = 0, width = 0;
  std::vector<ElementOrder> orders;  // in which each output then has its elements
};

std::optional<Columns> ColumnsOf(const Graph& graph, const Parts& parts) {
  const std::optional<Origin> origin = OriginOf(graph, parts.whole);
  if (!origin) return std::nullopt;
  const Shape shape = {parts.runs, parts.count, parts.length};
  const auto dimensions = origin->order.Split(shape);
  if (!dimensions || (*dimensions)[1].size() != 1) return std::nullopt;
  const ElementOrder::Piece piece = (*dimensions)[1][0];
  const int64_t elements = graph.value(origin->source).info.elements();
  Columns columns{.source = origin->source,
                  .rows = static_cast<int32_t>(elements / (parts.count * piece.stride)),
                  .width = static_cast<int32_t>(piece.stride),
                  .orders = {}};
  for (const Parts::Units& units : parts.outputs) {
    columns.orders.push_back(*origin->order.Without(shape, 1, piece, units.count));
  }
  return columns;
}

// The SLICEs that take the outputs' columns from `rows`, [rows, count * width]; each makes a value
// of its own, and none is in the graph yet.
std::vector<Node> SlicesOf(Graph& graph, ValueId rows, const Parts& parts, const Columns& columns,
                           const std::vector<int>& host_nodes) {
  std::vector<Node> slices;
  for (const Parts::Units& units : parts.outputs) {
    const Shape narrow = {columns.rows, units.count * columns.width};
    const int32_t begins[] = {0, units.first * columns.width};
    const ValueId begin = AddInts(graph, begins, "begin");
    const ValueId size = AddInts(graph, narrow.dims(), "size");
    Node slice = MakeNode("SLICE", {rows, begin, size});
    slice.outputs = {AddShaped(graph, parts.whole, narrow)};
    slice.host_nodes = host_nodes;
    slices.push_back(std::move(slice));
  }
  return slices;
}

// Whether kernels compute all the slices that would stand for the node, and as well as it is
// computed: SLICE and the operators that it replaces have types, ISAs and limits of their own. Only
// what the reference computes already may be left to the reference.
bool AcceptsSlices(const Graph& graph, NodeId id, const std::vector<Node>& slices,
                   RewriteContext& context) {
  const bool by_reference = context.Choose(graph.Describe(id)).reference;
  return std::ranges::all_of(slices, [&](const Node& slice) {
    const kernels::OpDescription op = graph.Describe(slice);
    return by_reference ? context.Accepts(op) : context.AcceptsComposite(op);
  });
}

}  // namespace

bool MoveSliceAhead(Graph& graph, NodeId id, RewriteContext& context) {
  if (!TakesParts(*graph.node(id).op)) return false;
  MeetsTransposes meets(graph);
  const auto goes = [&](ValueId v) { return OnlyAttentionReads(graph, v) || meets.From(v); };
  if (!std::ranges::all_of(graph.node(id).outputs, goes)) return false;
  const std::optional<Parts> parts = PartsBy(graph, id);
  if (!parts) return false;
  const Node node = graph.node(id);
  const std::optional<Columns> columns = ColumnsOf(graph, *parts);
  if (!columns) return false;
  const ValueId rows =
      AddShaped(graph, parts->whole, {columns->rows, parts->count * columns->width});
  std::vector<Node> slices = SlicesOf(graph, rows, *parts, *columns, node.host_nodes);
  if (!AcceptsSlices(graph, id, slices, context)) return false;
  const std::vector<int> concerned = HostNodesWithChains(graph, id);
  InsertReshape(graph, id, columns->source, rows, node.host_nodes);
  std::vector<Node> last;  // of those that make each output
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId part = slices[i].outputs[0];
    graph.InsertBefore(id, std::move(slices[i]));
    last.push_back(
        Rearranged(graph, id, part, columns->orders[i], node.outputs[i], node.host_nodes));
  }
  graph.Replace(id, std::move(last[0]));
  for (size_t i = 1; i < last.size(); ++i) graph.InsertBefore(id, std::move(last[i]));
  context.Record("take parts before moving them", concerned);
  return true;
}

}  // namespace fuselite::fusion
