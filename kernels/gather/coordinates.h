// The coordinates of GATHER_ND and SCATTER_ND.
#pragma once

#include <cstring>

#include "kernels/shape_rules.h"

namespace fuselite::kernels {

// The position, in slices, that one tuple of coordinates names; -1 where one is out of range.
class Coordinates {
 public:
  // Precondition: `indices` is [.., k] of a type that LoadIndex takes, with k at most the rank of
  // `into`.
  Coordinates(const TensorInfo& indices, const Shape& into)
      : type_(indices.type), depth_(indices.shape.dim(-1)), into_(into) {}
  // How many of `tuples` a run looks at, whose slices have `slice` elements: none where neither has
  // any, however many there are.
  int64_t Count(int64_t tuples, int64_t slice) const { return depth_ + slice > 0 ? tuples : 0; }
  int64_t Locate(const void* indices, int64_t tuple) const {
    int64_t position = 0;
    for (int d = 0; d < depth_; ++d) {
      const int64_t index = LoadIndex(type_, indices, tuple * depth_ + d);
      if (index < 0 || index >= into_[d]) return -1;
      position = position * into_[d] + index;
    }
    return position;
  }

 private:
  DataType type_;
  int depth_;
  Shape into_;
};

// A slice of one element needs no call; one of none may have no memory.
inline void CopySlice(const std::byte* from, int64_t bytes, std::byte* to) {
  switch (bytes) {
    case 0: break;
    case 1: *to = *from; break;
    case 2: std::memcpy(to, from, 2); break;
    case 4: std::memcpy(to, from, 4); break;
    case 8: std::memcpy(to, from, 8); break;
    default: std::memcpy(to, from, bytes); break;
  }
}

}  // namespace fuselite::kernels
