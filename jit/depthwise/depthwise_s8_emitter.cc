#include "jit/depthwise/depthwise_s8_emitter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>

#include "jit/depthwise/channel_order.h"
#include "jit/depthwise/column_emitter.h"
#include "jit/depthwise/row_walker.h"
#include "jit/tail/sum_tail_emitter.h"

namespace fuselite::jit {

using kernels::WindowAxis;
using Xbyak::Reg64;

namespace {

// Registers that tiles of so many outputs leave for weights.
int FreeRegisters(const DepthwiseS8Spec& spec, int outputs) {
  const int registers = VectorIsa(spec.isa).registers() - ColumnEmitter::kRegisters;
  return spec.dot ? registers - outputs * spec.group() : 0;
}

// The cycles of a tile's sums, where weights stay in `free` registers. What an instruction, a load
// and the rest of a tile take, one with another, was measured on a Zen 5 by leaving out weights'
// loads or tails: many outputs interleave fewer columns for each, and few leave registers free.
double TileCycles(const DepthwiseS8Spec& spec, int outputs, int free) {
  constexpr double kInstruction = 0.23, kLoad = 0.31, kTile = 12;
  const WindowAxis& x = spec.window.x;
  const int columns = (outputs - 1) * std::min(x.stride, x.filter) + x.filter;
  if (!spec.dot) return columns * 2.0 * spec.column_steps() + 2.0;
  const int shuffles = (spec.group_channels == 1 ? 8 : 4) * spec.column_steps();
  const int weights = spec.group() * x.filter * spec.column_steps();
  const int loads = columns * spec.window.y.filter + outputs * std::max(0, weights - free);
  const int instructions = columns * (shuffles + spec.window.y.filter) + outputs * weights;
  return kInstruction * instructions + kLoad * loads + kTile;
}

class DepthwiseS8Emitter : public Assembler {
 public:
  explicit DepthwiseS8Emitter(const DepthwiseS8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        x_(spec.window.x),
        y_(spec.window.y),
        column_(*this, spec, [this](int ky) { return AddressOfRow(ky); }),
        tail_(*this, spec.tail,
              {.args = args_,
               .args_at = offsetof(DepthwiseS8Args, tail),
               .out = out_,
               .out_step = spec.out_pixel_bytes,
               .layer = pointer_,
               .rows = pixels_,
               .pointer = pointer_,
               .temporaries = {t(0), t(1), t(2), t(3)}}) {}

  size_t EmitFunction(const DepthwiseS8Blocks& blocks) {
    width_ = blocks.width;
    channels_ = blocks.channels;
    joined_ = blocks.rows;
    ChooseKept();
    const size_t entry = BeginFunction();
    tail_.Prepare(Sums(0));
    column_.Prepare(width_, channels_, joined_);
    mov(weights_, ptr[args_ + offsetof(DepthwiseS8Args, weights)]);
    Xbyak::Label next;
    align(16);
    L(next);
    EmitBlock();
    add(weights_, static_cast<uint32_t>(spec_.block_bytes(width_)));
    add(Channel(), channels_);
    add(qword[args_ + offsetof(DepthwiseS8Args, out)], channels_ * spec_.tail.out_bytes());
    tail_.MoveToChannels(x_.output, channels_);
    dec(qword[args_ + offsetof(DepthwiseS8Args, blocks)]);
    jnz(next, T_NEAR);
    EndFunction();
    return entry;
  }

 private:
  int t(int i) const { return isa().registers() - 1 - i; }
  int acc(int output, int v) const { return output * spec_.group() + v; }
  Xmm V(int reg) const { return VectorOf(reg, width_); }
  // The vector of weights, or of what else is packed with them.
  Memory Weights(int vector) const { return ptr[Place(weights_) + vector * width_]; }
  // Filter rows of all rows of outputs that are computed together.
  int image_rows() const { return y_.filter * joined_; }
  // Where the arguments hold the address of an image row, for the line at hand.
  Xbyak::Address RowSlot(int row) { return qword[line_ + 8 * row]; }
  Memory ZeroPoints() const { return ptr[args_ + offsetof(DepthwiseS8Args, zero_points)]; }
  Xbyak::Address Channel() { return qword[args_ + offsetof(DepthwiseS8Args, channel)]; }

  // The addresses of filters of many rows stay in memory but for the first ones, and the last
  // register counts the bytes that the tile at hand lies further.
  bool rows_fit() const { return image_rows() <= kRowRegisters; }
  int row_registers() const { return rows_fit() ? image_rows() : kRowRegisters - 1; }
  const Reg64& tile_at() const { return rows_[kRowRegisters - 1]; }
  Place AddressOfRow(int row) {
    if (row < row_registers()) return rows_[row];
    mov(rax, RowSlot(row));
    return Place(rax).Plus(tile_at());
  }

  // Registers that no output takes hold weights, those first that windows at borders meet, too.
  void ChooseKept() {
    kept_.clear();
    const int outputs = DepthwiseS8Tile(spec_), first = outputs * spec_.group();
    const int free = FreeRegisters(spec_, outputs);
    std::vector<int32_t> taps(static_cast<size_t>(x_.filter));
    std::iota(taps.begin(), taps.end(), 0);
    std::ranges::stable_sort(taps, {},
                             [&](int32_t kx) { return std::abs(2 * kx - x_.filter + 1); });
    for (const int32_t kx : taps) {
      for (int i = 0; i < spec_.column_steps() * spec_.group(); ++i) {
        const int vector = spec_.group() * (1 + kx * spec_.column_steps()) + i;
        const int reg = first + static_cast<int>(kept_.size());
        if (reg < first + free) kept_.emplace(vector, reg);
      }
    }
  }

  // All lines of a block's channels.
  void EmitBlock() {
    for (const auto& [vector, reg] : kept_) vmovups(V(reg), Weights(vector));
    mov(out_, ptr[args_ + offsetof(DepthwiseS8Args, out)]);
    lea(line_, ptr[args_ + offsetof(DepthwiseS8Args, rows)]);
    Xbyak::Label next;
    align(16);
    L(next);
    EmitLine();
    add(line_, image_rows() * 8);
    if (joined_ > 1) add(out_, static_cast<uint32_t>((joined_ - 1) * spec_.out_row_bytes()));
    cmp(line_, ptr[args_ + offsetof(DepthwiseS8Args, end)]);
    jb(next, T_NEAR);
  }

  void EmitLine() {
    for (int ky = 0; ky < row_registers(); ++ky) {
      mov(rows_[ky], RowSlot(ky));
      add(rows_[ky], Channel());
    }
    if (!rows_fit()) mov(tile_at(), Channel());
    const bool moves_last = spec_.overlap_bytes > 0;
    WindowAxis walked = x_;
    if (moves_last) --walked.output;
    const auto finish = [&](int outputs) {
      FinishTile(outputs);
      Advance(int64_t{outputs} * x_.stride * spec_.pixel_bytes, outputs * spec_.out_pixel_bytes);
    };
    WalkRow(*this, walked, DepthwiseS8Tile(spec_), tiles_,
            {.sums = [&](const RowTile& tile) { EmitSums(tile); }, .finish = finish});
    if (!moves_last) return;
    Advance(-spec_.overlap_bytes, -spec_.out_overlap_bytes);
    EmitSums({TapsAt(x_, x_.output - 1)});
    FinishTile(1);
    add(out_, static_cast<uint32_t>(spec_.out_pixel_bytes));
  }

  void Advance(int64_t bytes, int64_t out_bytes) {
    const auto step = static_cast<uint32_t>(bytes);
    for (int ky = 0; ky < row_registers(); ++ky) add(rows_[ky], step);
    if (!rows_fit()) add(tile_at(), step);
    add(out_, static_cast<uint32_t>(out_bytes));
  }

  // Columns outside of the image hold zero points.
  void EmitSums(const RowTile& tile) {
    StartFromBias(static_cast<int>(tile.size()));
    const int steps = spec_.column_steps() - (spec_.pairs_columns() ? 1 : 0);
    for (const TileColumn& column : ColumnsUnder(x_, tile)) {
      for (int step = 0; step < steps; ++step) EmitColumn(column, step);
    }
    if (spec_.pairs_columns()) EmitLastRow(tile);
  }

  // The columns of the last row in pairs, those from left to right that windows share once.
  void EmitLastRow(const RowTile& tile) {
    using Column = ColumnEmitter::Column;
    std::map<std::array<Column, 2>, std::vector<TileColumn::Use>> pairs;
    for (int output = 0; output < static_cast<int>(tile.size()); ++output) {
      const auto column = [&](int32_t kx) -> Column {
        if (!tile[output].Has(kx)) return std::nullopt;
        return (output * x_.stride + kx * x_.dilation) * spec_.pixel_bytes;
      };
      for (int32_t kx = 0; kx < x_.filter; ++kx) {
        if (spec_.BeginsPair(kx)) pairs[{column(kx), column(kx + 1)}].push_back({output, kx});
      }
    }
    column_.StartPairs();
    for (const auto& [columns, uses] : pairs) {
      const auto values = column_.LoadPair(columns[0], columns[1], ZeroPoints());
      for (const auto [output, kx] : uses) {
        MultiplyAll(output, values, (kx + 1) * spec_.column_steps());
      }
    }
  }

  void StartFromBias(int outputs) {
    const bool zero_points = spec_.tail.row_zero_points();
    if (zero_points) {
      tail_.LoadRows();
      vpbroadcastd(V(t(0)), tail_.ZeroPoint(0));
    }
    for (int v = 0; v < spec_.group(); ++v) {
      const Memory bias = Weights(v);
      zero_points ? vpmulld(V(acc(0, v)), V(t(0)), bias) : vmovups(V(acc(0, v)), bias);
      for (int i = 1; i < outputs; ++i) vmovaps(V(acc(i, v)), V(acc(0, v)));
    }
  }

  void EmitColumn(const TileColumn& column, int step) {
    const ColumnEmitter::Values values = column.inside
                                             ? column_.Load(column.at * spec_.pixel_bytes, step)
                                             : column_.LoadZeroPoints(ZeroPoints());
    for (const auto [output, kx] : column.uses) {
      const int at = kx * spec_.column_steps() + step;
      MultiplyAll(output, values, 1 + at);
      const auto again = std::ranges::find(spec_.again, at);
      if (again != spec_.again.end()) {
        MultiplyAll(output, values,
                    spec_.weight_groups() - static_cast<int>(spec_.again.end() - again));
      }
    }
  }

  // Adds the products with one group's weights.
  void MultiplyAll(int output, const ColumnEmitter::Values& values, int group) {
    for (int v = 0; v < spec_.group(); ++v) {
      const int vector = spec_.group() * group + v;
      const auto kept = kept_.find(vector);
      kept == kept_.end() ? Multiply(acc(output, v), values[v], Weights(vector))
                          : Multiply(acc(output, v), values[v], V(kept->second));
    }
  }

  template <class Weights>
  void Multiply(int sum, int values, const Weights& weights) {
    if (spec_.dot) {
      vpdpbusd(V(sum), V(values), weights, isa().avx512 ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    } else {
      vpmaddwd(V(t(3)), V(values), weights);
      vpaddd(V(sum), V(sum), V(t(3)));
    }
  }

  // A tile's sums, as its tail takes them. Those that wait for it in memory are stored in whole
  // blocks.
  SumTile Sums(int outputs) const {
    SumTile sums{.rows = outputs,
                 .vectors = spec_.group(),
                 .width = width_,
                 .channels = spec_.tail.stores_sums() ? spec_.whole_channels(width_) : channels_,
                 .reg = [this](int output, int v) { return acc(output, v); },
                 .parts = joined_,
                 .part_step = spec_.out_row_bytes()};
    if (spec_.tail.requantization) return sums;
    sums.width = isa().bytes;
    sums.vectors = (sums.channels + isa().lanes() - 1) / isa().lanes();
    return sums;
  }

  void FinishTile(int outputs) {
    SumTile sums = Sums(outputs);
    std::vector<std::vector<int>> ordered;
    for (int i = 0; !spec_.tail.requantization && i < outputs; ++i) {
      std::vector<int> regs;
      for (int v = 0; v < spec_.group(); ++v) regs.push_back(acc(i, v));
      ordered.push_back(EmitChannelOrder(*this, regs, width_, std::array{t(0), t(1), t(2), t(3)}));
    }
    if (!ordered.empty()) sums.reg = [&](int output, int v) { return ordered[output][v]; };
    tail_.Finish(sums, Place(weights_) + spec_.group() * spec_.weight_groups() * width_);
  }

  const DepthwiseS8Spec& spec_;
  const WindowAxis &x_, &y_;
  int width_ = 0, channels_ = 0, joined_ = 1;
  std::map<int, int> kept_;  // the registers of a block's vectors of weights

  const Reg64 args_ = rdi, weights_ = rsi, out_ = rdx, tiles_ = rcx;
  const Reg64 pixels_ = rbx, pointer_ = rbp;
  static constexpr int kRowRegisters = 7;
  const Reg64 rows_[kRowRegisters] = {r8, r9, r10, r11, r12, r13, r14};
  const Reg64 line_ = r15;  // where its rows' addresses are
  ColumnEmitter column_;
  SumTailEmitter tail_;
};

}  // namespace

uint32_t DepthwiseS8Spec::Lane(int32_t value) const {
  if (!dot) return 0x00010001u * static_cast<uint16_t>(value);
  return 0x01010101u * static_cast<uint8_t>(value ^ (flips() ? 0x80 : 0));
}

std::string CodeKey(const DepthwiseS8Spec& spec, const std::vector<DepthwiseS8Blocks>& blocks) {
  std::string key = internal::Join("depthwise s8 ", spec.isa.bits(), " d", int{spec.dot}, " u",
                                   int{spec.is_unsigned}, " in", spec.pixel_bytes, " out",
                                   spec.out_pixel_bytes, " o", spec.overlap_bytes, '.',
                                   spec.out_overlap_bytes, " g", spec.group_channels) +
                    WindowKey(spec.window);
  for (const int step : spec.again) key += internal::Join(" again", step);
  for (const auto& b : blocks) key += internal::Join(" b", b.width, '.', b.channels, '/', b.rows);
  return key + spec.tail.key();
}

std::vector<DepthwiseS8Blocks> SplitChannels(const DepthwiseS8Spec& spec, int64_t channels) {
  const VectorIsa isa(spec.isa);
  std::vector<DepthwiseS8Blocks> blocks;
  const int whole = spec.whole_channels(isa.bytes);
  if (channels >= whole) blocks.push_back({isa.bytes, whole, channels / whole});
  auto rest = static_cast<int>(channels % whole);
  // With AVX2, vectors that are partly loaded have fewer than 16 channels.
  while (rest > 0) {
    int width = isa.bytes;
    const int narrowest = spec.dot ? 16 : 32;
    while (width > narrowest && spec.whole_channels(width / 2) >= rest) width /= 2;
    if (!isa.avx512) width = narrowest;
    const int taken = std::min(rest, spec.whole_channels(width));
    blocks.push_back({width, taken, 1});
    rest -= taken;
  }
  return blocks;
}

DepthwiseS8Blocks JoinRows(const DepthwiseS8Spec& spec, const DepthwiseS8Blocks& blocks) {
  const VectorIsa isa(spec.isa);
  const int rows = isa.bytes / blocks.width;
  const bool bytes_alone = spec.tail.requantization && spec.tail.residuals.empty();
  // Pieces that are not whole are merged with masks.
  const bool whole = isa.avx512 ? blocks.channels % 4 == 0 : blocks.channels == blocks.width;
  const bool can = spec.dot && whole && spec.group_channels == 1 && bytes_alone &&
                   spec.overlap_bytes == 0 && rows * spec.window.y.filter <= kMaxS8FilterRows;
  if (!can || blocks.count != 1 || spec.window.y.output < rows) return blocks;
  return {isa.bytes, blocks.channels, 1, rows};
}

int DepthwiseS8Tile(const DepthwiseS8Spec& spec) {
  const WindowAxis& x = spec.window.x;
  const int registers = VectorIsa(spec.isa).registers() - ColumnEmitter::kRegisters;
  // The mean cycles of a row's tiles; the last one may have fewer outputs.
  const auto cycles = [&](int outputs) {
    const int free = FreeRegisters(spec, outputs);
    const int others = (x.output - 1) / outputs;
    const int last = spec.dot ? x.output - others * outputs : outputs;
    return (others * TileCycles(spec, outputs, free) + TileCycles(spec, last, free)) / (others + 1);
  };
  return ChooseTile(x, std::min(registers / spec.group(), 8), cycles);
}

Status CheckDepthwiseS8(const DepthwiseS8Spec& spec) {
  const auto& [y, x] = spec.window;
  if (y.filter > kMaxS8FilterRows) {
    return Unsupported("does not take filters of ", y.filter, " rows");
  }
  const auto tiles = static_cast<int64_t>(SplitRow(x, DepthwiseS8Tile(spec)).size());
  return CheckRow(spec.window,
                  {.multiplies = tiles * 3 * 8 * spec.group() * spec.column_steps() * x.filter,
                   .most_multiplies = 30000,
                   .pixel_bytes = spec.pixel_bytes,
                   .out_pixel_bytes = spec.out_pixel_bytes});
}

Result<SharedCode> EmitDepthwiseS8(const DepthwiseS8Spec& spec,
                                   const std::vector<DepthwiseS8Blocks>& blocks,
                                   const std::string& name) {
  return EmitFunctions<DepthwiseS8Emitter>(CodeKey(spec, blocks), name, spec, blocks);
}

}  // namespace fuselite::jit
