// Transposed convolutions of volumes to few channels as ordinary ones whose channels are the
// remainders.
#include "fusion/match.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

struct Layer {
  Shape in;
  int32_t filter, stride, channels;
  double padding = kSame;
};

std::vector<std::string> Ops(const Layer& layer, bool function = false, bool bias = true) {
  GraphBuilder b(layer.filter * 100 + layer.channels);
  const int32_t k = layer.filter, s = layer.stride;
  const auto out = [&](int32_t in) { return layer.padding == kSame ? in * s : (in - 1) * s + k; };
  const ValueId shape =
      b.Ints({layer.in[0], out(layer.in[1]), out(layer.in[2]), out(layer.in[3]), layer.channels});
  const ValueId weights = b.Constant({k, k, k, layer.channels, layer.in[4]});
  std::vector<ValueId> operands = {shape, weights, b.Input(layer.in)};
  if (bias) operands.push_back(b.Constant({layer.channels}));
  ValueId y = b.Op("CONV_3D_TRANSPOSE", operands,
                   {{"stride_d", s},
                    {"stride_h", s},
                    {"stride_w", s},
                    {"padding", layer.padding},
                    {"dilation_d_factor", 1},
                    {"dilation_h_factor", 1},
                    {"dilation_w_factor", 1}});
  if (function) y = b.Op("LOGISTIC", {y});
  b.Output(y);
  return ExpectFusedEqualsUnfused(b.graph(), 1e-4f).ops();
}

TEST(TransposeVolumeInBlocks, OfFewChannels) {
  const auto blocks = [](const char* conv) { return ElementsAre("PAD", conv, "TRANSPOSE"); };
  EXPECT_THAT(Ops({{1, 3, 4, 5, 6}, 3, 2, 1}), blocks("CONV_3D"));
  EXPECT_THAT(Ops({{2, 2, 3, 4, 9}, 4, 2, 2}), blocks("CONV_3D"));
  EXPECT_THAT(Ops({{1, 1, 5, 3, 17}, 3, 2, 1}, true), blocks("CONV_3D + logistic"));
  EXPECT_THAT(Ops({{1, 3, 4, 5, 6}, 3, 2, 1}, false, false), blocks("CONV_3D"));
  EXPECT_THAT(Ops({{1, 4, 3, 2, 5}, 4, 2, 1, kValid}), blocks("CONV_3D"));
  EXPECT_THAT(Ops({{1, 4, 3, 6, 5}, 2, 2, 1}), ElementsAre("CONV_3D", "TRANSPOSE"));
}

TEST(TransposeVolumeInBlocks, NotOfMore) {
  EXPECT_THAT(Ops({{1, 3, 4, 5, 6}, 3, 2, 3}), ElementsAre("CONV_3D_TRANSPOSE"));
  EXPECT_THAT(Ops({{1, 3, 4, 5, 6}, 3, 1, 1}), ElementsAre("CONV_3D_TRANSPOSE"));
  EXPECT_THAT(Ops({{1, 3, 4, 5, 6}, 3, 2, 1, kValid}), ElementsAre("CONV_3D_TRANSPOSE"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
