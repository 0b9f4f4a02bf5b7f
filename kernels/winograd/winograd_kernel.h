// Winograd's algorithm (kernels/winograd/algorithm.h) around a product for each of its terms,
// whatever its numbers are: where tiles lie, and what is computed of them when.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "kernels/operator.h"
#include "kernels/product/source.h"
#include "kernels/winograd/cut.h"

namespace fuselite::kernels {

// What the transforms read.
struct WinogradSides {
  std::shared_ptr<const Source> images;
  Window window;                   // over the images as the source leaves them
  std::vector<std::byte> padding;  // a pixel of what is beyond them
  int64_t filter_value_bytes = 0;
};
// The images as they are in input 0.
WinogradSides InputAsItIs(const ProductDescription& conv, std::vector<std::byte> padding);

// The phases of its source, and one of its own.
class WinogradKernel : public PhasedKernel {
 public:
  // Emits the products and packs the transformed filters.
  Status Build(const OpDescription& op, const BuildContext& context);

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override;

 protected:
  // Tiles [first, last) of all images.
  struct Tiles {
    int64_t first, last;
  };
  // The image of a tile, and its first output.
  struct Place {
    int64_t image, y, x;
  };

  // The first that a derived class does. `transform`: what decides the bytes of transformed
  // filters.
  Status PlanProducts(const WinogradCut& cut, WinogradSides sides, std::string transform,
                      const MakeWinogradMicroKernel& micro_kernel);

  // One tile's inputs: pixels[row * inputs + column] points at the channels of one; term t goes
  // t * term_bytes behind `to`.
  virtual void TransformInput(const std::byte* const* pixels, std::byte* to,
                              int64_t term_bytes) const = 0;
  // One channel's filter: what WinogradTile::filters() counts, likewise.
  virtual void TransformFilter(const std::byte* taps, std::byte* to,
                               int64_t filter_bytes) const = 0;
  // From the sums of a block to the outputs of a chunk of channels: those of each tile are
  // cut().sums_bytes() apart, its terms as far as the chunk has channels. `scratch` has
  // finish_bytes().
  virtual void Finish(const KernelArgs& args, const Tiles& tiles, int64_t chunk,
                      const std::byte* sums, std::byte* scratch) const = 0;
  virtual size_t finish_bytes() const = 0;

  const Window& window() const { return sides_.window; }
  const WinogradCut& cut() const { return cut_; }
  Place PlaceOf(int64_t tile) const {
    const int64_t row = tile / cut_.x.tiles;
    return {row / cut_.y.tiles, cut_.y.FirstOutput(row % cut_.y.tiles, cut_.tile.outputs),
            cut_.x.FirstOutput(tile % cut_.x.tiles, cut_.tile.outputs)};
  }
  // Pixels of the output, as its tail counts them.
  int64_t RowOf(int64_t image, int64_t oy, int64_t ox) const {
    return (image * window().y.output + oy) * window().x.output + ox;
  }
  int64_t ChannelsOf(int64_t chunk) const {
    return std::min(cut_.chunk_channels, cut_.channels_out - chunk * cut_.chunk_channels);
  }

  // Rows of outputs that tiles next to each other have in common: `rows` pixels from `row` on,
  // which are those of row `i` of the tiles from `tile` on, from column `j` of the first one on.
  struct CommonRow {
    int64_t tile, i, j, row, rows;
  };
  template <class Use>
  void ForCommonRows(const Tiles& tiles, Use use) const {
    const int outputs = cut_.tile.outputs;
    for (int64_t first = tiles.first; first < tiles.last;) {
      const int64_t end = std::min(tiles.last, (first / cut_.x.tiles + 1) * cut_.x.tiles);
      const Place place = PlaceOf(first);
      // Dilated, each pixel of a tile is a row of its own.
      const int64_t step = cut_.x.dilation, next = step > 1 ? first + 1 : end;
      const int64_t pixels = std::max<int64_t>(0, window().x.output - place.x);
      const int64_t rows = step > 1 ? 1 : std::min((next - first) * outputs, pixels);
      const int64_t columns = step > 1 ? std::min<int64_t>(outputs, (pixels + step - 1) / step) : 1;
      for (int64_t i = 0, oy = place.y; i < outputs && oy < window().y.output;
           ++i, oy += cut_.y.dilation) {
        for (int64_t j = 0; j < columns; ++j) {
          use(CommonRow{first, i, j, RowOf(place.image, oy, place.x + j * step), rows});
        }
      }
      first = next;
    }
  }

 private:
  // Scratch: the transformed inputs, the sums, and what Finish needs.
  size_t sums_at() const { return static_cast<size_t>(cut_.tile.terms() * cut_.term_bytes()); }
  size_t sums_bytes() const { return static_cast<size_t>(cut_.block_tiles * cut_.sums_bytes()); }
  const Product& ProductOf(int64_t chunk) const {
    return chunk + 1 < cut_.chunks() ? products_.front() : products_.back();
  }
  // The product of a term with its filter.
  struct Turn {
    int64_t term, filter;
  };
  // Packed filters of a chunk, each term's from a cache line on.
  size_t ChunkBytes(const Product& product) const {
    return static_cast<size_t>(cut_.tile.filters()) * AlignUp(product.packed_bytes());
  }
  int64_t grain_of_own_phase() const;
  size_t PackedBytes() const;
  std::string Layout() const;
  void Pack(const std::byte* filters, std::byte* to) const;
  void RunUnits(const KernelArgs& args, int64_t begin, int64_t end) const;
  void TransformInputs(const KernelArgs& args, const Tiles& tiles) const;
  void Multiply(const KernelArgs& args, const Tiles& tiles, int64_t chunk) const;

  WinogradSides sides_;
  ImageMemory memory_;
  SourcePlaces places_;
  WinogradCut cut_;
  int64_t filter_bytes_ = 0;  // of a channel's filter
  std::string transform_;
  std::vector<Product> products_;  // of a chunk, and of the last one where it has fewer channels
  std::vector<Turn> turns_;        // those that share a filter side by side
  PackedWeights packed_;
};

// The convolution, where the algorithm computes such with one of the tiles: 3x3 windows of a tile's
// stride without groups, without dilation where that is not 1, constant filters.
Result<ProductDescription> DescribeWinograd(const OpDescription& op,
                                            std::span<const WinogradTile> tiles);

}  // namespace fuselite::kernels
