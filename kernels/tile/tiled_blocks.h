// TILE in the order of the output, from sources that stay in L1.
//
// A block of a dimension that is repeated is what stands behind one index of it, repeated as the
// dimensions behind it are. Small blocks are copied from where they stand first; large ones are
// written anew each time, since copies out of L2 take nearly twice as long as those out of L1 (a
// Zen 4: 31 GB/s for 57).
#pragma once

#include <memory>

#include "kernels/operator.h"

namespace fuselite::kernels {

// TILE (kernels/tile/tile.h). kUnsupported where nothing is repeated, or only runs of the input
// that are shorter than a vector.
Result<std::unique_ptr<Kernel>> BuildTiledBlocks(const OpDescription& op,
                                                 const BuildContext& context);

}  // namespace fuselite::kernels
