#include "partitioner/import/host_age.h"

#include <dlfcn.h>

namespace fuselite::partitioner {

bool HasSubgraphFunctions(const tflite::TfLiteContext* context) {
  Dl_info known{}, asked{};
  const auto* known_function = reinterpret_cast<const void*>(context->ResizeTensor);
  const auto* asked_function = reinterpret_cast<const void*>(context->AcquireSubgraphContext);
  dladdr(known_function, &known);
  // Nothing lies at a null pointer.
  return dladdr(asked_function, &asked) != 0 && known.dli_fbase == asked.dli_fbase;
}

}  // namespace fuselite::partitioner
