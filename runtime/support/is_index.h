#pragma once

#include <cstddef>
#include <cstdint>

namespace fuselite {

// Whether a list of `count` has an element `i`. No negative number is an index.
constexpr bool IsIndex(int64_t i, size_t count) {
  return i >= 0 && static_cast<uint64_t>(i) < count;
}

}  // namespace fuselite
