// Files that a command line names.
#pragma once

#include <fstream>
#include <string>

#include "runtime/status.h"

namespace fuselite::tools {

// Open in binary mode. Refuses what is not there, not readable or no regular file, naming it: a
// directory opens and fails at the first read, a pipe waits.
Result<std::ifstream> OpenForReading(const std::string& path);

}  // namespace fuselite::tools
