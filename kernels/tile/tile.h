// TILE and BROADCAST_TO: a tensor repeated.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

// (input, multiples [rank]).
Result<Movement> PlanTile(const OpDescription& op);
// (input, shape): dimensions of size 1 are repeated, missing outer ones added.
Result<Movement> PlanBroadcastTo(const OpDescription& op);

}  // namespace fuselite::kernels
