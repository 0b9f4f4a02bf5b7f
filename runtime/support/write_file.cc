#include "runtime/support/write_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fuselite {

Status WriteFile(const std::string& path, std::initializer_list<std::string_view> parts) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  bool good = file != nullptr;
  for (std::string_view part : parts) {
    if (part.empty()) continue;  // its address may be null
    good = good && std::fwrite(part.data(), 1, part.size(), file) == part.size();
  }
  int reason = errno;
  if (file != nullptr && std::fclose(file) != 0) {
    // A full disk is often noticed only here.
    if (good) reason = errno;
    good = false;
  }
  if (good) return Status();
  return IoError(path, ": cannot be written: ", std::strerror(reason));
}

}  // namespace fuselite
