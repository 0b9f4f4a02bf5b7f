#include "runtime/support/caught.h"

#include <exception>
#include <new>

namespace fuselite {

CaughtError DescribeCaught() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {StatusCode::kOutOfMemory, "no memory left"};
  } catch (const std::exception& error) {
    return {StatusCode::kInternal, error.what()};
  } catch (...) {
    return {StatusCode::kInternal, "an exception of unknown type"};
  }
}

Status Caught(std::string_view what) {
  const CaughtError error = DescribeCaught();
  return Status(error.code, std::string(what) + ": " + error.text);
}

}  // namespace fuselite
