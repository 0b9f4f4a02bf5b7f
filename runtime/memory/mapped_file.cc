#include "runtime/memory/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fuselite {
namespace {

Status CheckPrivate(const struct stat& info, const std::string& path) {
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return InvalidArgument(path, ": belongs to user ", info.st_uid, ", not to this process's");
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return InvalidArgument(path, ": others may write it");
  }
  return Status();
}

Result<std::span<const std::byte>> Map(int fd, const std::string& path, bool is_private) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return IoError(path, ": ", std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return InvalidArgument(path, ": is a folder, not a regular file");
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path, ": not a regular file");
  if (info.st_size == 0) return InvalidArgument(path, ": the file is empty");
  if (is_private) FUSELITE_RETURN_IF_ERROR(CheckPrivate(info, path));
  const auto size = static_cast<size_t>(info.st_size);
  // Shared, so that FilePages may give pages back.
  void* memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return IoError(path, ": cannot be mapped: ", std::strerror(errno));
  return std::span(static_cast<const std::byte*>(memory), size);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  return Open(path, false);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::OpenPrivate(const std::string& path) {
  return Open(path, true);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path,
                                                           bool is_private) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a pipe would wait
  const int fd = open(path.c_str(), is_private ? kFlags | O_NOFOLLOW : kFlags);
  if (fd < 0) {
    if (errno == ENOENT) return NotFound(path, ": no such file");
    return IoError(path, ": ", std::strerror(errno));
  }
  auto bytes = Map(fd, path, is_private);
  close(fd);
  if (!bytes.ok()) return bytes.status();
  return std::shared_ptr<const MappedFile>(new MappedFile(*bytes));
}

MappedFile::~MappedFile() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace fuselite
