// PAD, PADV2 and MIRROR_PAD: a tensor with a border of one value, or of its own reflection.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

// PAD and PADV2 take (input, paddings [rank, 2], value). PAD may lack the value, which is zero
// then: the output's zero point where it is quantized.
Result<Movement> PlanPad(const OpDescription& op);

// kReflect leaves the edge out of the reflection ("abc" -> "cb|abc|ba"), kSymmetric repeats it
// ("abc" -> "ba|abc|cb").
enum class MirrorMode : int32_t { kReflect, kSymmetric };
struct MirrorPadParams {
  MirrorMode mode;
};

Result<Movement> PlanMirrorPad(const OpDescription& op);

}  // namespace fuselite::kernels
