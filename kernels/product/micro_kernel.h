// The innermost part of a matrix product: tiles of rows x channels, summed over the whole depth in
// registers and stored through a tail. Whoever emits or vectorizes one (the JIT, Highway,
// intrinsics) implements this interface; kernels/product/product.h does everything around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/support/status.h"

namespace fuselite::kernels {

// A register tile: `rows` rows of `vectors` vectors of channels; of the last vector only
// `last_lanes` lanes are channels.
struct Tile {
  int rows = 1, vectors = 1, last_lanes = 0;
  friend bool operator==(const Tile&, const Tile&) = default;
};

// The right matrix in memory: the element of term k and column n is value k * k_step + n * n_step
// behind `values`. `bias` holds one value for each column, or is null.
struct RightMatrix {
  const void* values = nullptr;
  int64_t k_step = 1, n_step = 0;
  const void* bias = nullptr;
  // How many bytes farther than n_step has it each group's first weight is from that of the group
  // before. Who packs a panel has it in `values` already.
  int64_t group_shift = 0;
};

// The channels [first, last) of the output that a panel holds, in `vectors` vectors. Lanes behind
// the last channel hold zeros.
struct PanelChannels {
  int64_t first = 0, last = 0;
  int vectors = 0;
};

// How the tiles of one call follow each other.
enum class TileOrder : uint8_t {
  kDown,    // through one panel, each as many rows below the one before as it has itself
  kAcross,  // of the same rows, each in the next panel: products whose rows are one tile
};

// The calls of a product.
struct TileCalls {
  TileOrder order = TileOrder::kDown;
  int64_t tiles = 1;  // of a call, but for those that end a line
};

// One call: `tiles` tiles in the order that Emit was given.
struct TileRun {
  size_t tile = 0;  // which of those that Emit was given
  int64_t tiles = 0;
  const std::byte* left = nullptr;       // the first tile's first row
  const std::byte* panel = nullptr;      // packed; the first tile's
  const std::byte* constants = nullptr;  // the first tile's, where they lie apart
  std::byte* out = nullptr;              // where the first tile's first channel is stored
  int64_t row = 0, channel = 0;          // the same place, as the tail's operands are addressed
  // What the left side tells of each row (MicroKernel::RowValues, a scale): the first row's.
  const std::byte* row_values = nullptr;
  const void* const* inputs = nullptr;  // of KernelArgs, for the tail's operands
};

// A part of an L2 of 1 MiB, the smallest of current server cores, for a block's rows where the
// panels come from further away.
inline constexpr int64_t kLargeBlock = 400 << 10;

class MicroKernel {
 public:
  virtual ~MicroKernel() = default;

  // Types and instructions, between which the tile's size stands in a kernel's name: "f32" and
  // "avx512 jit".
  virtual std::string types() const = 0;
  virtual std::string target() const = 0;

  // What the tiling is chosen by.
  virtual int lanes() const = 0;                               // channels of a vector
  virtual int max_rows(int vectors) const = 0;                 // 0: there is no such tile
  virtual double TileCycles(int rows, int vectors) const = 0;  // start and stores included
  // How many rows of its line above a tile it may read, and ignore, unless it is the line's first.
  virtual int rows_above() const { return 0; }
  virtual int64_t row_bytes() const = 0;  // that a left row adds to those of the row before it
  virtual int64_t small_block_bytes() const = 0;  // see ChooseBlocks, here and below
  virtual int64_t large_block_bytes() const { return kLargeBlock; }

  // Panels are `panel_bytes` long; `to` is aligned to kAlignment. What decides their bytes, beside
  // the matrix, the tiling and the lanes, which Product::layout() names, is in `layout`.
  virtual size_t panel_bytes(int vectors) const = 0;
  virtual void PackPanel(const RightMatrix& right, const PanelChannels& channels,
                         std::byte* to) const = 0;
  virtual std::string layout() const = 0;

  // What a panel's channels need beside their weights (a bias, the numbers of a tail), where that
  // lies apart: products of the same weights then share the panels, whatever their tails are. Of
  // constant weights alone. 0: it lies in the panels. Else as panels, and calls of several tiles
  // have those of whole panels behind each other.
  virtual size_t constants_bytes(int /*vectors*/) const { return 0; }
  virtual void PackChannelConstants(const RightMatrix& /*right*/, const PanelChannels& /*channels*/,
                                    std::byte* /*to*/) const {}
  virtual std::string constants_layout() const { return {}; }

  // Whether sums need what RowValues tells of each left row, 4 bytes in TileRun::row_values.
  virtual bool needs_row_values() const { return false; }
  // Gives those of `count` rows, the first at `left` and each `step` bytes behind the one before.
  virtual void RowValues(const std::byte* /*left*/, int64_t /*step*/, int64_t /*count*/,
                         int32_t* /*values*/) const {}

  // What many rows are multiplied by, where a few are fast enough over its panels. Then both read
  // the same packed weights: those of a prompt and of each next token.
  virtual const MicroKernel* many_rows() const { return nullptr; }

  // Whether Emit takes TileOrder::kAcross.
  virtual bool goes_across() const { return true; }

  // This micro-kernel with the code that Run calls. What was not emitted does not run. Where tiles
  // go across, panels are panel_bytes() apart, and calls of several tiles have whole panels.
  virtual Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles,
                                                          const TileCalls& calls,
                                                          const std::string& name) const = 0;
  virtual void Run(const TileRun& run) const = 0;

  // Bring a thread's registers into the state that Run finds and leave it again. What Emit gave
  // runs between them, and no code of others does.
  virtual void Enter() const {}
  virtual void Leave() const {}
};

// A thread's runs of one micro-kernel.
class EnteredMicroKernel {
 public:
  explicit EnteredMicroKernel(const MicroKernel& kernel) : kernel_(kernel) { kernel_.Enter(); }
  ~EnteredMicroKernel() { kernel_.Leave(); }
  EnteredMicroKernel(const EnteredMicroKernel&) = delete;
  EnteredMicroKernel& operator=(const EnteredMicroKernel&) = delete;

 private:
  const MicroKernel& kernel_;
};

}  // namespace fuselite::kernels
