// How often hosts call the bodies of loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fuselite::partitioner::testing {

inline constexpr int32_t kLimits[] = {0, 1, 2, 3, 15, 16, 17, 33, 258, 259, 600};

// How often the host calls a body whose turns are computed at once: it is watched for two turns in
// the first run, then 256 turns are one call.
inline std::vector<int> CallsAtOnce(int32_t limit) {
  const auto calls = [](int32_t turns) { return (turns + 255) / 256; };
  const int32_t watched = std::min(limit, 2);
  return {watched + calls(limit - watched), calls(limit), calls(limit)};
}

}  // namespace fuselite::partitioner::testing
