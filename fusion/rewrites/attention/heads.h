// Rows in which the heads of attention lie side by side, behind the TRANSPOSEs that take these
// apart.
#pragma once

#include <optional>
#include <vector>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// What TRANSPOSEs make an operand of attention from: [batches, rows, heads, channels].
struct RowsOfHeads {
  ValueId source = kNone;
  int32_t batches = 0, rows = 0, heads = 0, channels = 0;

  // With the heads of a row side by side, or each a row of its own.
  Shape shape(bool heads_apart) const {
    if (heads_apart) return {batches, rows, heads, channels};
    return {batches, rows, heads * channels};
  }
};

// `value` is [..., rows, channels], or [..., channels, rows] where it is turned. nullopt where it
// was not made of such rows.
std::optional<RowsOfHeads> RowsBehind(const Graph& graph, ValueId value, bool turned);

// The value under `shape`: what `rows.source` was reshaped from, if its rows are the same, which
// then may be part of a wider one.
ValueId UnderShape(Graph& graph, NodeId at, const RowsOfHeads& rows, const Shape& shape,
                   const std::vector<int>& hosts);

// [B, row, head, channel] as `out`, [B, head, row, channel] under any leading dimensions: the node
// that makes it, for the caller to place.
Node HeadsOutside(Graph& graph, NodeId at, ValueId from, ValueId out,
                  const std::vector<int>& hosts);

}  // namespace fuselite::fusion
