#include "fusion/rewrites/attention/heads.h"

#include <array>

#include "fusion/rewrites/rearrange.h"

namespace fuselite::fusion {
namespace {

using Piece = ElementOrder::Piece;
using Pieces = std::vector<Piece>;

}  // namespace

std::optional<RowsOfHeads> RowsBehind(const Graph& graph, ValueId value, bool turned) {
  const RearrangingChain chain = ChainTo(graph, value);
  const Shape& shape = graph.value(value).info.shape;
  if (shape.rank() < 3) return std::nullopt;
  const int32_t rows = shape.dim(turned ? -1 : -2), channels = shape.dim(turned ? -2 : -1);
  const std::optional<ElementOrder> order = OrderOf(graph, chain);
  if (!order) return std::nullopt;
  const int32_t all_heads = static_cast<int32_t>(shape.elements(0, shape.rank() - 2));
  const auto split = order->Split({all_heads, shape.dim(-2), shape.dim(-1)});
  if (!split) return std::nullopt;
  // A single row, a decoder's next token, and a single head lie the same way without a TRANSPOSE.
  const Pieces& outer = (*split)[0];
  const bool several = !outer.empty() && outer.back().stride == channels;
  const auto heads = several ? static_cast<int32_t>(outer.back().size) : 1;
  const int32_t batches = all_heads / heads;
  Pieces expected_outer;
  if (batches > 1) expected_outer.push_back({batches, int64_t{rows} * heads * channels});
  if (heads > 1) expected_outer.push_back({heads, channels});
  const Pieces of_rows = rows == 1 ? Pieces{} : Pieces{{rows, int64_t{heads} * channels}};
  if (outer != expected_outer || (*split)[turned ? 2 : 1] != of_rows ||
      (*split)[turned ? 1 : 2] != Pieces{{channels, 1}}) {
    return std::nullopt;
  }
  return RowsOfHeads{chain.source, batches, rows, heads, channels};
}

ValueId UnderShape(Graph& graph, NodeId at, const RowsOfHeads& rows, const Shape& shape,
                   const std::vector<int>& hosts) {
  ValueId from = BeforeReshapes(graph, rows.source);
  const Shape& before = graph.value(from).info.shape;
  if (before.rank() == 0 || before.dim(-1) != shape.dim(-1)) from = rows.source;
  if (graph.value(from).info.shape == shape) return from;
  return Reshaped(graph, at, from, shape, hosts);
}

Node HeadsOutside(Graph& graph, NodeId at, ValueId from, ValueId out,
                  const std::vector<int>& hosts) {
  const Shape inside = graph.value(from).info.shape;
  const ElementOrder order = *ElementOrder::OfTranspose(inside, std::array{0, 2, 1, 3});
  return Rearranged(graph, at, from, order, out, hosts);
}

}  // namespace fuselite::fusion
