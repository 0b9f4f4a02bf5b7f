// How the filters of 8-bit depthwise convolutions lie in memory (DepthwiseS8Args).
#include <cstring>

#include "jit/depthwise/depthwise_s8.h"

namespace fuselite::jit {

size_t DepthwiseS8::packed_bytes() const {
  int64_t bytes = 0;
  for (const DepthwiseS8Blocks& b : blocks_) bytes += b.count * spec_.block_bytes(b.width);
  return static_cast<size_t>(bytes);
}

std::string DepthwiseS8::layout() const {
  const DepthwiseS8Problem& p = problem_;
  std::string text = internal::Join("depthwise s8 ", p.window.y.filter, 'x', p.window.x.filter,
                                    " c", p.channels, " g", spec_.group(), " t",
                                    static_cast<int>(p.type), '.', static_cast<int>(p.weights_type),
                                    " z", p.zero_point, '.', p.weights_zero_point);
  for (const auto& b : blocks_) text += internal::Join(" b", b.width, '.', b.channels);
  return text + tail_.constants_key();
}

void DepthwiseS8::Pack(const std::byte* filter, const int32_t* bias, std::byte* packed) const {
  std::memset(packed, 0, packed_bytes());
  int64_t channel = 0;
  for (const DepthwiseS8Blocks& block : blocks_) {
    for (int64_t i = 0; i < block.count; ++i) {
      PackBlock(filter, bias, block, channel, packed);
      packed += spec_.block_bytes(block.width);
      channel += block.channels;
    }
  }
}

// Weights are w - their zero point; the bias takes off what the activations' zero point (that of
// flipped ones is 128 more) adds to every sum, padding included.
void DepthwiseS8::PackBlock(const std::byte* filter, const int32_t* bias,
                            const DepthwiseS8Blocks& block, int64_t channel, std::byte* to) const {
  const int64_t u0 = problem_.zero_point + (spec_.flips() ? 128 : 0);
  const LaneValues order = ChannelsOfLanes(block);
  const int64_t group_bytes = int64_t{spec_.group()} * block.width;
  LaneValues sums{};
  const auto& [y, x] = window();
  for (int32_t ky = 0; ky < y.filter; ++ky) {
    const int group = ky / spec_.lane_rows(), place = ky % spec_.lane_rows();
    for (int32_t kx = 0; kx < x.filter; ++kx) {
      const int64_t tap = int64_t{ky} * x.filter + kx;
      std::byte* vectors = to + group_bytes * (1 + kx * spec_.row_groups() + group);
      PackTap(filter + tap * problem_.channels + channel, order, place, vectors, &sums);
    }
  }
  auto* biases = reinterpret_cast<int32_t*>(to);
  for (size_t lane = 0; lane < order.size(); ++lane) {
    if (order[lane] < 0) continue;
    const int64_t b = bias != nullptr ? bias[channel + order[lane]] : 0;
    biases[lane] = static_cast<int32_t>(b - u0 * sums[lane]);
  }
  const int64_t taps = int64_t{window().x.filter} * spec_.row_groups();
  PackConstants(bias, block, channel, to + (1 + taps) * group_bytes);
}

DepthwiseS8::LaneValues DepthwiseS8::ChannelsOfLanes(const DepthwiseS8Blocks& block) const {
  LaneValues order;
  order.fill(-1);
  const int lanes = block.width / 4;
  for (int v = 0; v < spec_.group(); ++v) {
    for (int lane = 0; lane < lanes; ++lane) {
      const int at = ChannelOfLane(spec_.group(), v, lane);
      if (at < block.channels) order[v * lanes + lane] = at;
    }
  }
  return order;
}

// One tap of a block's channels, which lie side by side: byte (or half) `place` of their lanes.
void DepthwiseS8::PackTap(const std::byte* tap, const LaneValues& order, int place, std::byte* to,
                          LaneValues* sums) const {
  const bool is_unsigned = problem_.weights_type == DataType::kUInt8;
  for (size_t lane = 0; lane < order.size(); ++lane) {
    if (order[lane] < 0) continue;
    const auto byte = static_cast<uint8_t>(tap[order[lane]]);
    const int32_t w =
        (is_unsigned ? byte : static_cast<int8_t>(byte)) - problem_.weights_zero_point;
    (*sums)[lane] += w;
    if (spec_.dot) {
      to[lane * 4 + place] = static_cast<std::byte>(w);
    } else {
      reinterpret_cast<int16_t*>(to)[lane * 2 + place] = static_cast<int16_t>(w);
    }
  }
}

void DepthwiseS8::PackConstants(const int32_t* bias, const DepthwiseS8Blocks& block,
                                int64_t channel, std::byte* to) const {
  const int lanes = block.width / 4;
  std::vector<int64_t> channels(static_cast<size_t>(lanes));
  for (int v = 0; v < spec_.group(); ++v, to += int64_t{spec_.tail.constants()} * block.width) {
    for (int lane = 0; lane < lanes; ++lane) {
      const int at =
          spec_.tail.dequantization ? v * lanes + lane : ChannelOfLane(spec_.group(), v, lane);
      channels[static_cast<size_t>(lane)] = at < block.channels ? channel + at : -1;
    }
    tail_.PackConstants(channels, bias, to);
  }
}

}  // namespace fuselite::jit
