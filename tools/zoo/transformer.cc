// A pre-norm transformer encoder (Vaswani et al. 2017; Xiong et al. 2020), written with the small
// operators that converters export it as: what the rewrites of fusion/ have to recognize.
#include <cmath>
#include <vector>

#include "tools/zoo/net_builder.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

constexpr int32_t kTokens = 128, kFeatures = 192, kHeads = 3, kLayers = 4, kClasses = 10;
constexpr int32_t kHeadFeatures = kFeatures / kHeads;
constexpr float kEpsilon = 1e-6f;

Net LayerNorm(NetBuilder& net, const Net& x) {
  const Net axis = net.IntConstant("feature_axis", {-1});
  const Net mean = net.Apply("MEAN", {x, axis}, {{"keep_dims", 1}});
  const Net square = net.Apply("SQUARED_DIFFERENCE", {x, mean});
  const Net variance = net.Apply("MEAN", {square, axis}, {{"keep_dims", 1}});
  const Net guarded = net.Add(variance, net.Constant("epsilon", {}, {kEpsilon}));
  const Net gamma = net.Constant("gamma", {kFeatures}, std::vector<float>(kFeatures, 1.0f));
  const Net scale = net.Apply("MUL", {net.Apply("RSQRT", {guarded}), gamma});
  const Net shift =
      net.Apply("SUB", {net.Zeros("beta", {kFeatures}), net.Apply("MUL", {mean, scale})});
  return net.Add(net.Apply("MUL", {x, scale}), shift);
}

// [1, tokens, features] -> [1, heads, tokens, features / heads]
Net SplitHeads(NetBuilder& net, const Net& x) {
  const Net shape = net.IntConstant("head_shape", {1, kTokens, kHeads, kHeadFeatures});
  const Net order = net.IntConstant("head_order", {0, 2, 1, 3});
  return net.Apply("TRANSPOSE", {net.Apply("RESHAPE", {x, shape}), order});
}

Net Attention(NetBuilder& net, const Net& x) {
  const Net query = SplitHeads(net, net.Dense(x, kFeatures));
  const Net key = SplitHeads(net, net.Dense(x, kFeatures));
  const Net value = SplitHeads(net, net.Dense(x, kFeatures));
  const Net scale = net.Constant("scale", {}, {1.0f / std::sqrt(float{kHeadFeatures})});
  const Net scores =
      net.Apply("BATCH_MATMUL", {net.Apply("MUL", {query, scale}), key}, {{"adj_y", 1}});
  const Net weights = net.Apply("SOFTMAX", {scores}, {{"beta", 1}});
  const Net mixed = net.Apply("BATCH_MATMUL", {weights, value});
  const Net order = net.IntConstant("head_order", {0, 2, 1, 3});
  const Net shape = net.IntConstant("feature_shape", {1, kTokens, kFeatures});
  return net.Dense(net.Apply("RESHAPE", {net.Apply("TRANSPOSE", {mixed, order}), shape}),
                   kFeatures);
}

Net FeedForward(NetBuilder& net, const Net& x) {
  const Net hidden = net.Apply("GELU", {net.Dense(x, 4 * kFeatures)}, {{"approximate", 0}});
  return net.Dense(hidden, kFeatures);
}

}  // namespace

std::vector<std::byte> BuildTransformer(uint64_t seed) {
  NetBuilder net("transformer encoder, seeded weights", seed);
  Net x = net.Input("tokens", {1, kTokens, kFeatures});
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    x = net.Add(x, Attention(net, LayerNorm(net, x)));
    x = net.Add(x, FeedForward(net, LayerNorm(net, x)));
  }
  const Net pooled = net.Apply("MEAN", {LayerNorm(net, x), net.IntConstant("token_axis", {1})});
  return net.Finish(net.Apply("SOFTMAX", {net.Dense(pooled, kClasses)}, {{"beta", 1}}));
}

}  // namespace fuselite::tools
