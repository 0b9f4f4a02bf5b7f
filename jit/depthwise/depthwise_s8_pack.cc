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
  const int64_t group_bytes = int64_t{spec_.group()} * block.width;
  for (int v = 0; v < spec_.group(); ++v) {
    for (int lane = 0; lane < block.width / 4; ++lane) {
      const int at = ChannelOfLane(spec_.group(), v, lane);
      if (at >= block.channels) continue;
      const int64_t c = channel + at;
      std::byte* lane_to = to + v * block.width + lane * 4;
      *reinterpret_cast<int32_t*>(lane_to) =
          static_cast<int32_t>((bias != nullptr ? bias[c] : 0) - u0 * SumOfTaps(filter, c));
      PackTaps(filter, c, group_bytes, lane_to + group_bytes);
    }
  }
  const int64_t taps = int64_t{window().x.filter} * spec_.row_groups();
  PackConstants(bias, block, channel, to + (1 + taps) * group_bytes);
}

// One channel's lane in each vector of weights.
void DepthwiseS8::PackTaps(const std::byte* filter, int64_t channel, int64_t tap_bytes,
                           std::byte* to) const {
  const auto& [y, x] = window();
  for (int32_t ky = 0; ky < y.filter; ++ky) {
    const int group = ky / spec_.lane_rows(), place = ky % spec_.lane_rows();
    for (int32_t kx = 0; kx < x.filter; ++kx) {
      const int32_t w = Weight(filter, ky * x.filter + kx, channel);
      std::byte* tap = to + tap_bytes * (kx * spec_.row_groups() + group);
      if (spec_.dot) {
        tap[place] = static_cast<std::byte>(w);
      } else {
        reinterpret_cast<int16_t*>(tap)[place] = static_cast<int16_t>(w);
      }
    }
  }
}

int32_t DepthwiseS8::Weight(const std::byte* filter, int64_t tap, int64_t channel) const {
  const auto byte = static_cast<uint8_t>(filter[tap * problem_.channels + channel]);
  const bool is_unsigned = problem_.weights_type == DataType::kUInt8;
  return (is_unsigned ? byte : static_cast<int8_t>(byte)) - problem_.weights_zero_point;
}

int32_t DepthwiseS8::SumOfTaps(const std::byte* filter, int64_t channel) const {
  int32_t sum = 0;
  for (int64_t tap = 0; tap < window().taps(); ++tap) sum += Weight(filter, tap, channel);
  return sum;
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
