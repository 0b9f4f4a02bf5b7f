// Integers of fewer than 8 bits: int4, uint4 and int2, packed from the lowest bits of a byte on.
#pragma once

#include <cstdint>

#include "kernels/operator.h"

namespace fuselite::kernels {

bool IsPacked(DataType type);

// Reads such a tensor's elements by their index.
class PackedIntegers {
 public:
  // Precondition: IsPacked(type).
  PackedIntegers(DataType type, const void* data)
      : data_(static_cast<const uint8_t*>(data)),
        bits_(BitWidth(type)),
        sign_(type == DataType::kUInt4 ? 0 : 1 << (bits_ - 1)) {}
  int32_t operator[](int64_t i) const {
    const int32_t value = (data_[i * bits_ / 8] >> (i * bits_ % 8)) & ((1 << bits_) - 1);
    return (value ^ sign_) - sign_;
  }

 private:
  const uint8_t* data_;
  int bits_;
  int32_t sign_;  // the bit of the sign; 0 where there is none
};

// Stores the lowest bits of `count` values from the start of `out` on; what is left of the last
// byte is 0.
void PackIntegers(DataType type, const int8_t* values, int64_t count, void* out);

// The kernel that `build` makes of the operation on bytes instead of packed integers, between
// unpacking and packing, in one unit: for operators that only move elements. Refuses pitched rows.
Result<std::unique_ptr<Kernel>> BuildOnBytes(const OpDescription& op, const BuildContext& context,
                                             BuildKernel build);

}  // namespace fuselite::kernels
