#include "jit/code/vector_encoding.h"

#include <bit>
#include <cstring>

namespace fuselite::jit {
namespace {

using Xbyak::Operand;

// Bytes of a vector register; 0 of other operands.
int WidthOf(const Operand& x) {
  if (x.getRounding() != 0) return 0;
  return x.isZMM() ? 64 : x.isYMM() ? 32 : x.isXMM() ? 16 : 0;
}

// ModRM, SIB and displacement, which is a multiple of `unit` where it has one byte.
size_t WritePlace(const Place& place, int reg, int unit, uint8_t* code) {
  const int base = place.base & 7;
  const int32_t units = place.displacement / unit;
  const bool none = place.displacement == 0 && base != 5;
  const bool is_short = units * unit == place.displacement && units == static_cast<int8_t>(units);
  const bool indexed = place.index != Place::kNoIndex || base == 4;
  size_t at = 0;
  const int mode = none ? 0 : is_short ? 0x40 : 0x80;
  code[at++] = static_cast<uint8_t>(mode | (reg & 7) << 3 | (indexed ? 4 : base));
  if (indexed) {
    const int scale = std::countr_zero(static_cast<unsigned>(place.scale));
    code[at++] = static_cast<uint8_t>(scale << 6 | (place.index & 7) << 3 | base);
  }
  if (none) return at;
  const int32_t displacement = is_short ? units : place.displacement;
  const size_t bytes = is_short ? 1 : 4;
  std::memcpy(code + at, &displacement, bytes);
  return at + bytes;
}

// What is before ModRM but for the operand that may be memory. Numbers are unsigned and whole
// words: GCC 12 keeps a narrow one in a byte of the stack and waits for it there when it reads
// four.
struct Prefix {
  uint32_t reg, middle;
  uint32_t width;
  uint32_t mask, zeroes;
};

// `x` and `b` extend the operand that may be memory: its index, or bit 4 of its register, and bit 3
// of its register. What extends registers is stored inverted.
void WriteEvex(const VectorForm& form, const Prefix& p, uint32_t x, uint32_t b, uint32_t broadcast,
               uint8_t* code) {
  const uint32_t extensions = ((p.reg & 8) << 4 | x << 6 | b << 5 | (p.reg & 16)) ^ 0xF0;
  const uint32_t flags =
      p.zeroes << 7 | p.width >> 5 << 5 | broadcast << 4 | (~p.middle & 16) >> 1 | p.mask;
  const uint32_t bytes = 0x62 | (extensions | form.map) << 8 |
                         ((~p.middle & 15) << 3 | 4 | form.prefix) << 16 | flags << 24;
  std::memcpy(code, &bytes, sizeof(bytes));
  code[4] = form.opcode;
}

size_t WriteVex(const VectorForm& form, const Prefix& p, uint32_t x, uint32_t b, uint8_t* code) {
  const uint32_t rest = (~p.middle & 15) << 3 | (p.width == 32 ? 4 : 0) | form.prefix;
  const uint32_t reg = (~p.reg & 8) << 4;
  if (form.map == 1 && (x | b) == 0) {
    code[0] = 0xC5;
    code[1] = static_cast<uint8_t>(reg | rest);
    code[2] = form.opcode;
    return 3;
  }
  code[0] = 0xC4;
  code[1] = static_cast<uint8_t>(reg | (x ^ 1) << 6 | (b ^ 1) << 5 | form.map);
  code[2] = static_cast<uint8_t>(rest);
  code[3] = form.opcode;
  return 4;
}

// All but the operand that may be memory. False where the operands are others.
bool ReadOperands(const VectorForm& form, const Operand& to, const Operand* middle, Prefix* p,
                  bool* evex) {
  const bool compares = to.isOPMASK() && middle != nullptr;
  const int width = WidthOf(compares ? *middle : to);
  if (width == 0) return false;
  if (middle != nullptr && (WidthOf(*middle) != width || middle->getOpmaskIdx() != 0)) return false;
  p->reg = static_cast<uint32_t>(to.getIdx());
  p->middle = middle != nullptr ? static_cast<uint32_t>(middle->getIdx()) : 0;
  p->width = static_cast<uint32_t>(width);
  p->mask = static_cast<uint32_t>(to.getOpmaskIdx());
  p->zeroes = to.hasZero() && p->mask != 0 ? 1 : 0;
  *evex =
      form.only_evex || compares || width == 64 || p->mask != 0 || ((p->reg | p->middle) & 16) != 0;
  return true;
}

}  // namespace

size_t EncodeVector(const VectorForm& form, const Operand& to, const Operand* middle,
                    const Memory& from, uint8_t* code) {
  Prefix p{};
  bool evex = false;
  if (!ReadOperands(form, to, middle, &p, &evex)) return 0;
  if (from.mask != 0) {
    if (p.mask != 0) return 0;
    p.mask = static_cast<uint32_t>(from.mask);
    evex = true;
  }
  const uint32_t x = static_cast<uint32_t>(from.place.index) >> 3;
  const uint32_t b = static_cast<uint32_t>(from.place.base) >> 3;
  size_t bytes = 5;
  int unit = 1;
  if (evex || from.broadcast) {
    WriteEvex(form, p, x, b, from.broadcast ? 1 : 0, code);
    unit = from.broadcast ? 4 : form.memory != 0 ? form.memory : static_cast<int>(p.width);
  } else {
    bytes = WriteVex(form, p, x, b, code);
  }
  return bytes + WritePlace(from.place, static_cast<int>(p.reg), unit, code + bytes);
}

size_t EncodeVector(const VectorForm& form, const Operand& to, const Operand* middle,
                    const Operand& from, uint8_t* code) {
  Prefix p{};
  bool evex = false;
  if (!ReadOperands(form, to, middle, &p, &evex) ||
      static_cast<uint32_t>(WidthOf(from)) != p.width || from.getOpmaskIdx() != 0) {
    return 0;
  }
  const auto rm = static_cast<uint32_t>(from.getIdx());
  size_t bytes = 5;
  if (evex || (rm & 16) != 0) {
    WriteEvex(form, p, rm >> 4, rm >> 3 & 1, 0, code);
  } else {
    bytes = WriteVex(form, p, 0, rm >> 3, code);
  }
  code[bytes] = static_cast<uint8_t>(0xC0 | (p.reg & 7) << 3 | (rm & 7));
  return bytes + 1;
}

}  // namespace fuselite::jit
