// Files that a command line names.
#pragma once

#include <fstream>
#include <initializer_list>
#include <string>

#include "runtime/support/status.h"

namespace fuselite::tools {

// Open in binary mode. Refuses what is not there, not readable or no regular file, naming it: a
// directory opens and fails at the first read, a pipe waits.
Result<std::ifstream> OpenForReading(const std::string& path);

// A file that is to be written, and the flag that names it; empty: none.
struct OutputFile {
  const char* flag;
  std::string path;
};

// Refuses flags that name the same file, which one would write over what the other wrote. Devices
// and pipes take both.
Status CheckDistinct(std::initializer_list<OutputFile> files);

}  // namespace fuselite::tools
