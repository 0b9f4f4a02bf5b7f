// A mean over whole images, written as a pool with one window: MEAN shares the pixels among
// threads, where a pool shares windows.
#include <array>
#include <utility>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/pool/pool.h"
#include "kernels/reduce/reduce.h"

namespace fuselite::fusion {
namespace {

// Values of an image from which on threads share its mean. Those of smaller ones stay pools, which
// have tails.
constexpr int64_t kLeastValues = 16384;

// Whether its only window has all pixels of the image and no others.
bool TakesWholeImages(const Graph& graph, const Node& pool) {
  const Shape& in = graph.value(pool.inputs[0]).info.shape;
  const Shape& out = graph.value(pool.outputs[0]).info.shape;
  const auto& params = pool.params.as<kernels::PoolParams>();
  return int64_t{in[1]} * in[2] * in[3] >= kLeastValues && params.filter_height == in[1] &&
         params.filter_width == in[2] && out[1] == 1 && out[2] == 1 &&
         params.activation == kernels::Activation::kNone;
}

}  // namespace

// Means of integers are rounded in another way.
bool MeanOfImage(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "AVERAGE_POOL_2D")) return false;
  const Node& pool = graph.node(id);
  if (!IsFloat(graph, pool.inputs[0]) || !pool.tail.empty() || !TakesWholeImages(graph, pool)) {
    return false;
  }
  Node mean = MakeNode("MEAN", {pool.inputs[0], AddInts(graph, std::array{1, 2}, "axes")});
  mean.params.as<kernels::ReduceParams>().keep_dims = true;
  mean.outputs = pool.outputs;
  mean.host_nodes = pool.host_nodes;
  if (!context.AcceptsComposite(graph.Describe(mean))) return false;
  context.Record("take the mean of whole images", mean.host_nodes);
  graph.Replace(id, std::move(mean));
  return true;
}

}  // namespace fuselite::fusion
