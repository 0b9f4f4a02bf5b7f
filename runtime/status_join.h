// The text building behind runtime/status.h, apart so that the contract reads on one screen.
#pragma once

#include <sstream>
#include <string>

namespace fuselite::internal {

template <class... Parts>
std::string Join(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace fuselite::internal
