// The encoding of those instructions on whole zmm registers that are emitted most: seven in ten of
// a model's. Xbyak takes some 200 instructions for each of them, in which it asks what a table of
// all instructions leaves open; these take a tenth.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

namespace fuselite::jit {

// What Intel's manual (volume 2, "EVEX") says of an instruction on 32-bit lanes with W = 0.
struct EvexForm {
  uint8_t map;     // 1: 0F, 2: 0F 38
  uint8_t prefix;  // 0: none, 1: 66
  uint8_t opcode;
  uint8_t memory = 64;  // bytes that an operand in memory has where it is not broadcast
};

namespace evex {
inline constexpr EvexForm kLoad{1, 0, 0x10}, kStore{1, 0, 0x11}, kMove{1, 0, 0x28},
    kBroadcast{2, 1, 0x18, 4}, kToFloats{1, 0, 0x5B}, kToIntegers{1, 1, 0x5B}, kAdd{1, 1, 0xFE},
    kXor{1, 1, 0xEF}, kEqual{1, 1, 0x76}, kPackWords{1, 1, 0x6B}, kDot{2, 1, 0x50},
    kMultiplyAdd213{2, 1, 0xA8}, kMultiplyAdd231{2, 1, 0xB8};
// On lanes of 8 and 16 bits, which are not broadcast.
inline constexpr EvexForm kAddWords{1, 1, 0xED}, kPackBytes{1, 1, 0x63},
    kPackUnsignedBytes{1, 1, 0x67}, kLowBytes{1, 1, 0x60}, kHighBytes{1, 1, 0x68},
    kLowWords{1, 1, 0x61}, kHighWords{1, 1, 0x69}, kPermuteBytes{2, 1, 0x75};
}  // namespace evex

// The bytes of the longest instruction.
inline constexpr size_t kMostEvexBytes = 11;

// Writes the instruction with the operands `to` (a zmm register or, of a comparison, a mask; maybe
// masked itself), `middle` (null where there is none) and `from` (a register, or memory at a base
// register with or without an index), as Xbyak writes it. Gives its bytes, at most kMostEvexBytes;
// 0, and nothing is written, where the operands are others.
size_t EncodeEvex(const EvexForm& form, const Xbyak::Operand& to, const Xbyak::Operand* middle,
                  const Xbyak::Operand& from, uint8_t* code);

}  // namespace fuselite::jit
