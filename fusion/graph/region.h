// Regions of nodes that compute one value from one other, element by element, whatever their ways.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fusion/graph/graph.h"
#include "runtime/support/short_list.h"

namespace fuselite::fusion {

// Nodes that compute the output of one of them from the value `root` and from constants of one
// element.
struct Region {
  std::vector<NodeId> nodes;  // the last one is the first
  ValueId root = kNone;
};

// Whether the node can be part of a region, as far as it alone decides.
bool IsPointwise(const Graph& graph, NodeId id);

// Grows a region upwards from the node that ends it, which is pointwise.
class RegionFinder {
 public:
  RegionFinder(const Graph& graph, NodeId last);

  // Adds nodes until a single value is read whose elements are those of the output, and which is
  // then the root; true, and the region holds until the next call. False where there is no larger
  // region, of at most `most` nodes: one that others read in part would be computed anyway.
  bool Next(size_t most);

  const Region& region() const { return region_; }

 private:
  bool IsScalar(ValueId v) const;
  bool Flows(ValueId v) const;
  bool OnlyReadInside(NodeId id) const;
  void Take(NodeId id);

  const Graph& graph_;
  const Shape& shape_;
  Region region_;
  ShortList<ValueId, 4> open_;  // what the region reads and does not make, the last made last
  bool flows_ = true;           // whether all of them have an element for each of the output
};

// Puts a region's nodes in their order, the last one last.
void SortRegion(const Graph& graph, Region* region);

// What the reference kernels make of `root`, which stands for elements of the region's root, by its
// nodes, which are in their order: a constant of as many elements.
Result<Value> EvaluateRegion(const Graph& graph, const Region& region,
                             std::span<const std::byte> root, int32_t elements);

// Those of a region, its nodes in their order, that nobody needs when its last one is gone.
std::vector<NodeId> DyingNodes(const Graph& graph, const Region& region);

}  // namespace fuselite::fusion
