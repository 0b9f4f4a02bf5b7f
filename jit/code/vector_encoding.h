// The encoding of the vector instructions that are emitted most: three in four of a model's. Xbyak
// takes some 200 instructions for each of them, in which it asks what a table of all instructions
// leaves open; these take a tenth.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

#include "jit/code/memory.h"

namespace fuselite::jit {

// What Intel's manual (volume 2) says of an instruction with W = 0: the same of its VEX encoding
// and of its EVEX encoding, where it has both.
struct VectorForm {
  uint8_t map;     // 1: 0F, 2: 0F 38, 3: 0F 3A
  uint8_t prefix;  // 0: none, 1: 66
  uint8_t opcode;
  uint8_t memory = 0;      // bytes of an operand in memory that is not broadcast; 0: a vector's
  bool only_evex = false;  // on any width
};

namespace vector_forms {
inline constexpr VectorForm kLoad{1, 0, 0x10}, kStore{1, 0, 0x11}, kMove{1, 0, 0x28},
    kBroadcast{2, 1, 0x18, 4}, kBroadcastIntegers{2, 1, 0x58, 4}, kToFloats{1, 0, 0x5B},
    kToIntegers{1, 1, 0x5B}, kAdd{1, 1, 0xFE}, kXor{1, 1, 0xEF, 0, true},
    kEqual{1, 1, 0x76, 0, true}, kPackWords{1, 1, 0x6B}, kDot{2, 1, 0x50},
    kEvexDot{2, 1, 0x50, 0, true}, kMaxIntegers{2, 1, 0x3D}, kMinIntegers{2, 1, 0x39},
    kMultiplyAdd213{2, 1, 0xA8}, kMultiplyAdd231{2, 1, 0xB8}, kAddFloats{1, 0, 0x58},
    kMaxFloats{1, 0, 0x5F}, kMinFloats{1, 0, 0x5D}, kTernary{3, 1, 0x25, 0, true};
// On lanes of 8 and 16 bits, which are not broadcast.
inline constexpr VectorForm kAddWords{1, 1, 0xED}, kMultiplyWords{1, 1, 0xF5},
    kPackBytes{1, 1, 0x63}, kPackUnsignedBytes{1, 1, 0x67}, kLowBytes{1, 1, 0x60},
    kHighBytes{1, 1, 0x68}, kLowWords{1, 1, 0x61}, kHighWords{1, 1, 0x69},
    kPermuteBytes{2, 1, 0x75, 0, true};
}  // namespace vector_forms

// The bytes of the longest instruction.
inline constexpr size_t kMostVectorBytes = 12;

// Writes the instruction with the operands `to` (a vector register or, of a comparison, a mask;
// maybe masked itself), `middle` (null where there is none) and `from`, as Xbyak writes it: with
// VEX where that can be. Vectors have one width. An immediate byte is for the caller to write
// behind it. Gives the bytes, at most kMostVectorBytes with an immediate; 0, and nothing is
// written, where the operands are others.
size_t EncodeVector(const VectorForm& form, const Xbyak::Operand& to, const Xbyak::Operand* middle,
                    const Xbyak::Operand& from, uint8_t* code);
size_t EncodeVector(const VectorForm& form, const Xbyak::Operand& to, const Xbyak::Operand* middle,
                    const Memory& from, uint8_t* code);

}  // namespace fuselite::jit
