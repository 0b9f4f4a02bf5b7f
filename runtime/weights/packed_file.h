// Packed weights in a file: data only, mapped and shared between processes, never changed once the
// file has its name.
//
//   FileHeader                      64 bytes
//   FileEntry × entries             48 bytes each, by ascending key
//   the packings                    each at a multiple of kAlignment, kAlignment bytes behind it
//
// Numbers are the machine's own: a file is read where it was written, by the build that wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/memory/mapped_file.h"
#include "runtime/weights/build_identity.h"
#include "runtime/weights/hash.h"
#include "runtime/weights/packed_store.h"

namespace fuselite {

struct FileHeader {
  char magic[8];
  uint32_t format, entries;
  uint64_t file_bytes;
  Hash128 build;  // BuildIdentity() of the writer: the layout of packed weights is a matter of code
  Hash128 index;  // of the entries
  uint64_t reserved;
};
static_assert(sizeof(FileHeader) == 64);

struct FileEntry {
  Hash128 key;
  uint64_t at, bytes;
  Hash128 content;
};
static_assert(sizeof(FileEntry) == 48);

class PackedFile : public std::enable_shared_from_this<PackedFile> {
 public:
  // The message says why a file is not taken: it is another build's, or truncated, or its index was
  // changed, or MappedFile::OpenPrivate refuses it. kNotFound where there is none.
  static Result<std::shared_ptr<const PackedFile>> Open(const std::string& path);

  std::span<const FileEntry> entries() const { return entries_; }
  // Null where no entry has the key and the size, or where its bytes are not those that were
  // written. The memory keeps the file mapped.
  PackedWeights Find(const Hash128& key, size_t bytes) const;
  std::span<const std::byte> BytesOf(const FileEntry& entry) const {
    return file_->bytes().subspan(entry.at, entry.bytes);
  }

 private:
  PackedFile(std::shared_ptr<const MappedFile> file, std::span<const FileEntry> entries)
      : file_(std::move(file)), entries_(entries) {}

  std::shared_ptr<const MappedFile> file_;
  std::span<const FileEntry> entries_;
};

struct PackedBytes {
  Hash128 key;
  std::span<const std::byte> bytes;
};
// Replaces the file at once: whoever opens `path` finds the old one or the new one, whole, whatever
// becomes of this process. Its permissions are its user's alone. Keys are distinct. What
// writers left behind that were killed an hour ago or earlier is removed.
Status WritePackedFile(const std::string& path, std::span<const PackedBytes> packings);

}  // namespace fuselite
