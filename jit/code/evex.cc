#include "jit/code/evex.h"

#include <bit>
#include <cstring>

namespace fuselite::jit {
namespace {

using Xbyak::Address;
using Xbyak::Operand;

bool IsPlainZmm(const Operand& x) { return x.isZMM() && x.getRounding() == 0; }

// A memory operand's place and the bytes that name it.
struct Place {
  int base, index, scale;  // index 4: none
  int32_t displacement;
};

bool Read(const Address& from, Place* place) {
  if (from.getMode() != Address::M_ModRM || from.getOpmaskIdx() != 0) return false;
  const Xbyak::RegExp e = from.getRegExp(/*optimize=*/false);
  const Xbyak::Reg &base = e.getBase(), &index = e.getIndex();
  const auto displacement = static_cast<int64_t>(e.getDisp());
  const bool indexed = index.getBit() != 0;
  if (base.getBit() != 64 || (indexed && index.getBit() != 64) ||
      displacement != static_cast<int32_t>(displacement)) {
    return false;
  }
  *place = {.base = base.getIdx(),
            .index = indexed ? index.getIdx() : 4,
            .scale = indexed ? std::countr_zero(static_cast<unsigned>(e.getScale())) : 0,
            .displacement = static_cast<int32_t>(displacement)};
  return true;
}

// ModRM, SIB and displacement, which is a multiple of `unit` where it has one byte.
size_t WritePlace(const Place& place, int reg, int unit, uint8_t* code) {
  const int base = place.base & 7;
  const int32_t units = place.displacement / unit;
  const bool none = place.displacement == 0 && base != 5;
  const bool is_short = units * unit == place.displacement && units == static_cast<int8_t>(units);
  const bool indexed = place.index != 4 || base == 4;
  size_t at = 0;
  const int mode = none ? 0 : is_short ? 0x40 : 0x80;
  code[at++] = static_cast<uint8_t>(mode | (reg & 7) << 3 | (indexed ? 4 : base));
  if (indexed) code[at++] = static_cast<uint8_t>(place.scale << 6 | (place.index & 7) << 3 | base);
  if (none) return at;
  const int32_t displacement = is_short ? units : place.displacement;
  const size_t bytes = is_short ? 1 : 4;
  std::memcpy(code + at, &displacement, bytes);
  return at + bytes;
}

}  // namespace

size_t EncodeEvex(const EvexForm& form, const Operand& to, const Operand* middle,
                  const Operand& from, uint8_t* code) {
  if (middle != nullptr && (!IsPlainZmm(*middle) || middle->getOpmaskIdx() != 0)) return 0;
  if (!IsPlainZmm(to) && !(to.isOPMASK() && middle != nullptr)) return 0;
  Place place{};
  bool broadcast = false;
  const bool memory = from.isMEM();
  if (memory) {
    const Address& address = from.getAddress();
    if (!Read(address, &place)) return 0;
    broadcast = address.isBroadcast();
  } else if (!IsPlainZmm(from) || from.getOpmaskIdx() != 0) {
    return 0;
  }
  const int reg = to.getIdx(), rm = memory ? place.base : from.getIdx();
  const int high = memory ? (place.index & 8) << 1 : from.getIdx() & 16;
  const int v = middle != nullptr ? middle->getIdx() : 0;
  const int mask = to.getOpmaskIdx();
  // All of them are stored inverted.
  const int registers = (reg & 8) << 4 | (high & 16) << 2 | (rm & 8) << 2 | (reg & 16);
  code[0] = 0x62;
  code[1] = static_cast<uint8_t>((registers ^ 0xF0) | form.map);
  code[2] = static_cast<uint8_t>((~v & 15) << 3 | 4 | form.prefix);
  code[3] = static_cast<uint8_t>((to.hasZero() && mask != 0 ? 0x80 : 0) | 2 << 5 |
                                 (broadcast ? 0x10 : 0) | (~v & 16) >> 1 | mask);
  code[4] = form.opcode;
  if (memory) return 5 + WritePlace(place, reg, broadcast ? 4 : form.memory, code + 5);
  code[5] = static_cast<uint8_t>(0xC0 | (reg & 7) << 3 | (rm & 7));
  return 6;
}

}  // namespace fuselite::jit
