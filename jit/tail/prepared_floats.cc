#include "jit/tail/prepared_floats.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jit/tail/requantization.h"

namespace fuselite::jit {
namespace {

constexpr size_t kFour = 4;

uint32_t InEach(uint8_t byte) { return 0x01010101u * byte; }

}  // namespace

PreparedFloats::PreparedFloats(size_t channels)
    : scales_(channels),
      addends_(channels),
      shifts_(channels),
      downs_(channels),
      ups_(channels),
      kinds_(channels, kNone) {}

void PreparedFloats::Set(size_t channel, const kernels::FloatScale& floats) {
  scales_[channel] = std::bit_cast<int32_t>(floats.scale);
  addends_[channel] = std::bit_cast<int32_t>(floats.addend);
  shifts_[channel] = floats.shift;
  downs_[channel] = floats.down;
  ups_[channel] = floats.up;
  kinds_[channel] = static_cast<uint8_t>((floats.moves_down() ? kDown : kPlain) |
                                         (floats.moves_up() ? kUp : kPlain));
}

uint32_t PreparedFloats::KindsOfFour(int64_t channel) const {
  uint32_t four;
  std::memcpy(&four, kinds_.data() + channel, sizeof(four));
  return four;
}

bool PreparedFloats::Pack(std::span<const int64_t> channels, int32_t* first_sums,
                          int32_t* to) const {
  uint32_t kinds = 0;
  for (size_t i = 0; i < channels.size(); i += kFour) {
    const int64_t first = channels[i];
    if (first < 0 || channels[i + kFour - 1] != first + 3) return false;
    kinds |= KindsOfFour(first);
  }
  if (kinds & InEach(kNone)) return false;
  const size_t lanes = channels.size();
  const bool up = kinds & InEach(kUp), moved = up || (kinds & InEach(kDown));
  if (moved) std::fill_n(to, lanes, up ? kUpForm : kDownForm);
  for (size_t i = 0; i < lanes; i += kFour) {
    const auto first = static_cast<size_t>(channels[i]);
    const auto copy = [&](RequantizationSlot slot, const std::vector<int32_t>& values) {
      std::memcpy(to + slot * lanes + i, values.data() + first, kFour * sizeof(int32_t));
    };
    copy(moved ? kMovedScaleSlot : kScaleSlot, scales_);
    copy(kAddendSlot, addends_);
    for (size_t lane = 0; lane < kFour; ++lane) first_sums[i + lane] += shifts_[first + lane];
    if (!moved) continue;
    copy(kDownSlot, downs_);
    copy(kUpSlot, ups_);
  }
  return true;
}

}  // namespace fuselite::jit
