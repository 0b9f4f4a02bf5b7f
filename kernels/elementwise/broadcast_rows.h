// Rows of an operand that broadcasts: where each of them lies that is read for a row of the output.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tensor.h"

namespace fuselite::kernels {

// How the rows of an operand, which broadcasts to `output`, repeat in it.
struct BroadcastRows {
  // Runs of dimensions with one step each, the innermost first. A step counts values of the
  // operand, and is 0 where it repeats.
  struct Run {
    int64_t size, step;
  };
  std::vector<Run> runs;
  int channel_step = 1;  // 0 where one value repeats along a whole row

  // Where the values for row `row` of the output begin.
  int64_t At(int64_t row) const {
    int64_t at = 0;
    for (const Run& run : runs) {
      at += row % run.size * run.step;
      row /= run.size;
    }
    return at;
  }
};
// nullopt where it does not broadcast.
std::optional<BroadcastRows> RowsBroadcastTo(const TensorInfo& operand, const Shape& output);

}  // namespace fuselite::kernels
