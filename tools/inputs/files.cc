#include "tools/inputs/files.h"

#include <filesystem>
#include <map>

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

Status CheckDistinct(std::initializer_list<OutputFile> files) {
  std::map<std::filesystem::path, const char*> flags;
  for (const OutputFile& file : files) {
    if (file.path.empty()) continue;
    std::error_code error;
    const std::filesystem::path whole =
        std::filesystem::weakly_canonical(std::filesystem::absolute(file.path, error), error);
    const std::filesystem::file_status status = std::filesystem::status(whole, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) continue;
    const auto [other, fresh] = flags.emplace(whole, file.flag);
    if (!fresh) {
      return InvalidArgument(other->second, " and ", file.flag, " name the same file, ", file.path);
    }
  }
  return Status();
}

}  // namespace fuselite::tools
