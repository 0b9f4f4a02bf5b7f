#include "jit/tail/dequantize_emitter.h"

#include <algorithm>

#include "runtime/status.h"

namespace fuselite::jit {

using Xbyak::RegExp;
using Xbyak::Xmm;

std::string Dequantization::key() const {
  return internal::Join(" dequantize", weights_first, '.', row_zero_points, '.', per_row) +
         TailKey(tail);
}

void PackScales(std::span<const float> scales, std::span<const int64_t> channels, float* to) {
  for (const int64_t channel : channels) {
    *to++ = channel < 0 ? 0 : scales[scales.size() > 1 ? channel : 0];
  }
}

namespace {

void Dequantize(Assembler& a, const Dequantization& d, std::span<const TileValue> values,
                const FloatFrame& frame) {
  const int t0 = frame.temporaries[0], t1 = frame.temporaries[1];
  const Xmm row_scale = a.Vec(t0), scale = a.Vec(t1);
  int row = -1;
  for (const TileValue& value : values) {
    const Xmm v = a.Vec(value.reg);
    const auto weights = a.ptr[frame.constants + value.vector * a.isa().bytes];
    if (value.row != row && (row < 0 || d.per_row)) {
      a.vbroadcastss(row_scale, a.ptr[frame.scales + static_cast<int>(value.row * d.row_step())]);
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

}  // namespace

void EmitFloats(Assembler& a, const Dequantization& d, std::span<const TileValue> values, int rows,
                const FloatFrame& frame) {
  Dequantize(a, d, values, frame);
  const auto& t = frame.temporaries;
  TailEmitter tail(
      a, d.tail,
      {.slots_base = frame.args,
       .slots_offset = frame.tail_at + static_cast<int>(offsetof(SumTailArgs, operands)),
       .pointer = frame.pointer,
       .temporaries = {t[0], t[1], t[2], t[3]}});
  tail.Emit(values);
  for (const TileValue& value : values) {
    const int64_t offset = value.row * frame.out_step + value.vector * a.isa().bytes;
    a.StoreLanes(frame.out + static_cast<int>(offset), value.reg, value.partial, t[0]);
  }
  tail.AdvanceRows(rows);
}

}  // namespace fuselite::jit
