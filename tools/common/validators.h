// Checks of flags' values, with messages for people.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

namespace fuselite::tools {

// A number that is not below `low`, and no NaN.
inline CLI::Validator AtLeast(double low) {
  return CLI::Validator(
      [low](const std::string& text) -> std::string {
        double value;
        if (!CLI::detail::lexical_cast(text, value)) return "'" + text + "' is not a number";
        char bound[32];
        std::snprintf(bound, sizeof bound, "%g", low);
        return value >= low ? "" : "'" + text + "' is not at least " + bound;
      },
      "");
}

}  // namespace fuselite::tools
