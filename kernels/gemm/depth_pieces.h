// A row of a product's left side that does not lie in one piece.
#pragma once

#include <cstdint>

namespace fuselite::kernels {

// Values that follow each other: `terms` of them, or pairs, `offset` bytes behind the row's start.
struct DepthPiece {
  int64_t offset, terms;
};

}  // namespace fuselite::kernels
