// Exceptions as errors, where none may leave: at calls from the host, in threads, at operators of
// applications.
#pragma once

#include <string_view>

#include "runtime/status.h"

namespace fuselite {

// The exception that is being handled, as the error of `what`: "compiling the partition: no memory
// left". Precondition: the caller is in a handler.
[[gnu::cold]] Status Caught(std::string_view what);

// Runs `body`, which returns a Status or a Result; what it throws becomes an error of `what`.
template <class Body>
auto Guarded(std::string_view what, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return Caught(what);
  }
}

}  // namespace fuselite
