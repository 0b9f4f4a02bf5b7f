// Reads .tflite files: bytes that nobody trusts become a Model that everybody may.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "interpreter/file/model.h"
#include "runtime/support/status.h"

namespace fuselite::interpreter {

// Maps the file. Errors begin with the path.
Result<std::shared_ptr<const Model>> LoadModelFromFile(const std::string& path);

// `bytes` must stay as they are for the life of the model; `keep_alive` (may be null) is held as
// long. Bytes not aligned to 16 are copied.
//
// Checks the FlatBuffers structure, then everything that the rest of the room relies on: indices,
// ranks up to Shape::kMaxRank, sizes of constants against type and shape, string tables,
// quantization, operator inputs that nothing writes, option values. kInvalidArgument: the file is
// broken. kUnsupported: it is well-formed but uses what is not known here. Operators need not be
// known: see op_resolver.h.
Result<std::shared_ptr<const Model>> LoadModelFromMemory(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> keep_alive);

}  // namespace fuselite::interpreter
