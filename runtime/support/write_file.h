// Files that a user names for fuselite to write.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "runtime/support/status.h"

namespace fuselite {

// Replaces the file by `parts`, one after the other. An error names the path and the system's
// reason: "x/y.json: cannot be written: Permission denied".
Status WriteFile(const std::string& path, std::initializer_list<std::string_view> parts);

// Any bytes as such a part.
inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace fuselite
