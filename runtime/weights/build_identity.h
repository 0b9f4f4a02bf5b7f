// Which build of the library this is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/weights/hash.h"

struct dl_phdr_info;  // of <link.h>

namespace fuselite {

// What tells this build of the library from every other, as far as the linker knows.
Hash128 BuildIdentity();

namespace internal {
// Whether a loaded segment of the object has the address.
bool Holds(const dl_phdr_info& object, uintptr_t address);
// The content of its first build note; empty where it has none.
std::span<const std::byte> BuildNoteOf(const dl_phdr_info& object);
// The GNU build note's content among the ELF notes of one segment; empty where there is none, or
// where the notes end too early.
std::span<const std::byte> BuildNote(std::span<const std::byte> notes);
}  // namespace internal

}  // namespace fuselite
