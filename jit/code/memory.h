// Memory operands as plain numbers. Xbyak's are fields of bits, which are copied before they have
// left the store buffer: one takes 20 ns, three times an instruction on registers.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

namespace fuselite::jit {

// An address: a base register, maybe `scale` (1, 2, 4 or 8) times an index register, and bytes.
struct Place {
  static constexpr int kNoIndex = 4;  // rsp is no index

  // NOLINTNEXTLINE(google-explicit-constructor): a register is the place that it points to
  Place(const Xbyak::Reg64& reg) : base(reg.getIdx()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): of a base with or without an index, of 64 bits
  Place(const Xbyak::RegExp& e)
      : base(e.getBase().getIdx()),
        index(e.getIndex().getBit() != 0 ? e.getIndex().getIdx() : kNoIndex),
        scale(index == kNoIndex ? 1 : e.getScale()),
        displacement(static_cast<int32_t>(e.getDisp())) {}

  // For instructions that Xbyak encodes.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator Xbyak::RegExp() const {
    const Xbyak::RegExp at = Xbyak::Reg64(base) + static_cast<size_t>(int64_t{displacement});
    return index == kNoIndex ? at : at + Xbyak::Reg64(index) * scale;
  }
  // This place with an index, where there is none.
  Place Plus(const Xbyak::Reg64& reg, int times = 1) const {
    Place place = *this;
    place.index = reg.getIdx();
    place.scale = times;
    return place;
  }
  friend Place operator+(Place place, int64_t bytes) {
    place.displacement += static_cast<int32_t>(bytes);
    return place;
  }
  friend bool operator==(const Place&, const Place&) = default;

  int base, index = kNoIndex, scale = 1;
  int32_t displacement = 0;
};

// What an instruction reads or writes there: a vector, or one lane for all; masked where it is
// stored to (0: not).
struct Memory {
  // NOLINTNEXTLINE(google-explicit-constructor): for instructions that Xbyak encodes
  operator Xbyak::Address() const {
    const Xbyak::Address address(0, broadcast, place);
    return mask == 0 ? address : address | Xbyak::Opmask(mask);
  }
  friend Memory operator|(Memory memory, const Xbyak::Opmask& mask) {
    memory.mask = mask.getIdx();
    return memory;
  }

  Place place;
  bool broadcast = false;
  int mask = 0;
};

// ptr[place] and ptr_b[place], as with Xbyak.
struct MemoryFrame {
  Memory operator[](const Place& place) const { return {place, broadcast}; }
  Xbyak::Address operator[](const Xbyak::RegRip& place) const { return {0, broadcast, place}; }

  bool broadcast = false;
};

}  // namespace fuselite::jit
