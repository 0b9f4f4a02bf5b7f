// How a convolution is cut for Winograd's algorithm, and whether it pays.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "kernels/product/description.h"
#include "kernels/product/product.h"
#include "kernels/winograd/algorithm.h"

namespace fuselite::kernels {

// Makes the micro-kernel of products whose rows lie as `problem` and `depth` say.
using MakeWinogradMicroKernel = std::function<Result<std::shared_ptr<const MicroKernel>>(
    const DepthRuns& depth, const ProductProblem& problem)>;

// The numbers that a convolution is computed in, and what is estimated of them.
struct WinogradNumbers {
  int64_t bytes = sizeof(float);        // of a transformed input or weight; sums have four
  std::span<const WinogradTile> tiles;  // that there are
  double tail_cycles = 0;               // of a vector of a tile's outputs, beside its transform
  double sum_cycles = 0;                // of a vector of one term's sums, which passes through L2
};
inline constexpr WinogradTile kFloatTiles[] = {{2, 1}, {4, 1}, {2, 2}};
// 64x64 outputs of 64 channels take 60 microseconds longer than transforms and products by
// themselves, be they of 3 or of 16 channels (Zen 3): those of 3 are faster without.
inline constexpr WinogradNumbers kWinogradFloats = {.tiles = kFloatTiles, .sum_cycles = 3};

// The tiles along an axis. With a dilation of d the outputs whose numbers have the same remainder
// by d are a convolution without one: the tiles of remainder 0 come first, then those of 1, and so
// on, as many of each.
struct WinogradAxis {
  int64_t tiles = 0;
  int dilation = 1;

  // The first output of a tile of `outputs`, which are `dilation` apart.
  int64_t FirstOutput(int64_t tile, int outputs) const {
    if (dilation == 1) return tile * outputs;
    const int64_t of_each = tiles / dilation;
    return tile / of_each + tile % of_each * outputs * dilation;
  }
};

// Tiles of outputs, in the order of images, rows and columns, come in blocks; channels of the
// output in chunks. A unit of work is a block times a chunk, and chunks run fastest: a block's
// inputs are transformed once for the chunks that follow each other and stay in the cache, as do
// the sums of a chunk until they are transformed back.
struct WinogradCut {
  WinogradTile tile;
  int64_t value_bytes = sizeof(float);  // WinogradNumbers::bytes
  int64_t channels_in = 0, channels_out = 0;
  WinogradAxis y, x;           // of an image
  int64_t tiles = 0;           // of all together
  int64_t block_tiles = 0;     // the last block may have fewer
  int64_t chunk_channels = 0;  // the last chunk may have fewer

  int64_t blocks() const { return (tiles + block_tiles - 1) / block_tiles; }
  int64_t chunks() const { return (channels_out + chunk_channels - 1) / chunk_channels; }
  // The transformed inputs of a block, tile by tile, term by term: bytes from one term to the next.
  // One cache line more than they need: terms must not lie a multiple of 4 KiB apart, where they
  // would share the same few lines of L1.
  int64_t term_bytes() const;
  // The sums of a block for one chunk, term by term, tile by tile: bytes from one tile to the next.
  int64_t sums_bytes() const;
};

// The cut into such tiles, for so many threads.
WinogradCut CutForWinograd(const ProductDescription& conv, const WinogradNumbers& numbers,
                           const WinogradTile& tile, int threads);

// The tile of the convolution's stride that takes the fewest cycles, the bytes of the weights
// included; nothing where a plain product, by the micro-kernel that `plain` makes, takes fewer. It
// does not depend on the number of threads, since results must not.
Result<std::optional<WinogradTile>> ChooseWinogradTile(const ProductDescription& conv,
                                                       const WinogradNumbers& numbers,
                                                       const MakeWinogradMicroKernel& micro_kernel,
                                                       const MakeWinogradMicroKernel& plain);

// The product of one term of a block, whose tiles are the rows, with `channels` channels of the
// output. `DepthRuns` of its rows are channels_in values.
ProductProblem WinogradProduct(const WinogradCut& cut, int64_t channels);
inline DepthRuns WinogradDepth(const WinogradCut& cut) {
  DepthRuns depth;
  depth.runs = {{0, cut.channels_in}};
  return depth;
}

}  // namespace fuselite::kernels
