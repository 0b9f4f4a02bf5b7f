// The boxes that a detector keeps, and whether one of them covers another box.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

struct Box {
  float top, left, bottom, right;

  float area() const { return (bottom - top) * (right - left); }
};

// Boxes whose coordinates lie side by side, as vectors read them.
class KeptBoxes {
 public:
  enum Row { kTop, kLeft, kBottom, kRight, kArea, kRows };

  // `values`: room for values(capacity).
  KeptBoxes(float* values, int32_t capacity) : values_(values), capacity_(capacity) {}
  static constexpr int64_t values(int32_t capacity) { return int64_t{kRows} * capacity; }

  int32_t count() const { return count_; }
  const float* row(Row row) const { return values_ + ptrdiff_t{row} * capacity_; }
  // At most as many as the capacity.
  void Add(const Box& box) {
    const float of_rows[kRows] = {box.top, box.left, box.bottom, box.right, box.area()};
    for (int r = 0; r < kRows; ++r) values_[ptrdiff_t{r} * capacity_ + count_] = of_rows[r];
    ++count_;
  }

 private:
  float* values_;
  int32_t capacity_, count_ = 0;
};

// Whether `box` and one of the kept ones have more than `threshold` of their union in common; those
// without an area have nothing.
using CoversFunction = bool(const KeptBoxes& kept, const Box& box, float threshold);

// A plain loop.
CoversFunction PlainCovers;
// The version for `isa`, with the same result; null below SSSE3.
CoversFunction* FindCovers(Isa isa);

}  // namespace fuselite::kernels
