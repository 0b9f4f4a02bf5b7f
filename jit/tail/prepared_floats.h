// The floats of a layer's channels side by side, for constants that are packed at each run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/tail/float_scale.h"

namespace fuselite::jit {

class PreparedFloats {
 public:
  // No channel has floats until Set() gives it some.
  explicit PreparedFloats(size_t channels = 0);
  void Set(size_t channel, const kernels::FloatScale& floats);

  // What RequantizationConstants::Pack writes of the same channels, but for slots that their form
  // does not read. Does nothing and gives false where a lane has no channel or one without floats,
  // or lanes are not the channels' fours of neighbours.
  bool Pack(std::span<const int64_t> channels, int32_t* first_sums, int32_t* to) const;

 private:
  enum Kind : uint8_t { kPlain = 0, kNone = 1, kDown = 2, kUp = 4 };
  uint32_t KindsOfFour(int64_t channel) const;

  std::vector<int32_t> scales_, addends_, shifts_, downs_, ups_;
  std::vector<uint8_t> kinds_;
};

}  // namespace fuselite::jit
