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

// A pool of images, which a volume is under the shape `in`.
struct ImagePool {
  kernels::OpDescription op;

  ImagePool(const kernels::OpDescription& volume, const Shape& in, const Shape& out) {
    const bool maxima = kernels::TakesMaxima(*volume.op);
    op.op = kernels::FindOperator(maxima ? "MAX_POOL_2D" : "AVERAGE_POOL_2D");
    op.inputs = {volume.inputs[0]};
    op.outputs = {volume.outputs[0]};
    op.inputs[0].shape = in;
    op.outputs[0].shape = out;
    auto& pool = op.params.as<kernels::PoolParams>();
    pool.padding = volume.params.as<kernels::Pool3DParams>().padding;
    pool.filter_height = pool.filter_width = pool.stride_h = pool.stride_w = 1;
  }
  kernels::PoolParams& params() { return op.params.as<kernels::PoolParams>(); }
};

// Over height and width, and over the depth, if windows cover more than an element there.
std::vector<ImagePool> PoolsOf(const kernels::OpDescription& volume) {
  const auto& params = volume.params.as<kernels::Pool3DParams>();
  const auto &filter = params.filter, &stride = params.stride;
  const Shape &in = volume.inputs[0].shape, &out = volume.outputs[0].shape;
  std::vector<ImagePool> pools;
  const auto covers = [&](int d) { return filter[d] > 1 || stride[d] > 1; };
  if (covers(1) || covers(2)) {
    ImagePool& pool = pools.emplace_back(volume, Shape({in[0] * in[1], in[2], in[3], in[4]}),
                                         Shape({in[0] * in[1], out[2], out[3], in[4]}));
    pool.params().filter_height = filter[1];
    pool.params().filter_width = filter[2];
    pool.params().stride_h = stride[1];
    pool.params().stride_w = stride[2];
  }
  if (covers(0)) {
    ImagePool& pool = pools.emplace_back(volume, Shape({in[0], in[1], out[2] * out[3], in[4]}),
                                         Shape({in[0], out[1], out[2] * out[3], in[4]}));
    pool.params().filter_height = filter[0];
    pool.params().stride_h = stride[0];
  }
  return pools;
}

}  // namespace

bool PoolVolumeByImages(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "FlexMaxPool3D") && !Is(graph, id, "FlexAvgPool3D")) return false;
  const kernels::OpDescription volume = graph.Describe(id);
  // Dimensions that are joined must stay below 2^31.
  if (volume.outputs[0].elements() == 0 || volume.inputs[0].elements() > INT32_MAX) return false;
  const std::vector<ImagePool> pools = PoolsOf(volume);
  const auto accepted = [&](const ImagePool& pool) { return context.AcceptsComposite(pool.op); };
  if (!std::ranges::all_of(pools, accepted)) return false;
  const std::vector<int> host_nodes = graph.node(id).host_nodes;
  ValueId x = graph.node(id).inputs[0];
  for (const ImagePool& pool : pools) {
    x = Reshaped(graph, id, x, pool.op.inputs[0].shape, host_nodes);
    Node node = MakeNode(pool.op.op->name, {x});
    node.params = pool.op.params;
    node.host_nodes = host_nodes;
    node.outputs = {x = AddShaped(graph, x, pool.op.outputs[0].shape)};
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
