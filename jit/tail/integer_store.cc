// The last part of an integer tail: values narrowed to bytes, clamped, looked up and stored.
#include <algorithm>
#include <bit>

#include "jit/tail/integer_tail_emitter.h"

namespace fuselite::jit {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

void IntegerTailEmitter::Pack(BytesOfRows* rows) {
  if (static_cast<int>(rows->count) == rows->group) {
    rows->packed = Narrow(rows->all(), rows->width);
  } else {
    NarrowFour(rows->all(), rows->width);
    rows->packed = rows->width;
  }
  Clamp(rows->regs[0], rows->packed);
}

void IntegerTailEmitter::LookUp(std::span<const BytesOfRows> all) {
  if (!plan_.lookup) return;
  std::vector<LookupBytes> bytes;
  std::vector<int> spare;
  for (const BytesOfRows& rows : all) {
    bytes.push_back({rows.regs[0], rows.packed});
    const std::span others = rows.all().subspan(1);
    spare.insert(spare.end(), others.begin(), others.end());
  }
  LookupEmitter(a_, *plan_.lookup, layer_.table(), t_).Emit(bytes, spare);
}

void IntegerTailEmitter::Store(const BytesOfRows& rows, const Place& address, int64_t row_step,
                               int bytes) {
  if (static_cast<int>(rows.count) == rows.group) {
    return StoreBytes(rows.regs[0], address, rows.packed, bytes);
  }
  StoreRows(rows.regs[0], rows.group, rows.width, address, row_step, bytes);
}

// The first part last, as rows are.
void IntegerTailEmitter::StoreParts(const BytesOfRows& rows, const Place& address, int parts,
                                    int64_t part_step, int bytes) {
  const int available = rows.width / parts;
  for (int part = parts - 1; part >= 0; --part) {
    StoreBytes(RowOf(rows.regs[0], part, rows.width, available),
               address + static_cast<int>(part * part_step), available, bytes);
  }
}

// To words, which saturate as the bytes after them do.
void IntegerTailEmitter::AddStoreOffset(std::initializer_list<int> words, int width) {
  if (plan_.store_offset == 0) return;
  layer_.Load(t_[0], LayerConstant::kStoreOffsetWords);
  for (const int reg : words) {
    const Xmm v = VectorOf(reg, width);
    a_.vpaddsw(v, v, VectorOf(t_[0], width));
  }
}

void IntegerTailEmitter::NarrowFour(std::span<const int> regs, int width) {
  const auto reg = [&](int i) { return VectorOf(regs[i], width); };
  a_.vpackssdw(reg(0), reg(0), reg(1));
  a_.vpackssdw(reg(2), reg(2), reg(3));
  AddStoreOffset({regs[0], regs[2]}, width);
  plan_.is_unsigned ? a_.vpackuswb(reg(0), reg(0), reg(2)) : a_.vpacksswb(reg(0), reg(0), reg(2));
}

int IntegerTailEmitter::Narrow(std::span<const int> regs, int width) {
  const auto reg = [&](int i) { return VectorOf(regs[i], width); };
  const auto to_bytes = [&](const Xmm& to, const Xmm& low, const Xmm& high) {
    plan_.is_unsigned ? a_.vpackuswb(to, low, high) : a_.vpacksswb(to, low, high);
  };
  const Xmm first = Xmm(regs[0]), t = Xmm(t_[0]);
  if (regs.size() == 4) {
    NarrowFour(regs, width);
    return width;
  }
  const int available = width / 4 * static_cast<int>(regs.size());
  if (regs.size() == 1 && plan_.store_offset != 0) {
    a_.vpaddd(reg(0), reg(0), layer_.Operand(LayerConstant::kStoreOffset));
  }
  if (regs.size() == 2) {
    a_.vpackssdw(reg(0), reg(0), reg(1));
    AddStoreOffset({regs[0]}, width);
    if (width == 64) {
      if (plan_.is_unsigned) {
        a_.Zero(t_[0]);
        a_.vpmaxsw(reg(0), reg(0), Zmm(t_[0]));
        a_.vpmovuswb(Ymm(regs[0]), reg(0));
      } else {
        a_.vpmovswb(Ymm(regs[0]), reg(0));
      }
      return available;
    }
  } else if (width == 64) {
    if (plan_.is_unsigned) {
      a_.Zero(t_[0]);
      a_.vpmaxsd(reg(0), reg(0), Zmm(t_[0]));
      a_.vpmovusdb(first, reg(0));
    } else {
      a_.vpmovsdb(first, reg(0));
    }
    return available;
  }
  // Words (of a pair) or double words in one register of at most 32 bytes.
  if (width == 32)
    a_.isa().avx512 ? a_.vextracti32x4(t, Ymm(regs[0]), 1) : a_.vextracti128(t, Ymm(regs[0]), 1);
  const Xmm& upper = width == 32 ? t : first;
  if (regs.size() == 2) {
    to_bytes(first, first, upper);
  } else {
    a_.vpackssdw(first, first, upper);
    to_bytes(first, first, first);
  }
  return available;
}

// Rows that follow each other and fill a power of two are one store. Else each is brought to the
// front of a register.
void IntegerTailEmitter::StoreRows(int reg, int group, int width, const Place& address,
                                   int64_t row_step, int bytes) {
  const int rows = RowsTogether(group), available = width / rows;
  const bool follow = row_step == bytes && std::has_single_bit(static_cast<unsigned>(bytes));
  const int row_lanes = (follow && bytes >= 4 ? bytes : available) / 4;
  const Xmm v = VectorOf(reg, width);
  std::vector<uint32_t> order(width / 4);
  for (int i = 0; i < width / 4; ++i) {
    const int row = i / row_lanes % rows, lane = i % row_lanes;
    order[i] = lane / group * 4 + row * group + lane % group;
  }
  if (!std::ranges::is_sorted(order)) {
    a_.vmovups(VectorOf(t_[0], width), a_.ConstLanes(order));
    width == 64 ? a_.vpermd(Zmm(reg), Zmm(t_[0]), v) : a_.vpermd(Ymm(reg), Ymm(t_[0]), v);
  }
  if (row_lanes * 4 == bytes && row_step == bytes) {
    return StoreBytes(reg, address, rows * bytes, rows * bytes);
  }
  // The first one last: it is stored from where they all are, which storing may clobber.
  for (int row = rows - 1; row >= 0; --row) {
    const Place to = address + static_cast<int>(row * row_step);
    StoreBytes(RowOf(reg, row, width, available), to, available, bytes);
  }
}

int IntegerTailEmitter::RowOf(int reg, int row, int width, int available) {
  if (row == 0) return reg;
  const Xmm t(t_[0]);
  const int at = row * available;
  if (available == 32) {
    a_.vextracti64x4(Ymm(t_[0]), Zmm(reg), 1);
  } else if (at < 16) {
    a_.vpsrldq(t, Xmm(reg), at);
  } else if (width == 64) {
    a_.vextracti32x4(t, Zmm(reg), at / 16);
  } else {
    a_.isa().avx512 ? a_.vextracti32x4(t, Ymm(reg), 1) : a_.vextracti128(t, Ymm(reg), 1);
    if (at > 16) a_.vpsrldq(t, t, at - 16);
  }
  return t_[0];
}

void IntegerTailEmitter::Clamp(int reg, int bytes) {
  const int width = bytes >= 16 ? bytes : 16;
  const Xmm v = VectorOf(reg, width), t = VectorOf(t_[0], width);
  if (plan_.clamps_below()) {
    layer_.Load(t_[0], LayerConstant::kLeast);
    plan_.is_unsigned ? a_.vpmaxub(v, v, t) : a_.vpmaxsb(v, v, t);
  }
  if (plan_.clamps_above()) {
    layer_.Load(t_[0], LayerConstant::kMost);
    plan_.is_unsigned ? a_.vpminub(v, v, t) : a_.vpminsb(v, v, t);
  }
}

void IntegerTailEmitter::StoreBytes(int reg, const Place& address, int available, int bytes) {
  const bool evex = a_.isa().avx512;
  if (bytes == 4) return a_.vmovd(a_.ptr[address], Xmm(reg));
  if (bytes == 8) return a_.vmovq(a_.ptr[address], Xmm(reg));
  if (bytes < available && evex) {
    return a_.vmovdqu8(a_.ptr[address] | Xbyak::Opmask(kPartialMask),
                       VectorOf(reg, std::max(available, 16)));
  }
  if (bytes == 16 || bytes == 32 || bytes == 64)
    return a_.vmovups(a_.ptr[address], VectorOf(reg, bytes));
  StorePieces(reg, address, bytes);
}

// AVX2. Piece by piece: there are no stores masked by bytes that are fast.
void IntegerTailEmitter::StorePieces(int reg, Place address, int bytes) {
  const Xmm v(reg);
  if (bytes >= 16) {
    a_.vmovups(a_.ptr[address], v);
    a_.vextracti128(v, Ymm(reg), 1);
    address = address + 16;
    bytes -= 16;
  }
  for (const int piece : {8, 4, 2, 1}) {
    if (!(bytes & piece)) continue;
    switch (piece) {
      case 8: a_.vmovq(a_.ptr[address], v); break;
      case 4: a_.vmovd(a_.ptr[address], v); break;
      case 2: a_.vpextrw(a_.ptr[address], v, 0); break;
      default: a_.vpextrb(a_.ptr[address], v, 0); break;
    }
    a_.vpsrldq(v, v, piece);
    address = address + piece;
  }
}

}  // namespace fuselite::jit
