// Checks of flags' values, with messages for people.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace fuselite::tools {

// A finite number that is not below `low`.
inline CLI::Validator AtLeast(double low) {
  return CLI::Validator(
      [low](const std::string& text) -> std::string {
        double value;
        if (!CLI::detail::lexical_cast(text, value)) return "'" + text + "' is not a number";
        char bound[32];
        std::snprintf(bound, sizeof bound, "%g", low);
        if (!(value >= low)) return "'" + text + "' is not at least " + bound;
        return std::isfinite(value) ? "" : "'" + text + "' is not finite";
      },
      "");
}

// A path that is not empty; `what`: "file", "folder".
inline CLI::Validator Names(const char* what) {
  return CLI::Validator(
      [what](const std::string& text) {
        return text.empty() ? std::string("'' names no ") + what : std::string();
      },
      "");
}

// A number that an unsigned integer of 64 bits can be: what CLI11 reads as one wraps around.
inline CLI::Validator WholeNumber() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        uint64_t value;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stop == end) return "";
        return "'" + text + "' is not a whole number from 0 to 18446744073709551615";
      },
      "");
}

}  // namespace fuselite::tools
