// How panels of 8-bit weights are packed.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "jit/product/gemm_byte_pairs_emitter.h"
#include "jit/product/product_s8.h"
#include "jit/product/sum_bytes.h"
#include "jit/product/weight_rows.h"
#include "kernels/product/tiling.h"

namespace fuselite::jit {

using kernels::ByteGroups;
using kernels::DepthRuns;
using kernels::PanelChannels;
using kernels::RightMatrix;

bool MicroKernelS8::LastIsHalf(const PanelChannels& panel) const {
  const int64_t before = int64_t{panel.vectors - 1} * isa_.lanes();
  return !amx_ && jit::LastIsHalf(spec_, panel.last - panel.first - before);
}

void MicroKernelS8::LaneChannels(const PanelChannels& panel, std::span<const int64_t> quads,
                                 std::span<int64_t> channels) {
  for (size_t lane = 0; lane < channels.size(); ++lane) {
    const int64_t channel = panel.first + quads[lane / kQuad] + static_cast<int64_t>(lane % kQuad);
    channels[lane] = channel < panel.last ? channel : -1;
  }
}

void MicroKernelS8::LaneQuads(const PanelChannels& panel, int v, std::span<int64_t> quads) const {
  int begin = v, group = 1;
  if (spec_.tail.requantization) {
    const bool last_alone = LastIsHalf(panel);
    const auto size = [&] { return GroupSize(panel.vectors - begin, last_alone); };
    begin = 0;
    while (begin + size() <= v) begin += size();
    group = size();
  }
  for (size_t q = 0; q < quads.size(); ++q) {
    quads[q] = int64_t{begin} * isa_.lanes() +
               ChannelOfLane(group, v - begin, static_cast<int>(q * kQuad));
  }
}

// With values u = a + 128 (or a, as SignedActivations are) and s = w - 128 (or w) that the dot
// product multiplies, zero points u0 and s0 in their terms, and K terms:
//   sum (u - u0)(s - s0) = sum u s - u0 sum s + K u0 s0 - s0 sum u,
// where the last part differs by row (RowValues). Pair products have s0 = 0 and u = a.
void MicroKernelS8::PackPanel(const RightMatrix& right, const PanelChannels& panel,
                              std::byte* to) const {
  if (spec_.constants_apart) return PackParts(right, panel, {.weights = to});
  const int64_t biases_bytes = int64_t{panel.vectors} * spec_.biases() * isa_.bytes;
  const int64_t groups = groups_ + std::ssize(spec_.again);
  const int64_t weights_bytes = int64_t{panel.vectors} * spec_.weight_bytes() * groups;
  PanelParts parts{
      .biases = to, .weights = to + biases_bytes, .constants = to + biases_bytes + weights_bytes};
  if (!spec_.byte_pairs) return PackParts(right, panel, parts);
  const auto unordered =
      std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(weights_bytes));
  parts.weights = unordered.get();
  PackParts(right, panel, parts);
  OrderGroups({unordered.get(), groups, panel.vectors}, to);
}

// The values that wide vectors are multiplied by are 128 smaller, whatever zero points rows have.
void MicroKernelS8::OrderGroups(const kernels::ByteQuads& quads, std::byte* panel) const {
  const size_t lanes = static_cast<size_t>(quads.vectors) * static_cast<size_t>(isa_.lanes());
  auto* const table = reinterpret_cast<int32_t*>(panel + BytePairTableAt(spec_, quads.vectors));
  const std::span all_biases(reinterpret_cast<int32_t*>(panel), spec_.biases() * lanes);
  const std::span biases = all_biases.last(lanes);
  if (spec_.biases() > 1) std::ranges::fill(biases, 0);
  const std::span order(table + kBytePairCounts, static_cast<size_t>(quads.groups));
  const kernels::PairCounts counts =
      kernels::OrderByPairs(isa_.features, quads, panel + all_biases.size_bytes(), order, biases);
  *table = counts.joined;
  std::ranges::copy(counts.of_kind, table + 1);
  const std::vector<int32_t> places = GroupPlaces();
  for (int32_t& group : order) group = places[group];
}

std::vector<int32_t> MicroKernelS8::GroupPlaces() const {
  std::vector<int32_t> places;
  places.reserve(static_cast<size_t>(groups_) + spec_.again.size());
  for (int64_t i = 0; i < spec_.depth.outer; ++i) {
    for (const DepthRuns::Run& run : spec_.depth.runs) {
      const int64_t first = i * spec_.depth.outer_step + run.offset;
      for (int64_t at = 0; at < run.length; at += spec_.group_values()) {
        places.push_back(static_cast<int32_t>(first + at));
      }
    }
  }
  for (const TermGroup& group : spec_.again) places.push_back(static_cast<int32_t>(group.offset));
  return places;
}

void MicroKernelS8::PackChannelConstants(const RightMatrix& right, const PanelChannels& panel,
                                         std::byte* to) const {
  PackParts(right, panel, {.biases = to, .constants = to + int64_t{panel.vectors} * isa_.bytes});
}

void MicroKernelS8::PackParts(const RightMatrix& right, const PanelChannels& panel,
                              const PanelParts& to) const {
  const bool whole = to.biases != nullptr && to.weights != nullptr;
  if (whole && TakesQuads() && !centered_ && (right.k_step == 1 || right.n_step == 1)) {
    return PackQuads(right, panel, to);
  }
  const ByteGroups form = WeightGroups();
  // What is summed is unsigned, 128 more.
  const ByteSum sum(depth_, form.flip ^ 0x80);
  const int64_t step = int64_t{panel.vectors} * spec_.weight_bytes();
  for (int v = 0; v < panel.vectors; ++v) {
    std::array<int64_t, kMaxLanes> of_lanes, of_quads;
    const std::span channels = std::span(of_lanes).first(isa_.lanes());
    LaneQuads(panel, v, std::span(of_quads).first(isa_.lanes() / kQuad));
    LaneChannels(panel, of_quads, channels);
    WeightRows weights(right, channels, depth_);
    std::span<const uint8_t*> rows = weights.rows();
    std::optional<CenteredRows> centered;
    if (centered_) {
      centered.emplace(rows, depth_, WeightCentering());
      rows = centered->nearest();
    }
    if (to.biases != nullptr) {
      std::array<int32_t, kMaxLanes> sums;
      for (size_t lane = 0; lane < channels.size(); ++lane) {
        int64_t of_lane = sum(rows[lane]) - depth_ * (128 + form.offset);
        if (centered) of_lane += ExcessSum(*centered, lane);
        sums[lane] = static_cast<int32_t>(of_lane);
      }
      PackTail(sums.data(), channels, panel, v, static_cast<const int32_t*>(right.bias), to);
    }
    if (to.weights != nullptr) {
      std::byte* const own = to.weights + v * spec_.weight_bytes();
      if (centered) PackExcess(*centered, channels, step, own + groups_ * step);
      PackWeights(rows, channels, step, own);
    }
  }
}

// Rows or columns whose values lie side by side, in one pass: weights that come with each run take
// as long to pack as a few rows by them, and copies of columns took 7% of a vision transformer.
void MicroKernelS8::PackQuads(const RightMatrix& right, const PanelChannels& panel,
                              const PanelParts& to) const {
  constexpr size_t kMostQuads = kernels::kMostPanelVectors * kMaxLanes / kQuad;
  const size_t lanes = isa_.lanes(), quads = lanes / kQuad, all = panel.vectors * quads;
  std::array<int64_t, kMostQuads> channels_of, places;
  for (int v = 0; v < panel.vectors; ++v) {
    const size_t first = v * quads;
    LaneQuads(panel, v, std::span(channels_of).subspan(first, quads));
    for (size_t q = first; q < first + quads; ++q) {
      places[channels_of[q] / kQuad] = static_cast<int64_t>(q * kQuad * sizeof(int32_t));
    }
  }
  std::array<int32_t, kMostQuads * kQuad> sums_of{};
  PackQuadWeights(right, panel, std::span(places).first(all), to.weights, sums_of.data());
  for (int v = 0; v < panel.vectors; ++v) {
    std::array<int64_t, kMaxLanes> channels;
    std::array<int32_t, kMaxLanes> sums;
    const std::span of_quads = std::span(channels_of).subspan(v * quads, quads);
    for (size_t q = 0; q < quads; ++q) {
      std::memcpy(&sums[q * kQuad], &sums_of[of_quads[q]], kQuad * sizeof(int32_t));
    }
    LaneChannels(panel, of_quads, std::span(channels).first(lanes));
    PackTail(sums.data(), std::span(channels).first(lanes), panel, v,
             static_cast<const int32_t*>(right.bias), to);
  }
}

void MicroKernelS8::PackQuadWeights(const RightMatrix& right, const PanelChannels& panel,
                                    std::span<const int64_t> places, std::byte* to,
                                    int32_t* sums) const {
  const int64_t step = std::ssize(places) * kQuad * sizeof(int32_t);
  const int64_t count = panel.last - panel.first;
  const uint8_t flip = WeightGroups().flip;
  const auto* values = static_cast<const uint8_t*>(right.values) + panel.first * right.n_step;
  for (int64_t i = 0; i < spec_.depth.outer; ++i) {
    for (const DepthRuns::Run& run : spec_.depth.runs) {
      if (right.k_step == 1) {
        kernels::PackRowQuads(isa_.features, flip, {values, right.n_step, count}, run.length,
                              places, to, step, sums);
      } else {
        kernels::PackColumnQuads(isa_.features, flip, {values, right.k_step, count}, run.length,
                                 places, to, step, sums);
      }
      to += (run.length + 3) / 4 * step;
      values += run.length * right.k_step;
    }
  }
}

// The biases and constants of vector `v`, the sums of whose lanes' weights are `sums`; all of them
// wrap around.
void MicroKernelS8::PackTail(const int32_t* sums, std::span<const int64_t> channels,
                             const PanelChannels& panel, int v, const int32_t* bias,
                             const PanelParts& to) const {
  const int32_t s0 = TakesQuads() ? WeightsOffset() : 0;
  const bool shifted = TakesQuads() && format_.type == DataType::kInt8 && !SignedActivations();
  const int64_t u0 = format_.zero_point + (shifted ? 128 : 0);
  const auto of_sum = static_cast<uint32_t>(-u0), of_all = static_cast<uint32_t>(depth_ * u0 * s0);
  auto* const biases = reinterpret_cast<int32_t*>(to.biases + v * isa_.bytes);
  for (size_t lane = 0; lane < channels.size(); ++lane) {
    const int64_t channel = channels[lane];
    const uint32_t own = bias != nullptr && channel >= 0 ? bias[channel] : 0;
    const uint32_t value = own + of_all + of_sum * static_cast<uint32_t>(sums[lane]);
    biases[lane] = channel < 0 ? 0 : static_cast<int32_t>(value);
  }
  const bool half = v == panel.vectors - 1 && spec_.tail.requantization && LastIsHalf(panel);
  if (half) channels = channels.first(channels.size() / 2);
  tail_.PackConstants(channels, bias, biases,
                      to.constants + int64_t{v} * spec_.tail.constants() * isa_.bytes);
}

Centering MicroKernelS8::WeightCentering() const {
  const int8_t least = spec_.byte_pairs ? kLeastWithOpposite : INT8_MIN;
  return {format_.weights_type, format_.weights_zero_point, least};
}

ByteGroups MicroKernelS8::WeightGroups() const {
  const uint8_t flip = format_.weights_type == DataType::kUInt8 && !centered_ ? 0x80 : 0;
  if (TakesQuads()) return {.shape = ByteGroups::kQuads, .flip = flip};
  if (spec_.narrow) return {.shape = ByteGroups::kPairs, .flip = flip};
  return {.shape = ByteGroups::kWidePairs, .flip = flip, .offset = WeightsOffset()};
}

// One vector's weights, `step` bytes from group to group. Moves `rows` to their ends.
void MicroKernelS8::PackWeights(std::span<const uint8_t*> rows, std::span<const int64_t> channels,
                                int64_t step, std::byte* to) const {
  const ByteGroups form = WeightGroups();
  std::byte* group = to;
  for (int64_t i = 0; i < spec_.depth.outer; ++i) {
    for (const DepthRuns::Run& run : spec_.depth.runs) {
      kernels::PackGroups(isa_.features, form, rows, run.length, group, step);
      group += (run.length + form.values() - 1) / form.values() * step;
      for (const uint8_t*& row : rows) row += run.length;
    }
  }
  const auto absent = [&](size_t lane) { return lane < channels.size() && channels[lane] < 0; };
  for (size_t lane = 0; lane < channels.size(); ++lane) {
    if (!absent(lane)) continue;
    const size_t first = lane;
    while (absent(lane)) ++lane;
    for (int64_t g = 0; g < groups_; ++g) {
      std::memset(to + g * step + first * form.bytes(), 0, (lane - first) * form.bytes());
    }
  }
}

void MicroKernelS8::PackExcess(const CenteredRows& rows, std::span<const int64_t> channels,
                               int64_t step, std::byte* to) const {
  const auto lane_bytes = static_cast<size_t>(WeightGroups().bytes());
  for (const TermGroup& group : spec_.again) {
    std::memset(to, 0, static_cast<size_t>(spec_.weight_bytes()));
    for (size_t lane = 0; lane < channels.size(); ++lane) {
      if (channels[lane] < 0) continue;
      std::memcpy(to + lane * lane_bytes, rows.excess(lane) + group.first,
                  static_cast<size_t>(group.length));
    }
    to += step;
  }
}

int64_t MicroKernelS8::ExcessSum(const CenteredRows& rows, size_t row) const {
  int64_t sum = 0;
  for (const TermGroup& group : spec_.again) {
    for (int64_t i = 0; i < group.length; ++i) {
      sum += static_cast<int8_t>(rows.excess(row)[group.first + i]);
    }
  }
  return sum;
}

}  // namespace fuselite::jit
