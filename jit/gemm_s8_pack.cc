// Weights as the emitted products read them.
#include <array>
#include <cstring>

#include "jit/gemm_s8.h"

namespace fuselite::jit {

namespace {

constexpr int kMaxLanes = 16;

}  // namespace

std::vector<int64_t> GemmS8::LaneChannels(int64_t panel, int v) const {
  const int vectors = PanelVectors(panel);
  int64_t first = FirstChannel(panel);
  int group = 1;
  if (spec_.requantization) {
    int begin = 0;
    while (begin + GroupSize(vectors - begin) <= v) begin += GroupSize(vectors - begin);
    group = GroupSize(vectors - begin);
    first += int64_t{begin} * isa_.lanes();
    v -= begin;
  } else {
    first += int64_t{v} * isa_.lanes();
    v = 0;
  }
  const int64_t last = LastChannel(panel);
  std::vector<int64_t> channels(isa_.lanes());
  for (int lane = 0; lane < isa_.lanes(); ++lane) {
    const int64_t channel = first + ChannelOfLane(group, v, lane);
    channels[lane] = channel < last ? channel : -1;
  }
  return channels;
}

void GemmS8::Pack(const S8Weights& weights, std::byte* packed, int64_t begin, int64_t end) const {
  std::memset(packed + begin * panel_bytes_, 0, (end - begin) * panel_bytes_);
  for (int64_t panel = begin; panel < end; ++panel) {
    PackPanel(weights, packed + panel * panel_bytes_, panel);
  }
}

// With values u = a + 128 (or a) and s = w - 128 (or w) that the dot product multiplies, zero
// points u0 and s0 in their terms, and K terms:
//   sum (u - u0)(s - s0) = sum u s - u0 sum s + K u0 s0 - s0 sum u,
// where the last part differs by row (CorrectRows). Pair products have s0 = 0 and u = a.
void GemmS8::PackPanel(const S8Weights& weights, std::byte* to, int64_t panel) const {
  const GemmS8Problem& p = problem_;
  const int vectors = PanelVectors(panel);
  const int64_t step = int64_t{vectors} * isa_.bytes;
  const bool dot = HasDotProduct(isa_.level);
  const int32_t s0 =
      dot ? p.weights_zero_point - (p.weights_type == DataType::kUInt8 ? 128 : 0) : 0;
  const int64_t u0 = p.zero_point + (dot && p.type == DataType::kInt8 ? 128 : 0);
  const int64_t constants_at = step * (1 + DepthGroups(p.depth, isa_.level));
  for (int v = 0; v < vectors; ++v) {
    const std::vector<int64_t> channels = LaneChannels(panel, v);
    std::array<int64_t, kMaxLanes> sums{};
    PackVector(weights, channels, step, to + step + v * isa_.bytes, sums.data());
    auto* biases = reinterpret_cast<int32_t*>(to + v * isa_.bytes);
    for (size_t lane = 0; lane < channels.size(); ++lane) {
      if (channels[lane] < 0) continue;
      const int64_t value = (weights.bias != nullptr ? weights.bias[channels[lane]] : 0) -
                            u0 * sums[lane] + p.depth.depth() * u0 * s0;
      biases[lane] = static_cast<int32_t>(value);
    }
    std::byte* constants = to + constants_at + int64_t{v} * spec_.constants() * isa_.bytes;
    if (spec_.dequantization) {
      PackScales(p.floats->scales, channels, reinterpret_cast<float*>(constants));
    } else if (spec_.requantization) {
      PackRequantization(tail_.requantize, *spec_.requantization, channels,
                         reinterpret_cast<int32_t*>(constants));
    }
  }
}

// One vector's weights, `step` bytes from group to group; sums[lane] is that of its values.
void GemmS8::PackVector(const S8Weights& weights, std::span<const int64_t> channels, int64_t step,
                        std::byte* to, int64_t* sums) const {
  const GemmS8Problem& p = problem_;
  const bool dot = HasDotProduct(isa_.level), is_unsigned = p.weights_type == DataType::kUInt8;
  const int each = GroupValues(isa_.level);
  const int32_t offset = dot ? (is_unsigned ? 128 : 0) : p.weights_zero_point;
  for (size_t lane = 0; lane < channels.size(); ++lane) {
    if (channels[lane] < 0) continue;
    const std::byte* from = weights.values + channels[lane] * weights.n_step;
    std::byte* group = to + lane * 4;
    int64_t sum = 0;
    for (int64_t i = 0; i < p.depth.outer; ++i) {
      for (const DepthRuns::Run& run : p.depth.runs) {
        for (int64_t k = 0; k < run.length; ++k) {
          const auto byte = static_cast<uint8_t>(*from);
          from += weights.k_step;
          const int32_t w = (is_unsigned ? byte : static_cast<int8_t>(byte)) - offset;
          sum += w;
          std::byte* at = group + k / each * step;
          if (dot) {
            at[k % each] = static_cast<std::byte>(w);
          } else {
            reinterpret_cast<int16_t*>(at)[k % each] = static_cast<int16_t>(w);
          }
        }
        group += ((run.length + each - 1) / each) * step;
      }
    }
    sums[lane] = sum;
  }
}

std::string GemmS8::layout() const {
  const GemmS8Problem& p = problem_;
  std::string text = internal::Join(
      "gemm s8 k", p.depth.outer, " n", p.channels, '/', p.groups, " p", panel_channels(), " last",
      tiling_.last_vectors, " t", static_cast<int>(p.type), '.', static_cast<int>(p.weights_type),
      " z", p.zero_point, '.', p.weights_zero_point, " g", GroupValues(isa_.level));
  for (const auto& run : p.depth.runs) text += internal::Join('+', run.length);
  return text + ConstantsKey(p.floats ? &*p.floats : nullptr, tail_);
}

}  // namespace fuselite::jit
