#include "runtime/weights/build_identity.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/memory/aligned_buffer.h"
#include "runtime/version.h"

namespace fuselite {
namespace {

struct Search {
  uintptr_t address;  // in the object whose note is wanted
  std::span<const std::byte> note{};
};

int VisitObject(dl_phdr_info* object, size_t /*size*/, void* context) {
  auto& search = *static_cast<Search*>(context);
  if (!internal::Holds(*object, search.address)) return 0;
  search.note = internal::BuildNoteOf(*object);
  return 1;
}

std::span<const ElfW(Phdr)> SegmentsOf(const dl_phdr_info& object) {
  return {object.dlpi_phdr, object.dlpi_phnum};
}

}  // namespace

bool internal::Holds(const dl_phdr_info& object, uintptr_t address) {
  return std::ranges::any_of(SegmentsOf(object), [&](const ElfW(Phdr) & segment) {
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && address - begin < segment.p_memsz;
  });
}

std::span<const std::byte> internal::BuildNoteOf(const dl_phdr_info& object) {
  for (const ElfW(Phdr) & segment : SegmentsOf(object)) {
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const std::byte*>(object.dlpi_addr + segment.p_vaddr);
    const std::span<const std::byte> note = BuildNote({notes, segment.p_memsz});
    if (!note.empty()) return note;
  }
  return {};
}

std::span<const std::byte> internal::BuildNote(std::span<const std::byte> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    const size_t name = AlignUp(header.n_namesz, 4), text = AlignUp(header.n_descsz, 4);
    notes = notes.subspan(sizeof header);
    if (name > notes.size() || text > notes.size() - name) return {};
    const std::string_view owner(reinterpret_cast<const char*>(notes.data()), header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && owner == std::string_view("GNU\0", 4)) {
      return notes.subspan(name, header.n_descsz);
    }
    notes = notes.subspan(name + text);
  }
  return {};
}

Hash128 BuildIdentity() {
  static const Hash128 identity = [] {
    Search search{reinterpret_cast<uintptr_t>(&BuildIdentity)};
    dl_iterate_phdr(VisitObject, &search);
    const Hash128 version = HashBytes(kVersion, std::strlen(kVersion));
    return HashBytes(search.note.data(), search.note.size(), version.low);
  }();
  return identity;
}

}  // namespace fuselite
