#include "jit/product/weight_rows.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

namespace fuselite::jit {
namespace {

// 4 x 4 bytes, rows `from_step` apart, to columns `to_step` apart.
void TransposeSquare(const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step) {
  const auto row = [&](int i) {
    int32_t bytes;
    std::memcpy(&bytes, from + i * from_step, sizeof(bytes));
    return _mm_cvtsi32_si128(bytes);
  };
  const __m128i even = _mm_unpacklo_epi8(row(0), row(1)), odd = _mm_unpacklo_epi8(row(2), row(3));
  alignas(16) std::array<int32_t, 4> columns;
  _mm_store_si128(reinterpret_cast<__m128i*>(columns.data()), _mm_unpacklo_epi16(even, odd));
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * to_step, &columns[i], sizeof(columns[i]));
}

}  // namespace

WeightRows::WeightRows(const kernels::RightMatrix& right, std::span<const int64_t> channels,
                       int64_t depth)
    : count_(channels.size()) {
  const auto* values = static_cast<const uint8_t*>(right.values);
  const int64_t any = *std::ranges::max_element(channels);
  for (size_t i = 0; i < count_; ++i) {
    const int64_t channel = std::max(channels[i] < 0 ? any : channels[i], int64_t{0});
    rows_[i] = values + channel * right.n_step;
  }
  if (right.k_step == 1) return;
  copies_.resize(count_ * depth);
  for (size_t i = 0; i < count_; i += kQuad) {
    if (i == 0 || std::ranges::max(channels.subspan(i, kQuad)) >= 0) {
      CopyColumns(right.k_step, depth, i);
    } else {
      std::fill_n(rows_.begin() + i, kQuad, rows_[0]);
    }
  }
}

void WeightRows::CopyColumns(int64_t k_step, int64_t depth, size_t lane) {
  const uint8_t** const rows = rows_.data() + lane;
  uint8_t* const copies = copies_.data() + lane * depth;
  const bool neighbours =
      rows[1] == rows[0] + 1 && rows[2] == rows[0] + 2 && rows[3] == rows[0] + 3;
  int64_t k = 0;
  for (; neighbours && k + 4 <= depth; k += 4) {
    TransposeSquare(rows[0] + k * k_step, k_step, copies + k, depth);
  }
  for (size_t i = 0; i < kQuad; ++i) {
    for (int64_t rest = k; rest < depth; ++rest) copies[i * depth + rest] = rows[i][rest * k_step];
    rows[i] = copies + i * depth;
  }
}

}  // namespace fuselite::jit
