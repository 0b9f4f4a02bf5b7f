// TRANSPOSE: output dimension i is input dimension perm[i].
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

Result<Movement> PlanTranspose(const OpDescription& op);

}  // namespace fuselite::kernels
