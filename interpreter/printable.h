// Names from files in messages: a message is one line, whatever a file calls its tensors.
#pragma once

#include <string>
#include <string_view>

namespace fuselite::interpreter {

// At most 100 bytes of `name`, with control characters replaced.
inline std::string Printable(std::string_view name) {
  constexpr size_t kMaxLength = 100;
  std::string text(name.substr(0, kMaxLength));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (name.size() > kMaxLength) text += "...";
  return text;
}

}  // namespace fuselite::interpreter
