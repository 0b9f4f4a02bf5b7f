// Exceptions as errors, where none may leave: at calls from the host, in threads, at operators of
// applications.
#pragma once

#include <string_view>

#include "runtime/support/status.h"

namespace fuselite {

// What an exception says of itself. `text` lives as long as the exception is being handled.
struct CaughtError {
  StatusCode code;
  const char* text;
};

// The exception that is being handled: kOutOfMemory for what `new` throws, kInternal for the rest.
// Takes no memory, of which there may be none left. Precondition: the caller is in a handler.
[[gnu::cold]] CaughtError DescribeCaught() noexcept;

// The same as the error of `what`: "compiling the partition: no memory left".
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
