// TILE to more than the caches hold.
//
// What lies together in the output, a line, is put together once and then copied, from L2, to all
// other places where it stands: in one go, where single runs, each repeated, would be written in
// steps.
#pragma once

#include <memory>

#include "kernels/operator.h"

namespace fuselite::kernels {

// TILE (kernels/tile/tile.h). kUnsupported where the output is small, or no line has a fit size.
Result<std::unique_ptr<Kernel>> BuildTiledLines(const OpDescription& op,
                                                const BuildContext& context);

}  // namespace fuselite::kernels
