#include "runtime/support/environment.h"

#include <cstdlib>

namespace fuselite {

std::string EnvironmentName(std::string_view setting) {
  std::string name = "FUSELITE_";
  for (char c : setting) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::optional<std::string> ReadEnvironment(std::string_view setting) {
  const char* const value = std::getenv(EnvironmentName(setting).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace fuselite
