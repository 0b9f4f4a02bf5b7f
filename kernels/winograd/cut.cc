#include "kernels/winograd/cut.h"

#include <algorithm>

#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kSum = 4;  // bytes
// What a block has in L2: its transformed inputs, and the sums of a chunk.
constexpr int64_t kBlockBytes = 448 << 10;
// Fewer tiles would wait for the weights, which each block reads anew: with 16 tiles a core of 16
// multiply-adds a cycle uses 4 bytes of them in a cycle, what L3 gives.
constexpr int64_t kFewestTiles = 16, kMostTiles = 96;
constexpr int64_t kChunkChannels = 64;
constexpr int64_t kLine = 16;  // floats
constexpr int64_t kUnitsPerThread = 4;
// Weights that come from memory, in bytes a cycle of one core.
constexpr double kWeightBytesPerCycle = 4;
// The transforms pay where they save at least a twentieth, and larger weights likewise.
constexpr double kWorthwhile = 0.95;

// What transforming a vector of one tile's channels takes, loads and stores beside arithmetic.
// Those of stride 2 do little but move: 48 channels take no less time than without, 64 0.92 of it.
double InputCycles(const WinogradTile& tile) {
  if (tile.stride == 2) return 100;
  return tile.outputs == 2 ? 35 : 110;
}
double OutputCycles(const WinogradTile& tile) {
  if (tile.stride == 2) return 80;
  return tile.outputs == 2 ? 30 : 85;
}

// The vectors that the transforms take for a tile's channels (channels-inl.h).
double TransformedVectors(int64_t channels, int64_t lanes) {
  while (channels < lanes && lanes > 4) lanes /= 2;
  return static_cast<double>(channels < lanes ? channels : CeilDiv(channels, lanes));
}

double WeightCycles(int64_t bytes) { return static_cast<double>(bytes) / kWeightBytesPerCycle; }

// Which part of the taps plain products compute.
double ComputedTaps(const ProductDescription& conv) {
  double taps = 0;
  for (const ProductPart& part : conv.parts) {
    const auto& [y, x] = part.window;
    taps += static_cast<double>(part.window.taps()) * y.output * x.output;
  }
  const auto& [y, x] = conv.padding;
  return taps / (static_cast<double>(conv.padding.taps()) * y.output * x.output);
}

Result<double> PlainCycles(const ProductDescription& conv,
                           const MakeWinogradMicroKernel& micro_kernel) {
  const auto& [y, x] = conv.padding;
  ProductProblem problem;
  problem.grid = {.line_rows = x.output, .lines_per_image = y.output, .images = conv.images};
  problem.channels = conv.channels_out;
  DepthRuns depth;
  depth.outer = y.filter;
  depth.runs = {{0, int64_t{x.filter} * conv.channels_in}};
  FUSELITE_ASSIGN_OR_RETURN(const auto kernel, micro_kernel(depth, problem));
  return ComputedTaps(conv) * CyclesOfTiles(problem, *kernel) +
         WeightCycles(kernel->row_bytes() * conv.channels_out);
}

Result<double> WinogradCycles(const WinogradCut& cut, const WinogradNumbers& numbers,
                              const MakeWinogradMicroKernel& micro_kernel) {
  const ProductProblem problem = WinogradProduct(cut, cut.chunk_channels);
  FUSELITE_ASSIGN_OR_RETURN(const auto made, micro_kernel(WinogradDepth(cut), problem));
  const MicroKernel& kernel = *made;
  const double vectors_in = TransformedVectors(cut.channels_in, kernel.lanes());
  const double vectors_out = TransformedVectors(cut.channels_out, kernel.lanes());
  // Blocks are as good as full; products of the last chunk's channels too.
  const double products =
      cut.tile.terms() * CyclesOfTiles(problem, kernel) *
      (static_cast<double>(cut.tiles) / static_cast<double>(cut.block_tiles)) *
      (static_cast<double>(cut.channels_out) / static_cast<double>(cut.chunk_channels));
  const double output =
      OutputCycles(cut.tile) + numbers.tail_cycles + cut.tile.terms() * numbers.sum_cycles;
  const int64_t weights = cut.tile.filters() * cut.channels_in * cut.channels_out * numbers.bytes;
  return products + WeightCycles(weights) +
         static_cast<double>(cut.tiles) *
             (vectors_in * InputCycles(cut.tile) + vectors_out * output);
}

WinogradAxis AxisOf(const WindowAxis& axis, const WinogradTile& tile) {
  const int64_t of_each = CeilDiv(CeilDiv(axis.output, axis.dilation), tile.outputs);
  return {.tiles = of_each * axis.dilation, .dilation = static_cast<int>(axis.dilation)};
}

// Blocks of nearly equal size that fit the cache and are enough for all threads.
void ChooseBlocks(int threads, WinogradCut* cut) {
  const int64_t tile_bytes =
      cut->tile.terms() * (cut->channels_in * cut->value_bytes + cut->chunk_channels * kSum);
  int64_t most = std::clamp(kBlockBytes / tile_bytes, kFewestTiles, kMostTiles);
  if (threads > 1) {
    const int64_t wanted = CeilDiv(kUnitsPerThread * threads, cut->chunks());
    most = std::clamp(cut->tiles / wanted, std::min(kFewestTiles / 2, most), most);
  }
  cut->block_tiles = CeilDiv(cut->tiles, CeilDiv(cut->tiles, most));
}

}  // namespace

int64_t WinogradCut::term_bytes() const {
  return static_cast<int64_t>(
             AlignUp(static_cast<size_t>(block_tiles * channels_in * value_bytes))) +
         64;
}

int64_t WinogradCut::sums_bytes() const {
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(tile.terms() * chunk_channels * kSum))) +
         64;
}

ProductProblem WinogradProduct(const WinogradCut& cut, int64_t channels) {
  ProductProblem problem;
  problem.name = internal::Join("conv winograd ", cut.tile.outputs, 'x', cut.tile.outputs,
                                cut.tile.stride == 2 ? " stride 2" : "",
                                cut.y.dilation > 1 || cut.x.dilation > 1 ? " dilated" : "");
  problem.grid = {.line_rows = cut.block_tiles, .lines_per_image = 1, .images = 1};
  problem.left = DenseSteps(problem.grid, cut.channels_in * cut.value_bytes);
  problem.out = DenseSteps(problem.grid, 1);
  problem.out_row_bytes = cut.sums_bytes();
  problem.out_value_bytes = kSum;
  problem.channels = channels;
  problem.rights = cut.tile.filters();
  return problem;
}

WinogradCut CutForWinograd(const ProductDescription& conv, const WinogradNumbers& numbers,
                           const WinogradTile& tile, int threads) {
  WinogradCut cut{.tile = tile,
                  .value_bytes = numbers.bytes,
                  .channels_in = conv.channels_in,
                  .channels_out = conv.channels_out,
                  .y = AxisOf(conv.padding.y, tile),
                  .x = AxisOf(conv.padding.x, tile)};
  cut.tiles = conv.images * cut.y.tiles * cut.x.tiles;
  // Chunks of nearly equal size, of whole cache lines.
  const int64_t chunks = CeilDiv(conv.channels_out, kChunkChannels);
  cut.chunk_channels =
      chunks == 1 ? conv.channels_out : CeilDiv(CeilDiv(conv.channels_out, chunks), kLine) * kLine;
  ChooseBlocks(threads, &cut);
  return cut;
}

Result<std::optional<WinogradTile>> ChooseWinogradTile(const ProductDescription& conv,
                                                       const WinogradNumbers& numbers,
                                                       const MakeWinogradMicroKernel& micro_kernel,
                                                       const MakeWinogradMicroKernel& plain) {
  FUSELITE_ASSIGN_OR_RETURN(double least, PlainCycles(conv, plain));
  std::optional<WinogradTile> best;
  for (const WinogradTile& tile : numbers.tiles) {
    if (tile.stride != conv.padding.x.stride) continue;
    FUSELITE_ASSIGN_OR_RETURN(
        const double cycles,
        WinogradCycles(CutForWinograd(conv, numbers, tile, 1), numbers, micro_kernel));
    if (cycles >= least * kWorthwhile) continue;
    least = cycles;
    best = tile;
  }
  return best;
}

}  // namespace fuselite::kernels
