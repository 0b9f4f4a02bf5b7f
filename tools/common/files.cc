#include "tools/common/files.h"

#include <filesystem>

namespace fuselite::tools {

Result<std::ifstream> OpenForReading(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return NotFound(path, ": no such file");
  if (std::filesystem::is_directory(status)) {
    return InvalidArgument(path, ": is a folder, not a regular file");
  }
  if (!std::filesystem::is_regular_file(status)) {
    return InvalidArgument(path, ": not a regular file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError(path, ": cannot be opened");
  return file;
}

}  // namespace fuselite::tools
