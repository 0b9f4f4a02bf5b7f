// Networks for sound: a keyword among frames of features (Zhang et al. 2017), the same as a stream
// of frames whose convolutions keep what they have seen in variables (Rybakov et al. 2020), and a
// mask over a spectrum by two LSTMs (Westhausen and Meyer 2020).
#include <string>
#include <vector>

#include "kernels/lstm/lstm.h"
#include "tools/zoo/net_builder.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using kernels::Activation;

constexpr int32_t kKeywords = 12;

constexpr int32_t kFrames = 3, kFeatures = 40;  // of a step of the stream

// A convolution over the last frames of the stream, of which it keeps those that the next step
// needs: [1, frames, 1, channels] -> [1, frames, 1, units].
Net StreamingConv(NetBuilder& net, const Net& x, const std::string& name, int32_t units,
                  int32_t length) {
  const int32_t kept = length - 1, channels = x.shape.dim(-1);
  const Net state = net.Variable(name);
  const Net frames =
      net.Apply("CONCATENATION", {net.Read(state, {1, kept, 1, channels}), x}, {{"axis", 1}});
  net.Assign(state, net.Apply("SLICE", {frames, net.IntConstant("begin", {0, x.shape[1], 0, 0}),
                                        net.IntConstant("size", {1, kept, 1, channels})}));
  const Net weights = net.Random("weights", {units, length, 1, channels}, length * channels);
  return net.Apply("CONV_2D", {frames, weights, net.Zeros("bias", {units})},
                   {{"padding", static_cast<double>(kernels::Padding::kValid)},
                    {"stride_w", 1},
                    {"stride_h", 1},
                    {"fused_activation_function", static_cast<double>(Activation::kRelu)}});
}

// [1, time, features] -> [1, time, cells]
Net Lstm(NetBuilder& net, const Net& x, const std::string& name, int32_t cells) {
  const int32_t features = x.shape.dim(-1);
  std::vector<Net> inputs(kernels::kLstmInputs);
  inputs[kernels::kLstmX] = x;
  for (int gate = 0; gate < kernels::kLstmGates; ++gate) {
    inputs[kernels::kLstmInputWeights + gate] =
        net.Random("input_weights", {cells, features}, 2 * features);
    inputs[kernels::kLstmRecurrentWeights + gate] =
        net.Random("recurrent_weights", {cells, cells}, 2 * cells);
    inputs[kernels::kLstmBias + gate] = net.Zeros("gate_bias", {cells});
  }
  inputs[kernels::kLstmOutputState] = net.State(name + ".output_state", {1, cells});
  inputs[kernels::kLstmCellState] = net.State(name + ".cell_state", {1, cells});
  return net.Apply("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs,
                   {{"fused_activation_function", static_cast<double>(Activation::kTanh)}});
}

}  // namespace

std::vector<std::byte> BuildKeyword(uint64_t seed) {
  NetBuilder net("depthwise-separable keyword network, seeded weights", seed);
  Net x = net.Conv(net.Input("features", {1, 49, 10, 1}), 64, 5, 2, Activation::kRelu);
  for (int block = 0; block < 4; ++block) {
    x = net.Depthwise(x, 3, 1, Activation::kRelu);
    x = net.Conv(x, 64, 1, 1, Activation::kRelu);
  }
  const Net pooled = net.Apply("MEAN", {x, net.IntConstant("spatial_axes", {1, 2})});
  return net.Finish(net.Apply("SOFTMAX", {net.Dense(pooled, kKeywords)}, {{"beta", 1}}));
}

std::vector<std::byte> BuildWakeWord(uint64_t seed) {
  constexpr int32_t kLength = 5, kUnits = 32;
  NetBuilder net("streaming wake word, seeded weights", seed);
  const Net frames = net.Input("frames", {1, kFrames, 1, kFeatures});
  net.CallOnce(1);
  const Net first = StreamingConv(net, frames, "first", kUnits, kLength);
  const Net second = StreamingConv(net, first, "second", kUnits, kLength);
  const Net flat = net.Apply("RESHAPE", {second, net.IntConstant("shape", {1, kFrames * kUnits})});
  const Net probability = net.Apply("LOGISTIC", {net.Dense(flat, 1)});
  net.End("serving_default", {{"output", probability}});
  net.Begin("initialize");
  net.Assign(net.Variable("first"), net.Zeros("silence", {1, kLength - 1, 1, kFeatures}));
  net.Assign(net.Variable("second"), net.Zeros("silence", {1, kLength - 1, 1, kUnits}));
  net.End("", {});
  return net.Finish();
}

std::vector<std::byte> BuildDenoiser(uint64_t seed) {
  constexpr int32_t kTime = 4, kBins = 257, kCells = 128;
  NetBuilder net("LSTM mask of a spectrum, seeded weights", seed);
  const Net spectrum = net.Input("magnitudes", {1, kTime, kBins});
  const Net hidden = Lstm(net, Lstm(net, spectrum, "first", kCells), "second", kCells);
  const Net mask = net.Apply("LOGISTIC", {net.Dense(hidden, kBins)});
  return net.Finish(net.Apply("MUL", {spectrum, mask}));
}

}  // namespace fuselite::tools
