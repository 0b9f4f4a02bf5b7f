// Values as rows, and nodes that compute row by row.
//
// Some first dimensions of a value may make a number of rows: each of them is a run of elements,
// and they lie one behind the other. A node computes row by row where row r of what it writes comes
// from row r of some of its inputs and from what the others have for all rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// How many of the first dimensions make `rows` rows, the fewest that do; nullopt where none do.
std::optional<int> DimensionsOfRows(const Shape& shape, int64_t rows);
inline bool HasRows(const Shape& shape, int64_t rows) {
  return DimensionsOfRows(shape, rows).has_value();
}
// The shape of some of the rows: those dimensions become [1, ..., 1, some]. Precondition:
// HasRows(shape, rows).
Shape SomeRows(Shape shape, int64_t rows, int32_t some);

// Of each input of `node` whether it is read row by row, all others being the same for all of the
// `rows` rows of its outputs; nullopt where the node does not compute row by row, as far as its
// operator and the shapes of its operands tell. Constants are never read row by row.
std::optional<std::vector<bool>> InputsByRows(const Graph& graph, const Node& node, int64_t rows);

}  // namespace fuselite::fusion
