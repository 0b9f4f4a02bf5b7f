// A file without a name, for what takes paths.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <string>

namespace fuselite::fuzz {

// Has these bytes, and goes with the object.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : file_(memfd_create("fuzz", 0)) {
    if (file_ >= 0 && write(file_, bytes.data(), bytes.size()) < 0) ADD_FAILURE() << "no memory";
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace fuselite::fuzz
