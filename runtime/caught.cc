#include "runtime/caught.h"

#include <exception>
#include <new>

namespace fuselite {

Status Caught(std::string_view what) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return OutOfMemory(what, ": no memory left");
  } catch (const std::exception& error) {
    return Internal(what, ": ", error.what());
  } catch (...) {
    return Internal(what, ": an exception of unknown type");
  }
}

}  // namespace fuselite
