// How tiles cover a matrix product, and how many of them make up a unit of work.
#pragma once

#include "kernels/product/micro_kernel.h"
#include "kernels/product/rows.h"

namespace fuselite::kernels {

// The widest panels.
inline constexpr int kMostPanelVectors = 8;

// Bytes of weights from which a few rows take the panels of many (MicroKernel::many_rows): smaller
// ones are read from L2 faster by wide panels, and packed twice without much memory.
inline constexpr int64_t kWorthSharing = 256 << 10;

// Each line is covered by tiles of `rows` rows and, where its rows do not divide, a shorter tile;
// the columns by panels of `vectors` vectors and a last one that may be narrower.
struct Tiling {
  int rows = 1, vectors = 1;
  int last_rows = 0;     // of the shorter tile; 0: there is none
  int last_vectors = 0;  // of the last panel, at least 1
  int last_lanes = 0;    // of the last panel's last vector
  int64_t tiles_per_line = 0, panels = 0;
  double tile_cycles = 0;  // of a full tile
  double line_cycles = 0;  // of all panels of a line
};
// The tiling that takes the fewest cycles, by the micro-kernel's own estimate. Tiles have a
// multiple of `run` rows: those of RowRuns. A tile of one vector must hold that many. A single tile
// of much weight is cut into a panel for each of `threads`.
Tiling ChooseTiling(const MicroKernel& kernel, int64_t line_rows, int64_t columns, int64_t run = 1,
                    int threads = 1);

// The tiles of all lines in blocks. A unit of work is a block times a panel, and panels run
// fastest: a block's rows stay in the cache while the panels pass.
struct Blocks {
  int64_t tiles = 1;  // of a block; the last block may have fewer
  int64_t count = 1;
};
// `panels`: of all groups. `panels_bytes`: of all of them together.
Blocks ChooseBlocks(const MicroKernel& kernel, const Tiling& tiling, int64_t lines, int64_t panels,
                    int64_t panels_bytes, int threads);

}  // namespace fuselite::kernels
