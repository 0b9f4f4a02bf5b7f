// The text building behind runtime/support/status.h, apart so that the contract reads on one
// screen.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace fuselite::internal {

// A stream takes half a microsecond to be made, and candidates refuse thousands of times while a
// large model is compiled: what most messages consist of does without.
template <class Part>
void Append(std::string& text, const Part& part) {
  if constexpr (std::is_same_v<Part, char>) {
    text += part;
  } else if constexpr (std::is_integral_v<Part> && sizeof(Part) > 1) {
    text += std::to_string(part);
  } else if constexpr (!std::is_pointer_v<Part> &&
                       std::is_convertible_v<const Part&, std::string_view>) {
    text += std::string_view(part);
  } else {
    std::ostringstream out;
    out << part;
    text += std::move(out).str();
  }
}

template <class... Parts>
std::string Join(const Parts&... parts) {
  std::string text;
  (Append(text, parts), ...);
  return text;
}

}  // namespace fuselite::internal
