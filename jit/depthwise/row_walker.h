// The walk of a depthwise convolution along one row of outputs: tiles of neighbours, and in a tile
// the columns of the image that its windows share. What a column is multiplied with is its
// emitter's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "jit/code/assembler.h"
#include "kernels/window.h"

namespace fuselite::jit {

// A range of taps of one axis.
struct Taps {
  int32_t first = 0, last = 0;
  bool Has(int32_t tap) const { return first <= tap && tap < last; }
  friend bool operator==(const Taps&, const Taps&) = default;
};

// The taps of the window at an output position that lie inside of the input.
Taps TapsAt(const kernels::WindowAxis& axis, int32_t position);

// Neighbouring outputs that are computed together: of each one's window the taps inside.
using RowTile = std::vector<Taps>;

// How many equal tiles follow each other.
struct EqualTiles {
  RowTile tile;
  int64_t count = 0;
};
// The row of outputs as runs of equal tiles: those at the borders have fewer taps.
std::vector<EqualTiles> SplitRow(const kernels::WindowAxis& x, int outputs);

// How many outputs, up to `most`, a tile should have for a row to take least where a tile of n
// takes cycles(n); the fewest of those within a thousandth.
int ChooseTile(const kernels::WindowAxis& x, int most, const std::function<double(int)>& cycles);

// A column under a tile, counted from the first tap of its first window.
struct TileColumn {
  struct Use {
    int output;  // of the tile
    int32_t tap;
  };
  int32_t at = 0;
  // Whether the column lies in the image for the windows of `uses`: for all of them, or for none.
  bool inside = false;
  std::vector<Use> uses{};  // at least one, in the order of the outputs
};
// Lists columns from left to right; those that no window has a tap for are left out.
std::vector<TileColumn> ColumnsUnder(const kernels::WindowAxis& x, const RowTile& tile);
// Lists those that lie in the image.
std::vector<TileColumn> ColumnsInside(const kernels::WindowAxis& x, const RowTile& tile);

// Emits the row: `tile` once for each run of equal tiles, in a loop that counts in `count`. It is
// to move on by as many outputs as the tile has.
void WalkRow(Assembler& a, const kernels::WindowAxis& x, int outputs, const Xbyak::Reg64& count,
             const std::function<void(const RowTile&)>& tile);

// For WalkRow() of tiles in two parts: `sums` emits what differs between tiles of as many outputs,
// `finish` what does not, and moves on. A border's tile shares the latter with its neighbours.
struct TileParts {
  std::function<void(const RowTile&)> sums;
  std::function<void(int outputs)> finish;
};
void WalkRow(Assembler& a, const kernels::WindowAxis& x, int outputs, const Xbyak::Reg64& count,
             const TileParts& parts);

// What a row's code would span. Tiles have up to 8 outputs.
struct RowExtent {
  int64_t multiplies = 0, most_multiplies = 0;
  int64_t above = 0;  // bytes of the image from the first tap's row to the last's
  int64_t pixel_bytes = 0, out_pixel_bytes = 0;
};
// kUnsupported where filters are too wide, or that is too much to be unrolled or addressed.
Status CheckRow(const kernels::Window& window, const RowExtent& extent);

// Everything about a window that changes emitted code.
std::string WindowKey(const kernels::Window& window);

}  // namespace fuselite::jit
