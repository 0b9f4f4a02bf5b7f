#include "jit/depthwise/row_walker.h"

#include <algorithm>

namespace fuselite::jit {

using kernels::Window;
using kernels::WindowAxis;

Taps TapsAt(const WindowAxis& axis, int32_t position) {
  const int32_t start = axis.start(position);
  return {axis.first_tap(start), std::max(axis.first_tap(start), axis.last_tap(start))};
}

std::vector<EqualTiles> SplitRow(const WindowAxis& x, int outputs) {
  std::vector<EqualTiles> runs;
  for (int32_t first = 0; first < x.output; first += outputs) {
    RowTile tile;
    for (int32_t i = first; i < std::min(x.output, first + outputs); ++i) {
      tile.push_back(TapsAt(x, i));
    }
    if (runs.empty() || runs.back().tile != tile) runs.push_back({std::move(tile), 0});
    ++runs.back().count;
  }
  return runs;
}

int ChooseTile(const WindowAxis& x, int most, const std::function<double(int)>& cycles) {
  int best = 1;
  double best_cost = 1e300;
  for (int outputs = 1; outputs <= std::min(most, x.output); ++outputs) {
    const int tiles = (x.output + outputs - 1) / outputs;
    const double cost = tiles * cycles(outputs);
    if (cost >= best_cost * 0.999) continue;
    best_cost = cost;
    best = outputs;
  }
  return best;
}

std::vector<TileColumn> ColumnsUnder(const WindowAxis& x, const RowTile& tile) {
  const auto outputs = static_cast<int>(tile.size());
  const int32_t width = (outputs - 1) * x.stride + (x.filter - 1) * x.dilation + 1;
  std::vector<TileColumn> columns;
  columns.reserve(static_cast<size_t>(width));
  for (int32_t at = 0; at < width; ++at) {
    TileColumn column{.at = at};
    column.uses.reserve(tile.size());
    for (int i = 0; i < outputs; ++i) {
      const int32_t distance = at - i * x.stride, tap = distance / x.dilation;
      if (distance < 0 || distance % x.dilation != 0 || tap >= x.filter) continue;
      column.inside = tile[i].Has(tap);
      column.uses.push_back({i, tap});
    }
    if (!column.uses.empty()) columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<TileColumn> ColumnsInside(const WindowAxis& x, const RowTile& tile) {
  std::vector<TileColumn> columns = ColumnsUnder(x, tile);
  std::erase_if(columns, [](const TileColumn& column) { return !column.inside; });
  return columns;
}

namespace {

// A run of tiles, and the single ones of as many outputs beside it, where there are.
struct SharedRun {
  const EqualTiles* before = nullptr;
  const EqualTiles* run = nullptr;
  const EqualTiles* after = nullptr;
};

// Lets single tiles beside the longest run share its code.
std::vector<SharedRun> ShareNeighbours(const std::vector<EqualTiles>& runs) {
  const auto longest = std::ranges::max_element(runs, {}, &EqualTiles::count);
  const auto joins = [&](const EqualTiles& run) {
    return run.count == 1 && run.tile.size() == longest->tile.size();
  };
  std::vector<SharedRun> shared;
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    if (run + 1 == longest && joins(*run)) {
      shared.push_back({.before = &*run, .run = &*longest});
    } else if (run == longest) {
      if (shared.empty() || shared.back().run != &*longest) shared.push_back({.run = &*run});
    } else if (run - 1 == longest && joins(*run)) {
      shared.back().after = &*run;
    } else {
      shared.push_back({.run = &*run});
    }
  }
  return shared;
}

// The count is 0 in the tile after the run.
void EmitSharedRun(Assembler& a, const SharedRun& shared, const Xbyak::Reg64& count,
                   const TileParts& parts) {
  Xbyak::Label next, finish, done;
  a.mov(count, shared.run->count + (shared.before != nullptr ? 1 : 0));
  if (shared.before != nullptr) {
    parts.sums(shared.before->tile);
    a.jmp(finish, Assembler::T_NEAR);
  }
  a.align(16);
  a.L(next);
  parts.sums(shared.run->tile);
  a.L(finish);
  parts.finish(static_cast<int>(shared.run->tile.size()));
  a.sub(count, 1);
  a.ja(next, Assembler::T_NEAR);
  if (shared.after != nullptr) {
    a.jb(done, Assembler::T_NEAR);
    parts.sums(shared.after->tile);
    a.jmp(finish, Assembler::T_NEAR);
  }
  a.L(done);
}

}  // namespace

void WalkRow(Assembler& a, const WindowAxis& x, int outputs, const Xbyak::Reg64& count,
             const TileParts& parts) {
  const std::vector<EqualTiles> runs = SplitRow(x, outputs);
  for (const SharedRun& shared : ShareNeighbours(runs)) EmitSharedRun(a, shared, count, parts);
}

void WalkRow(Assembler& a, const WindowAxis& x, int outputs, const Xbyak::Reg64& count,
             const std::function<void(const RowTile&)>& tile) {
  for (const EqualTiles& run : SplitRow(x, outputs)) {
    a.mov(count, run.count);
    Xbyak::Label next;
    a.align(16);
    a.L(next);
    tile(run.tile);
    a.dec(count);
    a.jnz(next, Assembler::T_NEAR);
  }
}

Status CheckRow(const Window& window, const RowExtent& extent) {
  const auto& [y, x] = window;
  if (x.filter > 64) return Unsupported("does not take filters of ", x.filter, " columns");
  if (extent.multiplies > extent.most_multiplies) {
    return Unsupported("windows of ", y.filter, 'x', x.filter, " are too large to be unrolled");
  }
  constexpr int64_t kReach = int64_t{1} << 30;
  const int64_t columns = int64_t{16} * x.stride + int64_t{x.filter} * x.dilation;
  const int64_t reach = extent.above + columns * extent.pixel_bytes;
  if (reach > kReach || extent.out_pixel_bytes * 8 > kReach) {
    return Unsupported("does not take a tile of ", reach, " bytes' extent");
  }
  return Status();
}

std::string WindowKey(const Window& window) {
  std::string key;
  for (const WindowAxis& axis : {window.y, window.x}) {
    key += internal::Join(" w", axis.input, '.', axis.filter, '.', axis.stride, '.', axis.dilation,
                          '.', axis.output, '.', axis.before);
  }
  return key;
}

}  // namespace fuselite::jit
