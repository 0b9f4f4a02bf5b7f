#include "jit/tail/sum_tail_emitter.h"

#include <algorithm>
#include <cstddef>

namespace fuselite::jit {

namespace {

std::array<int, 3> FirstThree(const std::array<int, 4>& t) { return {t[0], t[1], t[2]}; }

std::vector<TileValue> ValuesOf(const SumTile& tile) {
  std::vector<TileValue> values;
  for (int row = 0; row < tile.rows; ++row) {
    for (int v = 0; v < tile.vectors; ++v) {
      values.push_back({tile.reg(row, v), row, v, v == tile.vectors - 1});
    }
  }
  return values;
}

}  // namespace

SumTailEmitter::SumTailEmitter(Assembler& assembler, const SumTail& tail, const SumTailFrame& frame)
    : a_(assembler),
      tail_(tail),
      frame_(frame),
      layer_(assembler, frame.layer, tail.residuals.size()),
      integers_(assembler, tail.requantization.value_or(Requantization{}),
                FirstThree(frame.temporaries), layer_) {
  a_.AtEnd([this] { integers_.EmitOtherForms(); });
}

Xbyak::Address SumTailEmitter::Argument(size_t offset) const {
  return a_.qword[frame_.args + frame_.args_at + static_cast<int>(offset)];
}

Xbyak::Address SumTailEmitter::ResidualArgument(size_t residual) const {
  return Argument(offsetof(SumTailArgs, residuals) + residual * sizeof(const std::byte*));
}

void SumTailEmitter::Prepare(const SumTile& tile) {
  const int lanes = tile.width / 4;
  if (!tail_.requantization) return a_.SetPartial(tile.channels - (tile.vectors - 1) * lanes);
  int last_group = tile.channels;
  for (int v = 0; v + tile.group_at(v) < tile.vectors; v += tile.group_at(v)) {
    last_group -= tile.group_at(v) * lanes;
  }
  integers_.Prepare(last_group);
  a_.mov(frame_.layer, Argument(offsetof(SumTailArgs, layer)));
}

void SumTailEmitter::LoadRows() { a_.mov(frame_.rows, Argument(offsetof(SumTailArgs, scales))); }

Memory SumTailEmitter::ZeroPoint(int row) const {
  const auto at = row * tail_.dequantization->row_step() + offsetof(RowScale, zero_point);
  return a_.ptr[frame_.rows + static_cast<int>(at)];
}

void SumTailEmitter::Finish(const SumTile& tile, const Place& constants) {
  if (tail_.requantization) return StoreBytes(tile, constants);
  if (tail_.dequantization) return StoreFloats(tile, constants);
  StoreLanes(ValuesOf(tile));
}

void SumTailEmitter::StoreBytes(const SumTile& tile, const Place& constants) {
  std::vector<int> regs(tile.rows);
  for (int v = 0; v < tile.vectors; ++v) {
    for (int row = 0; row < tile.rows; ++row) regs[row] = tile.reg(row, v);
    integers_.Requantize(regs, tile.width_of(v), constants + v * tail_.constants() * tile.width);
  }
  if (tail_.residuals.size() == 1) a_.mov(frame_.rows, ResidualArgument(0));
  for (int v = 0; v < tile.vectors;) {
    const int group = tile.group_at(v), together = RowsTogether(group);
    for (int row = 0; row < tile.rows;) {
      const int rows = tile.rows - row >= together ? together : 1;
      StoreBytesOfRows(tile, v, group, row, rows);
      row += rows;
    }
    v += group;
  }
  for (size_t r = 0; r < tail_.residuals.size(); ++r) {
    const int64_t on = frame_.across ? int64_t{tile.vectors} * tile.width / 4
                                     : tile.rows * tail_.residuals[r].operand.row_stride;
    a_.add(ResidualArgument(r), static_cast<uint32_t>(on));
  }
}

// The group of vectors from `v` on.
void SumTailEmitter::StoreBytesOfRows(const SumTile& tile, int v, int group, int first, int rows) {
  const int channel = v * tile.width / 4;
  const int width = tile.width_of(v);
  const int channels = std::min(group * width / 4, tile.channels - channel);
  std::array<int, kMostTogether> all;
  size_t count = 0;
  for (int row = first; row < first + rows; ++row) {
    for (int i = 0; i < group; ++i) all[count++] = tile.reg(row, v + i);
    for (size_t r = 0; r < tail_.residuals.size(); ++r) {
      const Residual& residual = tail_.residuals[r];
      if (tail_.residuals.size() > 1) a_.mov(frame_.rows, ResidualArgument(r));
      const int64_t at = row * residual.operand.row_stride + channel;
      ResidualEmitter(a_, residual, layer_.OfResidual(r), FirstThree(frame_.temporaries))
          .Emit(std::span(all).first(count).last(group), width, Place(frame_.rows) + at, channels);
    }
  }
  const Place to = Place(frame_.out) + (first * frame_.out_step + channel);
  const std::span regs = std::span(all).first(count);
  if (tile.parts > 1) {
    return integers_.StoreParts(regs, width, to, tile.parts, tile.part_step, channels);
  }
  integers_.Store(regs, group, width, to, frame_.out_step, channels);
}

void SumTailEmitter::StoreFloats(const SumTile& tile, const Place& constants) {
  const Dequantization& d = *tail_.dequantization;
  const std::vector<TileValue> values = ValuesOf(tile);
  const auto& t = frame_.temporaries;
  LoadRows();
  EmitDequantization(a_, d, values, frame_.rows, constants, t[0], t[1]);
  TailEmitter floats(
      a_, d.tail,
      {.slots_base = frame_.args,
       .slots_offset = frame_.args_at + static_cast<int>(offsetof(SumTailArgs, operands)),
       .pointer = frame_.pointer,
       .temporaries = {t[0], t[1], t[2], t[3]}});
  floats.Emit(values);
  StoreLanes(values);
  if (frame_.across) return floats.AdvanceChannels(tile.vectors * tile.width);
  floats.AdvanceRows(tile.rows);
  if (!d.per_row) return;
  a_.add(Argument(offsetof(SumTailArgs, scales)), static_cast<uint32_t>(tile.rows * d.row_step()));
}

void SumTailEmitter::StoreLanes(std::span<const TileValue> values) {
  for (const TileValue& value : values) {
    const int64_t at = value.row * frame_.out_step + value.vector * a_.isa().bytes;
    a_.StoreLanes(Place(frame_.out) + at, value.reg, value.partial, frame_.temporaries[0]);
  }
}

void SumTailEmitter::MoveToChannels(int64_t rows, int channels) {
  for (size_t r = 0; r < tail_.residuals.size(); ++r) {
    const int64_t on = channels - rows * tail_.residuals[r].operand.row_stride;
    a_.mov(frame_.rows, static_cast<uint64_t>(on));
    a_.add(ResidualArgument(r), frame_.rows);
  }
}

}  // namespace fuselite::jit
