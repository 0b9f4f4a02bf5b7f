// The loops are plain ones that the compiler turns into vectors of each target (this file is
// compiled with -O3).
#include "kernels/unpacked/int16_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unpacked/int16_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

// A product of two int16 fits into 32 bits.
template <class Y>
HWY_INLINE int64_t Dot(const int16_t* HWY_RESTRICT x, const Y* HWY_RESTRICT y, int64_t depth) {
  int64_t sum = 0;
  for (int64_t d = 0; d < depth; ++d) sum += int32_t{x[d]} * y[d];
  return sum;
}

template <class Y>
HWY_INLINE void AddTimes(int32_t x, const Y* HWY_RESTRICT y, int64_t columns,
                         int64_t* HWY_RESTRICT sums) {
  for (int64_t c = 0; c < columns; ++c) sums[c] += x * y[c];
}

template <class Y>
HWY_INLINE const int16_t* Gathered(const Int16Rows<Y>& p, const int16_t* x) {
  if (p.x_term == 1) return x;
  for (int64_t d = 0; d < p.depth; ++d) p.gathered[d] = x[d * p.x_term];
  return p.gathered;
}

template <class Y>
void MultiplyRows(const Int16Rows<Y>& p, int64_t* sums) {
  const int16_t* x = p.x;
  for (int64_t r = 0; r < p.rows; ++r, x += p.x_row, sums += p.columns) {
    if (p.y_term == 1) {
      const int16_t* const row = Gathered(p, x);
      for (int64_t c = 0; c < p.columns; ++c) sums[c] = Dot(row, p.y + c * p.y_column, p.depth);
      continue;
    }
    std::fill_n(sums, p.columns, 0);
    for (int64_t d = 0; d < p.depth; ++d) {
      AddTimes(x[d * p.x_term], p.y + d * p.y_term, p.columns, sums);
    }
  }
}

const Int16RowFunctions* Functions() {
  static constexpr Int16RowFunctions kFunctions = {MultiplyRows<int16_t>, MultiplyRows<int8_t>};
  return &kFunctions;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<const Int16RowFunctions*> FindInt16Rows(Isa isa) {
  constexpr auto kFunctions = FUSELITE_SIMD_TABLE(Functions);
  FUSELITE_ASSIGN_OR_RETURN(auto* const functions, kFunctions.Require(isa));
  return functions();
}

}  // namespace fuselite::kernels
#endif
