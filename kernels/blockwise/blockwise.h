// FULLY_CONNECTED and EMBEDDING_LOOKUP with weights that are quantized in blocks: runs of a row's
// elements, mostly 32 to 256, share a scale. The scales are a constant of their own, which the
// model has beside the weights; here they are one more operand.
#pragma once

#include <span>
#include <vector>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/operator.h"
#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {

// FUSELITE_BLOCKWISE_FULLY_CONNECTED: x, weights [units, depth], bias [units] or absent, scales
// [units, depth / block]; parameters are FullyConnectedParams. As LiteRT computes it: each row of
// the input is quantized by itself, asymmetrically, whatever the parameters say (MakeDynamicScale);
// the sums of a block are integers; then
//   y[r][u] = act(bias[u] + scale[r] * sum over blocks b of scales[u][b] * sum of q[r][d] w[u][d])
// with the sum over d in block b. float32 with constant int8, int4 or int2 weights, and scales of
// float16 or float32.
inline constexpr int kBlockScalesInput = 3;

struct BlockwiseShape : FullyConnectedShape {
  int64_t block_size = 0;
};
Result<BlockwiseShape> ResolveBlockwise(const OpDescription& op);

// One unit is a row (reference), or some units of all rows.
Result<KernelPlan> PlanBlockwiseFullyConnected(const OpDescription&, const PlanContext&);
Result<std::unique_ptr<Kernel>> BuildBlockwiseFullyConnectedReference(const OpDescription&,
                                                                      const BuildContext&);

// FUSELITE_BLOCKWISE_EMBEDDING_LOOKUP: ids, rows [count, width], scales [count, width / block]:
// the rows of the ids, each element times its block's scale. int32 ids, and weights as above. An id
// out of range fails the run.
Result<std::unique_ptr<Kernel>> BuildBlockwiseEmbeddingLookup(const OpDescription&,
                                                              const BuildContext&);

// Puts the operator that takes block scales in the place of `*op` where one of its inputs has them:
// `scales[i]` is the host's tensor with those of input i, or -1. They become its last input.
// kUnsupported where there is no such operator.
Status UseBlockScales(std::span<const int> scales, const OperatorDef** op,
                      std::vector<int>* inputs);

// Calls f(weights), where weights[i] is element i in dense order.
template <class F>
auto WithBlockWeights(const TensorInfo& weights, F&& f) {
  if (IsPacked(weights.type)) return f(PackedIntegers(weights.type, weights.data));
  return f(static_cast<const int8_t*>(weights.data));
}

// Scale `i` in dense order.
inline float BlockScale(const TensorInfo& scales, int64_t i) {
  if (scales.type == DataType::kFloat32) return LoadUnaligned<float>(scales.data, i);
  return HalfToFloat(LoadUnaligned<uint16_t>(scales.data, i));
}

}  // namespace fuselite::kernels
