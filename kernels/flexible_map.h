// Options of custom operators and attributes of composites, which files hold as FlexBuffers.
#pragma once

// Numbers are read from numbers, never from text: without this the headers ask for the library's
// table of locales, which is no code for shared objects.
#define FLATBUFFERS_LOCALE_INDEPENDENT 0
#include <flatbuffers/flexbuffers.h>

#include <cstddef>
#include <span>

#include "runtime/support/status.h"

namespace fuselite::kernels {

// The map that `bytes` are; it points into them. kInvalidArgument where they are none. A key that
// is missing reads as 0.
Result<flexbuffers::Map> ReadFlexibleMap(std::span<const std::byte> bytes);

}  // namespace fuselite::kernels
