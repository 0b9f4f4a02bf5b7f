// Running a tail over a tile of values: the scalar truth, and the Highway version of each target.
#pragma once

#include <cstdint>

#include "kernels/tail/tail.h"
#include "runtime/cpu/isa.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// The scalar functions behind the stages, as TFLite's reference kernels compute them.
float ApplyUnary(UnaryKind kind, float x, float a, float b);
float ApplyBinary(BinaryKind kind, float x, float y);

// A rectangle of the output: rows [row, row + rows), channels [channel, channel + channels).
// `source` points at the tile's first value: float32 or int32 accumulators, or the quantized type
// where the first stage takes that; `destination` at the tile's first output element. Pitches
// count elements between rows. source == destination is allowed where the element sizes agree.
struct TailTile {
  const void* source;
  int64_t source_pitch;
  DataType source_type;
  void* destination;
  int64_t destination_pitch;
  DataType destination_type;
  int64_t row, rows;
  int64_t channel, channels;
};

// `inputs` are those of KernelArgs. Any tail: an empty one copies. The types fit the stages: this
// was checked by CheckTail (kernels/check_tail.h).
using ApplyTailFunction = void(const Tail& tail, const void* const* inputs, const TailTile& tile);

void ApplyTailReference(const Tail& tail, const void* const* inputs, const TailTile& tile);

// The fastest portable version for `isa`; the reference below SSSE3. Float stages agree with the
// reference within a few units in the last place, integer stages to the bit.
ApplyTailFunction* ApplyTail(Isa isa);

}  // namespace fuselite::kernels
