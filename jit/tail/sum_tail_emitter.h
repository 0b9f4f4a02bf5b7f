// Emits the tail of integer sums, in one frame for products and depthwise convolutions: masks and
// pointers at a function's start; then for each tile requantization, residual, table and store, or
// dequantization and the float tail; and last, behind the functions, what is rarely run.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "jit/tail/integer_tail_emitter.h"
#include "jit/tail/sum_tail.h"

namespace fuselite::jit {

// Sums in registers: `rows` rows of `vectors` vectors of `width` bytes, which hold `channels`
// channels side by side. Where there is a requantization, vectors come in groups of 4, 2 and 1
// (GroupSize), whose lanes are those of ChannelOfLane; else widths are the ISA's, lanes in order.
struct SumTile {
  int rows = 0, vectors = 0, width = 0, channels = 0;
  std::function<int(int row, int v)> reg{};
  // With a requantization, the last vector has half of the width, and is a group of its own.
  bool last_is_half = false;
  // With a requantization: a row's bytes are as many parts, equally long, which belong so many
  // bytes apart; each has `channels`.
  int parts = 1;
  int64_t part_step = 0;

  int width_of(int v) const { return last_is_half && v == vectors - 1 ? width / 2 : width; }
  // The vectors of the group that begins with `v`.
  int group_at(int v) const { return GroupSize(vectors - v, last_is_half); }
};

// What a function lends its tail. `out` is its own: the first value's place in the tile at hand.
struct SumTailFrame {
  Xbyak::Reg64 args;  // SumTailArgs lie `args_at` behind it
  int args_at = 0;
  Xbyak::Reg64 out;
  int64_t out_step = 0;  // bytes between rows of a tile
  bool across = false;   // the next tile lies beside the one at hand, not below it
  // The tail's own with a requantization, and not used otherwise.
  Xbyak::Reg64 layer;
  // Clobbered by whatever is emitted here; `pointer` only with a dequantization.
  Xbyak::Reg64 rows, pointer;
  // Vector registers, clobbered; the last one only with a dequantization.
  std::array<int, 4> temporaries{};
};

// Clobbers k3 to k5 on AVX-512, or has k1 with a dequantization and with sums that are stored.
class SumTailEmitter {
 public:
  // Lives until the assembler finishes: what functions rarely jump to is emitted behind them.
  SumTailEmitter(Assembler& assembler, const SumTail& tail, const SumTailFrame& frame);

  // Once in each function, all of whose tiles are of this shape; clobbers rax.
  void Prepare(const SumTile& tile);
  // With a dequantization, LoadRows makes the zero points of a tile's rows addressable, until the
  // frame's `rows` is clobbered.
  void LoadRows();
  Memory ZeroPoint(int row) const;
  // The tile through the tail into memory. The tail's operands move on to the next tile.
  // `constants`: those of vector 0 (SumTail::constants); not relative to rax or rsp.
  void Finish(const SumTile& tile, const Place& constants);
  // Back by `rows` rows of the residuals and on by `channels` channels.
  void MoveToChannels(int64_t rows, int channels);

 private:
  Xbyak::Address Argument(size_t offset) const;
  Xbyak::Address ResidualArgument(size_t residual) const;
  void StoreBytes(const SumTile& tile, const Place& constants);
  // Rows of a group of vectors, of a tile's.
  struct Part {
    int v, first_row, rows;
    BytesOfRows bytes{};
  };
  std::vector<Part> PartsOf(const SumTile& tile) const;
  int ChannelsOf(const SumTile& tile, const Part& part) const;
  void AddResiduals(const SumTile& tile, const Part& part);
  void Store(const SumTile& tile, const Part& part);
  void StoreFloats(const SumTile& tile, const Place& constants);
  void StoreLanes(std::span<const TileValue> values);

  Assembler& a_;
  const SumTail& tail_;
  SumTailFrame frame_;
  LayerReader layer_;
  IntegerTailEmitter integers_;
};

}  // namespace fuselite::jit
