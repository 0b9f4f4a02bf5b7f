#include "jit/depthwise/column_emitter.h"

#include <algorithm>

namespace fuselite::jit {

using Xbyak::Xmm;

namespace {

const Xbyak::Opmask kLoaded(6);
// The lanes of the second to the fourth of joined rows.
const Xbyak::Opmask kPartLanes[] = {Xbyak::Opmask(1), Xbyak::Opmask(2), Xbyak::Opmask(7)};

}  // namespace

void ColumnEmitter::Prepare(int width, int channels, int joined) {
  width_ = width;
  channels_ = channels;
  joined_ = joined;
  if (partial() && a_.isa().avx512) {
    a_.mov(a_.rax, channels_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << channels_) - 1);
    a_.kmovq(kLoaded, a_.rax);
  }
  for (int part = 1; partial() && part < joined_; ++part) {
    const uint32_t lanes = (uint32_t{1} << channels_ / 4) - 1;
    a_.mov(a_.eax, lanes << part * part_bytes() / 4);
    a_.kmovw(kPartLanes[part - 1], a_.eax);
  }
  if (spec_.flips()) a_.LoadConst(flip(), 0x80808080u);
}

ColumnEmitter::Values ColumnEmitter::LoadZeroPoints(const Memory& lane) {
  a_.vbroadcastss(a_.Vec(t(4)), lane);
  return {t(4), t(4), t(4), t(4)};
}

ColumnEmitter::Values ColumnEmitter::Load(int64_t offset, int step) {
  if (spec_.group_channels > 1) return LoadGroups(offset, step);
  const int first = step * spec_.lane_rows();
  const int rows = std::min(spec_.lane_rows(), spec_.window.y.filter - first);
  for (int i = 0; i < rows; ++i) LoadRow(t(i), first + i, offset);
  if (spec_.dot) return InterleaveBytes(rows);
  return InterleaveWords(t(0), t(rows - 1));
}

ColumnEmitter::Values ColumnEmitter::LoadPair(const Column& first, const Column& second,
                                              const Memory& zero_points) {
  const int a = Hold(first, second, zero_points);
  return InterleaveWords(a, Hold(second, first, zero_points));
}

// The register of `column`, which is loaded where it is in none, but not over `other`.
int ColumnEmitter::Hold(const Column& column, const Column& other, const Memory& zero_points) {
  const std::array<int, 2> registers{t(1), t(4)};
  // An optional of an optional that is none equals one that has none.
  const auto holds = [this](size_t i, const Column& c) { return held_[i] && *held_[i] == c; };
  for (size_t i = 0; i < held_.size(); ++i) {
    if (holds(i, column)) return registers[i];
  }
  const size_t i = holds(0, other) ? 1 : 0;
  held_[i] = column;
  column ? LoadRow(registers[i], spec_.window.y.filter - 1, *column)
         : a_.vbroadcastss(a_.Vec(registers[i]), zero_points);
  return registers[i];
}

// A row's values stay in temporary 4 for all of its steps.
ColumnEmitter::Values ColumnEmitter::LoadGroups(int64_t offset, int step) {
  const int row = step / spec_.row_steps(), step_of_row = step % spec_.row_steps();
  if (step_of_row == 0) LoadRow(t(4), row, offset);
  Values values{};
  int last_order = -1;
  for (int v = 0; v < spec_.group(); ++v) {
    int order = 0;
    for (int lane = 0; lane < 4; ++lane) {
      const int input = spec_.LaneInput(4 * v + lane, step_of_row);
      order |= input / spec_.lane_values() << 2 * lane;
    }
    // Neighbours of one group have the same inputs.
    if (order != last_order) a_.vpshufd(V(t(v)), V(t(4)), static_cast<uint8_t>(order));
    values[v] = order == last_order ? values[v - 1] : t(v);
    last_order = order;
  }
  return values;
}

// Parts behind the first one are merged into it; what is behind their channels stays as it was.
void ColumnEmitter::LoadJoined(int to, int row, int64_t offset) {
  const Xmm first = VectorOf(to, part_bytes());
  const Xbyak::Zmm all(to);
  for (int part = 0; part < joined_; ++part) {
    const Memory from = a_.ptr[row_(part * spec_.window.y.filter + row) + offset];
    if (part == 0) {
      partial() ? a_.vmovdqu8(first | kLoaded | Xbyak::util::T_z, from) : a_.vmovups(first, from);
    } else if (partial()) {
      const Xbyak::Zmm merged = all | kPartLanes[part - 1];
      joined_ == 2 ? a_.vbroadcasti32x8(merged, from) : a_.vbroadcasti32x4(merged, from);
    } else if (width_ == 32) {
      a_.vinserti128(Xbyak::Ymm(to), Xbyak::Ymm(to), from, 1);
    } else {
      joined_ == 2 ? a_.vinserti64x4(all, all, from, 1) : a_.vinserti32x4(all, all, from, part);
    }
  }
  if (spec_.flips()) Flip(to, V(to));
}

void ColumnEmitter::LoadRow(int to, int row, int64_t offset) {
  if (joined_ > 1) return LoadJoined(to, row, offset);
  const Place address = row_(row) + offset;
  spec_.dot ? LoadBytes(to, address) : LoadWords(to, address);
}

ColumnEmitter::Values ColumnEmitter::InterleaveWords(int first, int second) {
  a_.vpunpcklwd(V(t(2)), V(first), V(second));
  a_.vpunpckhwd(V(t(0)), V(first), V(second));
  return {t(2), t(0)};
}

// Interleaves temporaries 0 to rows - 1.
ColumnEmitter::Values ColumnEmitter::InterleaveBytes(int rows) {
  const int second = rows > 1 ? t(1) : t(0);
  a_.vpunpcklbw(V(t(4)), V(t(0)), V(second));
  a_.vpunpckhbw(V(t(0)), V(t(0)), V(second));
  int low = t(4), high = t(0);  // of rows 2 and 3
  if (rows > 2) {
    const int fourth = t(rows - 1);
    a_.vpunpcklbw(V(t(1)), V(t(2)), V(fourth));
    a_.vpunpckhbw(V(t(2)), V(t(2)), V(fourth));
    low = t(1), high = t(2);
  }
  a_.vpunpcklwd(V(t(3)), V(t(4)), V(low));
  a_.vpunpckhwd(V(t(4)), V(t(4)), V(low));
  a_.vpunpcklwd(V(t(1)), V(t(0)), V(high));
  a_.vpunpckhwd(V(t(0)), V(t(0)), V(high));
  return {t(3), t(4), t(1), t(0)};
}

void ColumnEmitter::LoadBytes(int to, const Place& address) {
  if (!partial())
    return spec_.flips() ? Flip(to, a_.ptr[address]) : a_.vmovups(V(to), a_.ptr[address]);
  if (a_.isa().avx512) {
    a_.vmovdqu8(V(to) | kLoaded | Xbyak::util::T_z, a_.ptr[address]);
  } else {
    a_.LoadPieces(to, address, channels_);
  }
  if (spec_.flips()) Flip(to, V(to));
}

void ColumnEmitter::LoadWords(int to, const Place& address) {
  if (!partial()) return Widen(V(to), a_.ptr[address]);
  if (a_.isa().avx512) return Widen(V(to) | kLoaded | Xbyak::util::T_z, a_.ptr[address]);
  a_.LoadPieces(to, address, channels_);
  Widen(V(to), Xmm(to));
}

void ColumnEmitter::Widen(const Xmm& to, const Xbyak::Operand& from) {
  spec_.is_unsigned ? a_.vpmovzxbw(to, from) : a_.vpmovsxbw(to, from);
}

template <class From>
void ColumnEmitter::Flip(int to, const From& from) {
  a_.isa().avx512 ? a_.vpxord(V(to), V(flip()), from) : a_.vpxor(V(to), V(flip()), from);
}

}  // namespace fuselite::jit
