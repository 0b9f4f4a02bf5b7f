// TensorFlow's pools of volumes, as what TFLite has: windows over images, then over what lies in
// their place along the depth.
#include <algorithm>
#include <utility>
#include <vector>

#include "fusion/match.h"
#include "fusion/rewrites/rearrange.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/pool/pool.h"
#include "kernels/tensorflow/pool3d.h"

namespace fuselite::fusion {
namespace {

// A pool of images, which a volume is under the shape `in`, with windows of one element.
kernels::OpDescription PoolOf(const kernels::OpDescription& volume, const Shape& in,
                              const Shape& out) {
  kernels::OpDescription pool;
  pool.op =
      kernels::FindOperator(kernels::TakesMaxima(*volume.op) ? "MAX_POOL_2D" : "AVERAGE_POOL_2D");
  pool.inputs = {volume.inputs[0]};
  pool.inputs[0].shape = in;
  pool.outputs = {volume.outputs[0]};
  pool.outputs[0].shape = out;
  auto& params = pool.params.as<kernels::PoolParams>();
  params.padding = volume.params.as<kernels::Pool3DParams>().padding;
  params.filter_height = params.filter_width = params.stride_h = params.stride_w = 1;
  return pool;
}

// Over height and width, and over the depth, if windows cover more than an element there.
std::vector<kernels::OpDescription> PoolsOf(const kernels::OpDescription& volume) {
  const auto& windows = volume.params.as<kernels::Pool3DParams>();
  const auto &filter = windows.filter, &stride = windows.stride;
  const Shape &in = volume.inputs[0].shape, &out = volume.outputs[0].shape;
  const auto covers = [&](int d) { return filter[d] > 1 || stride[d] > 1; };
  std::vector<kernels::OpDescription> pools;
  if (covers(1) || covers(2)) {
    const int32_t images = in[0] * in[1];
    pools.push_back(PoolOf(volume, Shape({images, in[2], in[3], in[4]}),
                           Shape({images, out[2], out[3], in[4]})));
    auto& params = pools.back().params.as<kernels::PoolParams>();
    params.filter_height = filter[1];
    params.filter_width = filter[2];
    params.stride_h = stride[1];
    params.stride_w = stride[2];
  }
  if (covers(0)) {
    const int32_t places = out[2] * out[3];
    pools.push_back(PoolOf(volume, Shape({in[0], in[1], places, in[4]}),
                           Shape({in[0], out[1], places, in[4]})));
    auto& params = pools.back().params.as<kernels::PoolParams>();
    params.filter_height = filter[0];
    params.stride_h = stride[0];
  }
  return pools;
}

}  // namespace

bool PoolVolumeByImages(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FlexMaxPool3D") && !Is(graph, id, "FlexAvgPool3D")) return false;
  const kernels::OpDescription volume = graph.Describe(id);
  // Dimensions that are joined must stay below 2^31.
  if (volume.outputs[0].elements() == 0 || volume.inputs[0].elements() > INT32_MAX) return false;
  const std::vector<kernels::OpDescription> pools = PoolsOf(volume);
  const auto accepted = [&](const auto& pool) { return context.AcceptsComposite(pool); };
  if (!std::ranges::all_of(pools, accepted)) return false;
  const std::vector<int> host_nodes = graph.node(id).host_nodes;
  ValueId x = graph.node(id).inputs[0];
  for (const kernels::OpDescription& pool : pools) {
    x = Reshaped(graph, id, x, pool.inputs[0].shape, host_nodes);
    Node node = MakeNode(pool.op->name, {x});
    node.params = pool.params;
    node.host_nodes = host_nodes;
    node.outputs = {x = AddShaped(graph, x, pool.outputs[0].shape)};
    graph.InsertBefore(id, std::move(node));
  }
  Node shaped = ReshapeTo(graph, x, volume.outputs[0].shape);
  shaped.outputs = graph.node(id).outputs;
  shaped.host_nodes = host_nodes;
  graph.Replace(id, std::move(shaped));
  context.Record("pool a volume by its images", host_nodes);
  return true;
}

}  // namespace fuselite::fusion
