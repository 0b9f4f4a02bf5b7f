#include "runtime/build_identity.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/aligned_buffer.h"
#include "runtime/version.h"

namespace fuselite {
namespace {

struct Search {
  uintptr_t address;  // in the object whose note is wanted
  std::span<const std::byte> note{};
};

int VisitObject(dl_phdr_info* object, size_t /*size*/, void* context) {
  auto& search = *static_cast<Search*>(context);
  const std::span segments(object->dlpi_phdr, object->dlpi_phnum);
  const auto holds = [&](const ElfW(Phdr) & s) {
    const uintptr_t begin = object->dlpi_addr + s.p_vaddr;
    return s.p_type == PT_LOAD && search.address - begin < s.p_memsz;
  };
  if (std::ranges::none_of(segments, holds)) return 0;
  for (const auto& segment : segments) {
    if (segment.p_type != PT_NOTE || !search.note.empty()) continue;
    const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr);
    search.note = internal::BuildNote({notes, segment.p_memsz});
  }
  return 1;
}

}  // namespace

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
