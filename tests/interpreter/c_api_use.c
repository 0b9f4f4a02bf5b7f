#include "tests/interpreter/c_api_use.h"

#include "fuselite/interpreter.h"

static int Run(FuseliteInterpreter* interpreter, float* values, size_t count) {
  if (FuseliteInterpreterAllocate(interpreter) != kFuseliteOk) return 1;
  if (FuseliteInterpreterCopyIn(interpreter, 0, values, count * sizeof(float)) != kFuseliteOk) {
    return 1;
  }
  if (FuseliteInterpreterInvoke(interpreter) != kFuseliteOk) return 1;
  return FuseliteInterpreterCopyOut(interpreter, 0, values, count * sizeof(float)) != kFuseliteOk;
}

int RunModelFromC(const void* bytes, size_t size, float* values, size_t count) {
  FuseliteModel* model = FuseliteModelLoadMemory(bytes, size);
  FuseliteInterpreter* interpreter = FuseliteInterpreterCreate(model, NULL);
  int failed = interpreter == NULL || Run(interpreter, values, count);
  FuseliteInterpreterDelete(interpreter);
  FuseliteModelDelete(model);
  return failed;
}
