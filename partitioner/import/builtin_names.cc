#include "partitioner/import/builtin_names.h"

#include <string_view>

#include "runtime/support/is_index.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::partitioner {
namespace {

// The order is that of the codes.
#define FUSELITE_NAME(Name, code, NAME) NAME,
constexpr std::string_view kNames[] = {FUSELITE_BUILTIN_OPERATORS(FUSELITE_NAME)};
#undef FUSELITE_NAME
static_assert(std::size(kNames) == tflite::kTfLiteBuiltinOperatorCount);

}  // namespace

std::string BuiltinName(int builtin_code) {
  if (IsIndex(builtin_code, std::size(kNames))) {
    return std::string(kNames[builtin_code]);
  }
  return "operator " + std::to_string(builtin_code);
}

}  // namespace fuselite::partitioner
