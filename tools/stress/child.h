// Runs a function in a process of its own, so that whatever becomes of it is a result.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/support/status.h"

namespace fuselite::tools {

enum class Verdict { kSuccess, kFailure, kHang, kCrash };
std::string_view VerdictName(Verdict verdict);  // "SUCCESS"

struct ChildResult {
  Verdict verdict = Verdict::kSuccess;
  std::string detail;  // the error, the signal; empty for a success
  double seconds = 0;
};

// Forks and runs `work` in the child: an error or an exception is a failure, an end by a signal or
// by any other exit a crash. After `limit_seconds` the child and all that it started are killed: a
// hang. The calling process must have one thread only. `work` has /dev/null as its standard output.
ChildResult RunInChild(const std::function<Status()>& work, double limit_seconds);

}  // namespace fuselite::tools
