#pragma once

#include "runtime/tensor.h"

namespace fuselite {

inline bool IsByte(DataType type) { return type == DataType::kInt8 || type == DataType::kUInt8; }
inline bool IsByte(const TensorInfo& info) { return IsByte(info.type); }

}  // namespace fuselite
