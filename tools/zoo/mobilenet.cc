// MobileNetV1 (Howard et al. 2017, table 1) and V2 (Sandler et al. 2018, table 2), width 1.0.
#include <array>

#include "tools/zoo/net_builder.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using kernels::Activation;

constexpr int32_t kClasses = 1000;

Net Classify(NetBuilder& net, const Net& features) {
  const Net pooled = net.Apply("MEAN", {features, net.IntConstant("spatial_axes", {1, 2})});
  return net.Apply("SOFTMAX", {net.Dense(pooled, kClasses)}, {{"beta", 1}});
}

struct SeparableBlock {
  int32_t channels, stride;
};
constexpr std::array<SeparableBlock, 13> kV1Blocks = {{{64, 1},
                                                       {128, 2},
                                                       {128, 1},
                                                       {256, 2},
                                                       {256, 1},
                                                       {512, 2},
                                                       {512, 1},
                                                       {512, 1},
                                                       {512, 1},
                                                       {512, 1},
                                                       {512, 1},
                                                       {1024, 2},
                                                       {1024, 1}}};

struct ResidualGroup {
  int32_t expansion, channels, blocks, stride;
};
constexpr std::array<ResidualGroup, 7> kV2Groups = {{{1, 16, 1, 1},
                                                     {6, 24, 2, 2},
                                                     {6, 32, 3, 2},
                                                     {6, 64, 4, 2},
                                                     {6, 96, 3, 1},
                                                     {6, 160, 3, 2},
                                                     {6, 320, 1, 1}}};

Net InvertedResidual(NetBuilder& net, const Net& x, int32_t expansion, int32_t channels,
                     int32_t stride) {
  const int32_t in = x.shape.dim(-1);
  Net y = expansion > 1 ? net.Conv(x, in * expansion, 1, 1, Activation::kRelu6) : x;
  y = net.Depthwise(y, 3, stride, Activation::kRelu6);
  y = net.Conv(y, channels, 1, 1, Activation::kNone);
  return stride == 1 && in == channels ? net.Add(x, y) : y;
}

}  // namespace

std::vector<std::byte> BuildMobileNetV1(uint64_t seed) {
  NetBuilder net("MobileNetV1 1.0 224, seeded weights", seed);
  Net x = net.Conv(net.Input("image", {1, 224, 224, 3}), 32, 3, 2, Activation::kRelu6);
  for (const SeparableBlock& block : kV1Blocks) {
    x = net.Depthwise(x, 3, block.stride, Activation::kRelu6);
    x = net.Conv(x, block.channels, 1, 1, Activation::kRelu6);
  }
  return net.Finish(Classify(net, x));
}

std::vector<std::byte> BuildMobileNetV2(uint64_t seed) {
  NetBuilder net("MobileNetV2 1.0 224, seeded weights", seed);
  Net x = net.Conv(net.Input("image", {1, 224, 224, 3}), 32, 3, 2, Activation::kRelu6);
  for (const ResidualGroup& group : kV2Groups) {
    for (int32_t block = 0; block < group.blocks; ++block) {
      const int32_t stride = block == 0 ? group.stride : 1;
      x = InvertedResidual(net, x, group.expansion, group.channels, stride);
    }
  }
  x = net.Conv(x, 1280, 1, 1, Activation::kRelu6);
  return net.Finish(Classify(net, x));
}

}  // namespace fuselite::tools
