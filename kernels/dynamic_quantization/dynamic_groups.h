// The scales of float32 rows that are quantized at run time: groups of rows share one, and are cut
// into chunks for the threads.
#pragma once

#include <cstdint>

#include "kernels/dynamic_quantization/dynamic_scale.h"

namespace fuselite::kernels {

// `groups` times `rows` rows of `values` elements, `pitch` apart. A chunk is some rows of a group.
class DynamicGroups {
 public:
  // Extends `range`; see DynamicRange.
  using ExtendRange = void(const float* from, int64_t n, DynamicRange* range);

  DynamicGroups() = default;
  DynamicGroups(int64_t groups, int64_t rows, int64_t values, int64_t pitch);

  int64_t groups() const { return groups_; }
  int64_t chunks() const { return groups_ * group_chunks_; }
  int64_t GroupOf(int64_t chunk) const { return chunk / group_chunks_; }
  bool IsFirst(int64_t chunk) const { return chunk % group_chunks_ == 0; }
  // Rows [first, last) of the group.
  int64_t FirstRow(int64_t chunk) const { return chunk % group_chunks_ * chunk_rows_; }
  int64_t LastRow(int64_t chunk) const;
  int64_t chunk_values() const;

  // Whether a group's range is gathered from several chunks, in a phase of its own: FindRange for
  // every chunk, `ranges` being chunks() long. Where it is not, `ranges` is not read.
  bool several_chunks() const { return group_chunks_ > 1; }
  void FindRange(ExtendRange* extend, const float* x, int64_t chunk, DynamicRange* ranges) const;
  // The scale of the chunk's group; the same for every chunk of it.
  DynamicScale ScaleOf(ExtendRange* extend, const float* x, int64_t chunk, bool asymmetric,
                       const DynamicRange* ranges) const;

 private:
  DynamicRange RangeOf(ExtendRange* extend, const float* x, int64_t first, int64_t rows) const;

  int64_t groups_ = 0, rows_ = 0, values_ = 0, pitch_ = 0;
  int64_t chunk_rows_ = 1, group_chunks_ = 1;
};

}  // namespace fuselite::kernels
