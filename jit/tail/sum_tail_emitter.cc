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
  std::vector<Part> parts = PartsOf(tile);
  const size_t together = integers_.LooksUpTogether() ? parts.size() : 1;
  for (size_t at = 0; at < parts.size(); at += together) {
    const std::span some = std::span(parts).subspan(at, together);
    std::vector<BytesOfRows> packed;
    for (Part& part : some) {
      AddResiduals(tile, part);
      integers_.Pack(&part.bytes);
      packed.push_back(part.bytes);
    }
    integers_.LookUp(packed);
    for (const Part& part : some) Store(tile, part);
  }
  for (size_t r = 0; r < tail_.residuals.size(); ++r) {
    const int64_t on = frame_.across ? int64_t{tile.vectors} * tile.width / 4
                                     : tile.rows * tail_.residuals[r].operand.row_stride;
    a_.add(ResidualArgument(r), static_cast<uint32_t>(on));
  }
}

std::vector<SumTailEmitter::Part> SumTailEmitter::PartsOf(const SumTile& tile) const {
  std::vector<Part> parts;
  for (int v = 0; v < tile.vectors; v += tile.group_at(v)) {
    const int group = tile.group_at(v), together = RowsTogether(group);
    for (int row = 0; row < tile.rows; row += parts.back().rows) {
      Part& part = parts.emplace_back();
      part = {.v = v, .first_row = row, .rows = tile.rows - row >= together ? together : 1};
      part.bytes.group = group;
      part.bytes.width = tile.width_of(v);
      for (int r = row; r < row + part.rows; ++r) {
        for (int i = 0; i < group; ++i) part.bytes.regs[part.bytes.count++] = tile.reg(r, v + i);
      }
    }
  }
  return parts;
}

int SumTailEmitter::ChannelsOf(const SumTile& tile, const Part& part) const {
  const int of_group = part.bytes.group * part.bytes.width / 4;
  return std::min(of_group, tile.channels - part.v * tile.width / 4);
}

void SumTailEmitter::AddResiduals(const SumTile& tile, const Part& part) {
  const int channel = part.v * tile.width / 4;
  for (int i = 0; i < part.rows; ++i) {
    const auto group = static_cast<size_t>(part.bytes.group);
    const std::span regs = part.bytes.all().subspan(static_cast<size_t>(i) * group, group);
    for (size_t r = 0; r < tail_.residuals.size(); ++r) {
      const Residual& residual = tail_.residuals[r];
      if (tail_.residuals.size() > 1) a_.mov(frame_.rows, ResidualArgument(r));
      const int64_t at = (part.first_row + i) * residual.operand.row_stride + channel;
      ResidualEmitter(a_, residual, layer_.OfResidual(r), FirstThree(frame_.temporaries))
          .Emit(regs, part.bytes.width, Place(frame_.rows) + at, ChannelsOf(tile, part));
    }
  }
}

void SumTailEmitter::Store(const SumTile& tile, const Part& part) {
  const int channels = ChannelsOf(tile, part);
  const int64_t at = part.first_row * frame_.out_step + part.v * tile.width / 4;
  const Place to = Place(frame_.out) + at;
  if (tile.parts > 1) {
    return integers_.StoreParts(part.bytes, to, tile.parts, tile.part_step, channels);
  }
  integers_.Store(part.bytes, to, frame_.out_step, channels);
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
