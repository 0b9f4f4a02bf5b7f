#include "kernels/dynamic_quantization/dynamic_groups.h"

#include <algorithm>

namespace fuselite::kernels {
namespace {

// Large enough to repay the phases' administration, small enough to split an image among threads.
// What is no larger is one chunk, and needs no phase of its own for the range.
constexpr int64_t kChunkValues = 16384;
// Few large chunks would leave threads idle, and lie elsewhere than what the step before shared.
constexpr int64_t kChunksToShare = 16, kLeastChunk = 4096;

}  // namespace

DynamicGroups::DynamicGroups(int64_t groups, int64_t rows, int64_t values, int64_t pitch)
    : groups_(groups), rows_(rows), values_(values), pitch_(pitch) {
  const int64_t all = rows * values;
  const int64_t chunk = all <= kChunkValues
                            ? kChunkValues
                            : std::clamp(all / kChunksToShare, kLeastChunk, kChunkValues);
  chunk_rows_ = std::max<int64_t>(1, chunk / std::max<int64_t>(1, values));
  group_chunks_ = std::max<int64_t>(1, (rows + chunk_rows_ - 1) / chunk_rows_);
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
