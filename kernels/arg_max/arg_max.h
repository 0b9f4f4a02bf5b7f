// ARG_MAX and ARG_MIN: where the extreme value along an axis is; the first of equal ones.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct ArgMaxParams {
  DataType output_type;  // int32 or int64
};

// The lines along the axis: `units` of them, `size` values each, `stride` values apart.
struct ArgLines {
  int64_t units, size, stride;
  bool wide;  // int64 indices
};
// Refuses tails and pitched operands.
Result<ArgLines> ArgLinesOf(const OpDescription& op);

// The most bytes of a row whose index and value make a key of 16 bits (byte_rows-inl.h).
inline constexpr int64_t kMaxByteRow = 256;

// Where indices go, as int32 or int64.
struct ArgOutput {
  void* data;
  bool wide;
  void Set(int64_t unit, int64_t index) const {
    if (wide) {
      static_cast<int64_t*>(data)[unit] = index;
    } else {
      static_cast<int32_t*>(data)[unit] = static_cast<int32_t>(index);
    }
  }
  ArgOutput From(int64_t unit) const {
    return {static_cast<std::byte*>(data) + unit * (wide ? 8 : 4), wide};
  }
};

// NaNs are passed over: the index is that of the extreme number, 0 where there is none. One unit
// is one index of the result. Dense operands.
Result<std::unique_ptr<Kernel>> BuildArgMax(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildArgMin(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildArgMaxHighway(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildArgMinHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
