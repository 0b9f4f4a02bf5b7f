// Names from files in messages and tables: each takes one line and moves no cursor, whatever a file
// calls its tensors.
#pragma once

#include <string>
#include <string_view>

namespace fuselite {

// `text` with '?' in the place of each control character: those of ASCII, and U+0080 to U+009F in
// UTF-8, by which terminals begin escape sequences, too.
inline std::string OneLine(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool two_bytes = c == 0xC2 && next >= 0x80 && next < 0xA0;
    line += c < 0x20 || c == 0x7f || two_bytes ? '?' : text[i];
    i += two_bytes;
  }
  return line;
}

// OneLine() of at most 100 bytes.
inline std::string Printable(std::string_view name) {
  constexpr size_t kMaxLength = 100;
  return OneLine(name.substr(0, kMaxLength)) + (name.size() > kMaxLength ? "..." : "");
}

}  // namespace fuselite
