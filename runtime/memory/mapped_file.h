// A file's bytes, mapped read-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "runtime/support/status.h"

namespace fuselite {

class MappedFile {
 public:
  // Errors name the path: kNotFound, kIo, and kInvalidArgument for an empty file.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  // Refuses also what somebody else may have written: symbolic links, files of other users than
  // this process's and root, and files that their group or everybody may write.
  static Result<std::shared_ptr<const MappedFile>> OpenPrivate(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path, bool is_private);
  std::span<const std::byte> bytes_;
};

}  // namespace fuselite
