// Kernels of elements that are only moved: the instance of a template for their size.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/shape_rules.h"
#include "runtime/execution/kernel.h"

namespace fuselite::kernels {

// build<T>() with an unsigned T of as many bytes as an element of `type`.
template <class Build>
Result<std::unique_ptr<Kernel>> ByElementBytes(DataType type, const Build& build) {
  FUSELITE_ASSIGN_OR_RETURN(const int bytes, ElementBytes(type));
  switch (bytes) {
    case 1: return build.template operator()<uint8_t>();
    case 2: return build.template operator()<uint16_t>();
    case 4: return build.template operator()<uint32_t>();
    case 8: return build.template operator()<uint64_t>();
    default: return Unsupported("does not take elements of ", bytes, " bytes");
  }
}

}  // namespace fuselite::kernels
