#include "kernels/dynamic_quantization/dynamic_groups.h"

#include <algorithm>

#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// Large enough to repay the phases' administration, small enough to split an image among threads.
constexpr int64_t kChunkValues = 16384;
// What is smaller is one chunk: with a phase of its own for the range, two threads took 1.15 of the
// time of a network of such images.
constexpr int64_t kWorthSharing = 2 * kChunkValues;
// Smaller images are cut into up to so many: two or three would leave threads idle, and lie
// elsewhere than what the step before shared.
constexpr int64_t kChunksToShare = 8, kLeastChunk = 8192;

int64_t ChunksOf(int64_t values) {
  if (values < kWorthSharing) return 1;
  return std::max(std::min(values / kLeastChunk, kChunksToShare), values / kChunkValues);
}

}  // namespace

DynamicGroups::DynamicGroups(int64_t groups, int64_t rows, int64_t values, int64_t pitch)
    : groups_(groups), rows_(rows), values_(values), pitch_(pitch) {
  chunk_rows_ = std::max<int64_t>(1, CeilDiv(rows, ChunksOf(rows * values)));
  group_chunks_ = std::max<int64_t>(1, CeilDiv(rows, chunk_rows_));
}

int64_t DynamicGroups::LastRow(int64_t chunk) const {
  return std::min(FirstRow(chunk) + chunk_rows_, rows_);
}

int64_t DynamicGroups::chunk_values() const { return std::min(chunk_rows_, rows_) * values_; }

// The range of `rows` rows from row `first` of all groups' on.
DynamicRange DynamicGroups::RangeOf(ExtendRange* extend, const float* x, int64_t first,
                                    int64_t rows) const {
  const float* from = x + first * pitch_;
  DynamicRange range{from[0], from[0]};
  // Dense rows are one long one: each call ends with a reduction.
  const bool dense = pitch_ == values_;
  const int64_t calls = dense ? 1 : rows, values = dense ? rows * values_ : values_;
  for (int64_t r = 0; r < calls; ++r) extend(from + r * pitch_, values, &range);
  return range;
}

void DynamicGroups::FindRange(ExtendRange* extend, const float* x, int64_t chunk,
                              DynamicRange* ranges) const {
  const int64_t first = FirstRow(chunk);
  ranges[chunk] = RangeOf(extend, x, GroupOf(chunk) * rows_ + first, LastRow(chunk) - first);
}

DynamicScale DynamicGroups::ScaleOf(ExtendRange* extend, const float* x, int64_t chunk,
                                    bool asymmetric, const DynamicRange* ranges) const {
  if (!several_chunks()) {
    return MakeDynamicScale(RangeOf(extend, x, GroupOf(chunk) * rows_, rows_), asymmetric);
  }
  const DynamicRange* all = ranges + GroupOf(chunk) * group_chunks_;
  DynamicRange range = all[0];
  for (int64_t i = 1; i < group_chunks_; ++i) {
    // Sums keep a NaN, which comparisons may lose.
    const float bad = (range.min - range.min) + (all[i].min - all[i].min);
    range.min = std::min(range.min, all[i].min) + bad;
    range.max = std::max(range.max, all[i].max) + bad;
  }
  return MakeDynamicScale(range, asymmetric);
}

}  // namespace fuselite::kernels
