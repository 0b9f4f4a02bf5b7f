#include "jit/tail/prepared_floats.h"

#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "jit/tail/requantization.h"
#include "tests/kernels/random.h"

namespace fuselite::jit {
namespace {

using kernels::FloatScale;
using kernels::testing::Random;

constexpr int64_t kChannels = 40;

FloatScale RandomFloats(Random& random) {
  FloatScale floats{.scale = random.Float(1e-5f, 1),
                    .addend = random.Float(-1, 1),
                    .shift = static_cast<int32_t>(random.Int(-1000, 1000))};
  if (random.Chance(0.1)) floats.down = static_cast<int32_t>(random.Int(-1000, 1000));
  if (random.Chance(0.05)) floats.up = static_cast<int32_t>(random.Int(-1000, 1000));
  return floats;
}

// Fours of neighbours; here and there one that is none.
std::vector<int64_t> RandomLanes(Random& random, size_t count) {
  std::vector<int64_t> lanes;
  while (lanes.size() < count) {
    const int64_t first = random.Int(0, kChannels - 4);
    for (int64_t lane = 0; lane < 4; ++lane) lanes.push_back(first + lane);
  }
  if (random.Chance(0.1)) lanes[count - 1] = -1;
  if (random.Chance(0.1)) lanes[0] = lanes[4];
  return lanes;
}

bool AreFoursOfNeighbours(const std::vector<int64_t>& lanes) {
  for (size_t i = 0; i < lanes.size(); i += 4) {
    if (lanes[i] < 0 || lanes[i + 3] != lanes[i] + 3) return false;
  }
  return true;
}

// What each lane of a slot must hold, where its form reads it.
std::optional<int32_t> InSlot(int slot, const FloatScale& floats, bool down, bool up) {
  const bool moved = down || up;
  const auto scale = std::bit_cast<int32_t>(floats.scale);
  switch (slot) {
    case kScaleSlot: return moved ? (up ? kUpForm : kDownForm) : scale;
    case kAddendSlot: return std::bit_cast<int32_t>(floats.addend);
    case kMovedScaleSlot: return moved ? std::optional(scale) : std::nullopt;
    case kDownSlot: return moved ? std::optional(floats.down) : std::nullopt;
    case kUpSlot: return up ? std::optional(floats.up) : std::nullopt;
    default: return std::nullopt;
  }
}

void ComparePacked(Random& random, size_t count) {
  std::vector<std::optional<FloatScale>> channels(kChannels);
  PreparedFloats prepared(kChannels);
  for (size_t c = 0; c < kChannels; ++c) {
    if (random.Chance(0.02)) continue;
    channels[c] = RandomFloats(random);
    prepared.Set(c, *channels[c]);
  }
  const std::vector<int64_t> lanes = RandomLanes(random, count);
  bool all = AreFoursOfNeighbours(lanes), down = false, up = false;
  for (const int64_t c : lanes) {
    all &= c >= 0 && channels[c].has_value();
    down |= all && channels[c]->moves_down();
    up |= all && channels[c]->moves_up();
  }
  constexpr int32_t kUntouched = 77;
  std::vector<int32_t> first_sums(count, 5), constants(5 * count, kUntouched);
  ASSERT_EQ(prepared.Pack(lanes, first_sums.data(), constants.data()), all);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(first_sums[i], all ? 5 + channels[lanes[i]]->shift : 5) << "lane " << i;
    for (int slot = 0; slot < 5; ++slot) {
      const int32_t actual = constants[slot * count + i];
      const auto expected = all ? InSlot(slot, *channels[lanes[i]], down, up) : kUntouched;
      if (expected) {
        ASSERT_EQ(actual, *expected) << "slot " << slot << " lane " << i;
      }
    }
  }
}

TEST(PreparedFloats, PackWhatEachChannelWasGiven) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    ComparePacked(random, random.Pick({8, 16}));
  }
}

}  // namespace
}  // namespace fuselite::jit
