#include "jit/tail/dequantize_emitter.h"

#include "runtime/support/status.h"

namespace fuselite::jit {

using Xbyak::Xmm;

std::string Dequantization::key() const {
  return internal::Join(" dequantize", int{weights_first}, '.', int{row_zero_points}, '.',
                        int{per_row}) +
         TailKey(tail);
}

void PackScales(std::span<const float> scales, std::span<const int64_t> channels, float* to) {
  for (const int64_t channel : channels) {
    *to++ = channel < 0 ? 0 : scales[scales.size() > 1 ? channel : 0];
  }
}

void EmitDequantization(Assembler& a, const Dequantization& d, std::span<const TileValue> values,
                        const Xbyak::Reg64& scales, const Place& constants, int t0, int t1) {
  const Xmm row_scale = a.Vec(t0), scale = a.Vec(t1);
  int row = -1;
  for (const TileValue& value : values) {
    const Xmm v = a.Vec(value.reg);
    const auto weights = a.ptr[constants + value.vector * a.isa().bytes];
    if (value.row != row && (row < 0 || d.per_row)) {
      a.vbroadcastss(row_scale, a.ptr[scales + static_cast<int>(value.row * d.row_step())]);
    }
    row = value.row;
    a.vcvtdq2ps(v, v);
    if (d.weights_first) {
      a.vmulps(v, v, weights);
      a.vmulps(v, v, row_scale);
    } else {
      a.vmulps(scale, row_scale, weights);
      a.vmulps(v, v, scale);
    }
  }
}

}  // namespace fuselite::jit
