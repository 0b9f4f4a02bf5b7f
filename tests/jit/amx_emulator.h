// AMX's instructions for bytes on machines that lack them.
#pragma once

#include <optional>

#include "runtime/cpu/isa.h"

namespace fuselite::jit::testing {

// From now on, each of LDTILECFG, TILERELEASE, TILEZERO, TILELOADD, TILELOADDT1, TILESTORED and
// TDPB[SU][SU]D and TDPBF16PS that this process executes is computed by the handler of the signal
// that it raises where there are no tiles; each thread that lets SIGILL through has tiles of its
// own. What raises an error in a processor, such as a product of tiles whose shapes do not fit,
// ends the process with a line that says why, as does any other illegal instruction.
//
// A machine with tiles goes on using them. False on other processors than x86-64.
bool EmulateAmx();

// What machines with tiles have, or as much of it as this one has beside them, whose tiles are then
// emulated; nullopt where it lacks `feature`.
std::optional<Isa> IsaWithTiles(Feature feature);

}  // namespace fuselite::jit::testing
