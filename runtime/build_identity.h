// Which build of the library this is.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/hash.h"

namespace fuselite {

// What tells this build of the library from every other, as far as the linker knows.
Hash128 BuildIdentity();

namespace internal {
// The GNU build note's content among the ELF notes of one segment; empty where there is none, or
// where the notes end too early.
std::span<const std::byte> BuildNote(std::span<const std::byte> notes);
}  // namespace internal

}  // namespace fuselite
