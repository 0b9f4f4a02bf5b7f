// Settings from the environment: FUSELITE_<NAME>.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fuselite {

// "num_threads" or "NUM_THREADS" -> "FUSELITE_NUM_THREADS".
std::string EnvironmentName(std::string_view setting);

// The value of FUSELITE_<SETTING>; nullopt where it is not set, or empty.
std::optional<std::string> ReadEnvironment(std::string_view setting);

}  // namespace fuselite
