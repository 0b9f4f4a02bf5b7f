#include "kernels/product/tiling.h"

#include <algorithm>

#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// Half of a 1 MiB L2, the smallest of current server cores: panels that fit stay there.
constexpr int64_t kPanelsThatStay = 512 << 10;
// Units for each thread, so that the threads share them evenly.
constexpr int kUnitsPerThread = 4;

// Threads that share the rows find them where they left them in the step before, and leave them
// where the next step reads them, but each needs all panels. With two threads MobileNetV1 takes
// 0.95 of the time that it takes where they share the panels, MobileNetV2 with bytes 0.97. Weights
// of more than so many times the rows' bytes would take longer on their way to each.
constexpr int64_t kRowsToShare = 4;

// Few units of which one thread has more than the others: 11 panels are shared as 6 and 5. Those of
// the rows of each thread are smaller, and who is done takes one of the other's, as long as each
// multiplies for 2.5 times as long as it takes to bring all weights from L3, 10 bytes a cycle. 64
// rows of a decoder with float weights take 0.94 of their time, the 49 of ResNet-50's last layers,
// which are just too few, 1.02.
constexpr int64_t kFewUnits = 8;
constexpr double kCyclesOfByte = 0.25;
bool IsUneven(int64_t units, int threads) {
  return units % threads != 0 && units < kFewUnits * threads;
}

// Few rows whose panels are those of many (MicroKernel::many_rows), where the weights are worth it.
constexpr int64_t kFewRows = 4, kManyRows = 64;

// Weights of this size take more than a microsecond on their way from L2, which threads shorten
// where each has a panel of its own.
constexpr int64_t kWorthDividing = 128 << 10;

// The best with panels of `least` to `most` vectors, and tiles of a multiple of `run` rows.
Tiling BestTiling(const MicroKernel& kernel, int64_t line_rows, int64_t columns, int64_t run,
                  int least, int most) {
  const int64_t all_vectors = CeilDiv(columns, kernel.lanes());
  Tiling best;
  best.line_cycles = 1e300;
  for (int vectors = least; vectors <= most && vectors <= all_vectors; ++vectors) {
    const int max_rows = kernel.max_rows(vectors);
    const int64_t panels = CeilDiv(all_vectors, vectors);
    const auto last_vectors = static_cast<int>(all_vectors - (panels - 1) * vectors);
    for (auto rows = static_cast<int>(run); rows <= max_rows && rows <= line_rows;
         rows += static_cast<int>(run)) {
      const auto last_rows = static_cast<int>(line_rows % rows);
      const int64_t full_tiles = line_rows / rows;
      const auto line_cycles = [&](int v) {
        return static_cast<double>(full_tiles) * kernel.TileCycles(rows, v) +
               (last_rows ? kernel.TileCycles(last_rows, v) : 0.0);
      };
      const double full = line_cycles(vectors);
      const double last = last_vectors == vectors ? full : line_cycles(last_vectors);
      const double cycles = static_cast<double>(panels - 1) * full + last;
      if (cycles >= best.line_cycles * 0.999) continue;
      best = {.rows = rows,
              .vectors = vectors,
              .last_rows = last_rows,
              .last_vectors = last_vectors,
              .tiles_per_line = CeilDiv(line_rows, rows),
              .panels = panels,
              .line_cycles = cycles};
    }
  }
  best.last_lanes = static_cast<int>(columns - (all_vectors - 1) * kernel.lanes());
  best.tile_cycles = kernel.TileCycles(best.rows, best.vectors);
  return best;
}

}  // namespace

Tiling ChooseTiling(const MicroKernel& kernel, int64_t line_rows, int64_t columns, int64_t run,
                    int threads) {
  const Tiling best = BestTiling(kernel, line_rows, columns, run, 1, kMostPanelVectors);
  const auto bytes = best.panels * static_cast<int64_t>(kernel.panel_bytes(best.vectors));
  const MicroKernel* const many = line_rows <= kFewRows ? kernel.many_rows() : nullptr;
  if (many != nullptr && bytes >= kWorthSharing) {
    const int vectors = BestTiling(*many, kManyRows, columns, 1, 1, kMostPanelVectors).vectors;
    return BestTiling(kernel, line_rows, columns, 1, vectors, vectors);
  }
  if (best.tiles_per_line * best.panels >= threads || bytes < kWorthDividing) return best;
  const auto most = static_cast<int>(CeilDiv(columns, kernel.lanes()) / threads);
  return BestTiling(kernel, line_rows, columns, run, 1, std::max(1, most));
}

// Where all panels stay in the cache, blocks are small; where not, blocks are large, so that the
// panels pass as few times as possible.
Blocks ChooseBlocks(const MicroKernel& kernel, const Tiling& tiling, int64_t lines, int64_t panels,
                    int64_t panels_bytes, int threads) {
  const int64_t block_bytes =
      panels_bytes <= kPanelsThatStay ? kernel.small_block_bytes() : kernel.large_block_bytes();
  const int64_t tiles = tiling.tiles_per_line * lines;
  const int64_t tile_bytes = std::max<int64_t>(1, tiling.rows * kernel.row_bytes());
  const int64_t wanted = CeilDiv(threads > 1 ? kUnitsPerThread * threads : 1, panels);
  const int64_t most = std::max<int64_t>(
      1, std::min(std::max<int64_t>(1, block_bytes / tile_bytes), tiles / wanted));
  int64_t count = CeilDiv(tiles, most);
  const bool rows_rather = panels_bytes <= kRowsToShare * tiles * tile_bytes ||
                           (IsUneven(count * panels, threads) &&
                            static_cast<double>(tiles * panels) * tiling.tile_cycles >=
                                threads * kCyclesOfByte * static_cast<double>(panels_bytes));
  if (tiles >= threads && rows_rather) {
    count = std::min(tiles, CeilDiv(count, threads) * threads);
  }
  Blocks blocks;
  blocks.tiles = CeilDiv(tiles, count);
  blocks.count = CeilDiv(tiles, blocks.tiles);
  return blocks;
}

}  // namespace fuselite::kernels
