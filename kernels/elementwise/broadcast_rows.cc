#include "kernels/elementwise/broadcast_rows.h"

namespace fuselite::kernels {

std::optional<BroadcastRows> RowsBroadcastTo(const TensorInfo& operand, const Shape& output) {
  const Shape& in = operand.shape;
  const int32_t own = in.rank() == 0 ? 1 : in.dim(-1);
  const int32_t channels = output.rank() == 0 ? 1 : output.dim(-1);
  if (in.rank() > output.rank() || (own != channels && own != 1)) return std::nullopt;
  BroadcastRows rows{.runs = {}, .channel_step = own == 1 ? 0 : 1};
  int64_t stride = operand.pitch();
  for (int d = -2; d >= -output.rank(); --d) {
    const int32_t size = output.dim(d);
    const int32_t own_size = -d <= in.rank() ? in.dim(d) : 1;
    if (own_size != size && own_size != 1) return std::nullopt;
    if (size == 1) continue;
    const int64_t step = own_size == 1 ? 0 : stride;
    stride *= own_size;
    if (!rows.runs.empty() && step == rows.runs.back().step * rows.runs.back().size) {
      rows.runs.back().size *= size;
    } else {
      rows.runs.push_back({size, step});
    }
  }
  return rows;
}

}  // namespace fuselite::kernels
