// Chains of TRANSPOSE and reshapes, for the rewrites that merge and move them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fusion/graph/element_order.h"
#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// Whether the node exists, and only gives elements another order or shape: TRANSPOSE, or what
// reshapes.
bool Rearranges(const Graph& graph, NodeId id);

// What rearranging nodes make of `value` in the end, each of which alone reads what one before it
// gives; `value` where there is none.
ValueId AfterRearranging(const Graph& graph, ValueId value);

// What `value` was before nodes without tails only reshaped it.
ValueId BeforeReshapes(const Graph& graph, ValueId value);

// TRANSPOSEs and what only reshapes, without tails, from a source down to a value.
struct RearrangingChain {
  std::vector<NodeId> nodes;  // the last one first; empty: the value is its own source
  ValueId source = kNone;
  int transposes = 0;
};

// The chain that makes `value`. Its first node, the last of `nodes`, transposes: a source that was
// only reshaped is the value itself.
RearrangingChain ChainTo(const Graph& graph, ValueId value);

// The host's nodes behind `id` and behind the chains that make its inputs: what a rewrite concerns
// that lets the node read the chains' sources.
std::vector<int> HostNodesWithChains(const Graph& graph, NodeId id);

// As HostNodesWithChains(), for a rewrite that also passes over the reshapes before the chains.
std::vector<int> HostNodesWithMoves(const Graph& graph, NodeId id);

// The permutation of a TRANSPOSE, its entries counted from the front. The shape rule knows it.
std::vector<int32_t> PermutationOf(const Graph& graph, const Node& transpose);

// In which order the chain puts the source's elements; nullopt where its shapes cut through what it
// has moved, where no TRANSPOSE brings that order about, and where there are no elements.
std::optional<ElementOrder> OrderOf(const Graph& graph, const RearrangingChain& chain);

// What a value was before it was transposed, with the same quantization, and in which order the
// value has its elements.
struct Origin {
  ValueId source = kNone;
  ElementOrder order;
};

// nullopt where no TRANSPOSE made the value, its quantization is another one, or shapes cut through
// what was moved.
std::optional<Origin> OriginOf(const Graph& graph, ValueId value);

// The source's shape under which one TRANSPOSE gives the order, and that TRANSPOSE's result.
struct TransposePlan {
  Shape shape, result;
  std::vector<int32_t> permutation;
};
TransposePlan PlanTranspose(std::span<const ElementOrder::Piece> pieces);

// A constant list of int32, as operators take shapes and permutations.
ValueId AddInts(Graph& graph, std::span<const int32_t> values, std::string name);
// A constant of float32.
ValueId AddFloats(Graph& graph, std::span<const float> values, const Shape& shape,
                  std::string name);

// A value like `like`, which is made at run time, of another shape.
ValueId AddShaped(Graph& graph, ValueId like, const Shape& shape);

// With ones in front, up to `rank` dimensions.
Shape WithOnesInFront(const Shape& shape, int rank);
// The last `rank` dimensions at most: those in front are ones.
Shape WithRank(const Shape& shape, int rank);

// RESHAPE of `from`, its output left to the caller.
Node ReshapeTo(Graph& graph, ValueId from, const Shape& shape);

// RESHAPE of `from`, before `at`, that makes `to`.
void InsertReshape(Graph& graph, NodeId at, ValueId from, ValueId to,
                   const std::vector<int>& host_nodes);
// RESHAPE of `from`, before `at`, that makes a new value of `shape`, which is returned.
ValueId Reshaped(Graph& graph, NodeId at, ValueId from, const Shape& shape,
                 const std::vector<int>& host_nodes);

// Nodes before `at` that give `from` in `order`; then the node that makes `out` of that, which is
// returned for the caller to place. All stand for `host_nodes`.
Node Rearranged(Graph& graph, NodeId at, ValueId from, const ElementOrder& order, ValueId out,
                const std::vector<int>& host_nodes);

}  // namespace fuselite::fusion
