#include "runtime/weights/build_identity.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/memory/aligned_buffer.h"
#include "runtime/version.h"

namespace fuselite {
namespace {

using Bytes = std::vector<std::byte>;

// A note; `cut` bytes are missing at its end.
Bytes Note(uint32_t type, std::string_view owner, std::string_view text, size_t cut = 0) {
  ElfW(Nhdr) header{};
  header.n_namesz = static_cast<uint32_t>(owner.size());
  header.n_descsz = static_cast<uint32_t>(text.size());
  header.n_type = type;
  const size_t name_bytes = AlignUp(owner.size(), 4);
  Bytes note(sizeof header + name_bytes + AlignUp(text.size(), 4));
  std::memcpy(note.data(), &header, sizeof header);
  std::memcpy(note.data() + sizeof header, owner.data(), owner.size());
  std::memcpy(note.data() + sizeof header + name_bytes, text.data(), text.size());
  note.resize(note.size() - cut);
  return note;
}

std::string BuildNote(std::initializer_list<Bytes> notes) {
  // The memory is as large as the notes, so that sanitizers see who reads beyond them.
  Bytes all;
  for (const Bytes& note : notes) all.insert(all.end(), note.begin(), note.end());
  all.shrink_to_fit();
  const auto found = internal::BuildNote(all);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

constexpr std::string_view kGnu("GNU\0", 4);

TEST(BuildIdentity, IsTheBuildNoteAmongOthers) {
  const Bytes wanted = Note(NT_GNU_BUILD_ID, kGnu, "build");
  const Bytes property = Note(NT_GNU_ABI_TAG, kGnu, "abi"), stranger = Note(3, "Xen", "other");
  EXPECT_EQ(BuildNote({wanted}), "build");
  EXPECT_EQ(BuildNote({property, stranger, wanted, property}), "build");
  EXPECT_EQ(BuildNote({Note(1, "a name of its own", "odd"), wanted}), "build");
  EXPECT_EQ(BuildNote({property, stranger}), "");
  EXPECT_EQ(BuildNote({}), "");
}

TEST(BuildIdentity, NotesThatEndEarlyAreNone) {
  const Bytes property = Note(NT_GNU_ABI_TAG, kGnu, "abi");
  for (size_t cut = 1; cut <= 24; ++cut) {
    EXPECT_EQ(BuildNote({property, Note(NT_GNU_BUILD_ID, kGnu, "identity", cut)}), "") << cut;
  }
  for (const size_t field : {offsetof(ElfW(Nhdr), n_namesz), offsetof(ElfW(Nhdr), n_descsz)}) {
    Bytes changed = Note(NT_GNU_BUILD_ID, kGnu, "identity");
    const uint32_t most = 0xfffffffe;
    std::memcpy(changed.data() + field, &most, sizeof most);
    EXPECT_EQ(BuildNote({changed}), "") << field;
  }
}

// An object of these notes between segments that look like notes and are none.
TEST(BuildIdentity, IsInTheNotesOfAnObject) {
  const Bytes wanted = Note(NT_GNU_BUILD_ID, kGnu, "build"), later = Note(3, kGnu, "later"),
              property = Note(NT_GNU_ABI_TAG, kGnu, "abi"), none = Note(3, kGnu, "");
  const auto object_of = [](std::vector<ElfW(Phdr)>& segments) {
    dl_phdr_info object{};
    object.dlpi_addr = 16;
    object.dlpi_phdr = segments.data();
    object.dlpi_phnum = static_cast<ElfW(Half)>(segments.size());
    return object;
  };
  const auto segment = [](uint32_t type, const Bytes& bytes) {
    ElfW(Phdr) made{};
    made.p_type = type;
    made.p_vaddr = reinterpret_cast<uintptr_t>(bytes.data()) - 16;
    made.p_memsz = bytes.size();
    return made;
  };
  struct {
    std::vector<ElfW(Phdr)> segments;
    std::string_view note;
  } cases[] = {
      {{segment(PT_NOTE, wanted)}, "build"},
      {{segment(PT_LOAD, later), segment(PT_NOTE, property), segment(PT_NOTE, wanted)}, "build"},
      {{segment(PT_NOTE, none), segment(PT_NOTE, wanted), segment(PT_NOTE, later)}, "build"},
      {{segment(PT_LOAD, wanted), segment(PT_PHDR, wanted), segment(PT_NOTE, property)}, ""},
      {{}, ""}};
  for (auto& [segments, note] : cases) {
    const auto found = internal::BuildNoteOf(object_of(segments));
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(found.data()), found.size()), note);
  }
  std::vector<ElfW(Phdr)> segments = {segment(PT_NOTE, later), segment(PT_LOAD, wanted)};
  const dl_phdr_info object = object_of(segments);
  const auto begin = reinterpret_cast<uintptr_t>(wanted.data());
  EXPECT_TRUE(internal::Holds(object, begin));
  EXPECT_TRUE(internal::Holds(object, begin + wanted.size() - 1));
  EXPECT_FALSE(internal::Holds(object, begin - 1));
  EXPECT_FALSE(internal::Holds(object, begin + wanted.size()));
  EXPECT_FALSE(internal::Holds(object, reinterpret_cast<uintptr_t>(later.data())));
}

// The linker writes a note into this program (-Wl,--build-id).
TEST(BuildIdentity, IsThatOfThisProgram) {
  const Hash128 version = HashBytes(kVersion, std::strlen(kVersion));
  EXPECT_EQ(BuildIdentity(), BuildIdentity());
  EXPECT_NE(BuildIdentity(), HashBytes(nullptr, 0, version.low)) << "there is no note";
}

// Not that of the program that has loaded it.
TEST(BuildIdentity, IsThatOfTheLibraryThatAsks) {
#ifdef FUSELITE_SHARED_ROOMS
  GTEST_SKIP() << "here the program and the library ask the same library (FUSELITE_SHARED_ROOMS)";
#endif
  void* const library = dlopen(UNLOAD_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto identity = reinterpret_cast<uint64_t (*)()>(dlsym(library, "IdentityOfThis"));
  ASSERT_NE(identity, nullptr);
  const Hash128 version = HashBytes(kVersion, std::strlen(kVersion));
  EXPECT_NE(identity(), BuildIdentity().low);
  EXPECT_NE(identity(), HashBytes(nullptr, 0, version.low).low) << "there is no note";
  dlclose(library);
}

}  // namespace
}  // namespace fuselite
