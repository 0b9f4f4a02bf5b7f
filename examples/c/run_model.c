/* The shortest way to run a .tflite model fast from C: our own interpreter and the delegate.
 *
 *   cmake -S examples/c -B build/example && cmake --build build/example   # where fuselite is
 * installed fuselite zoo mobilenet_v2 && build/example/run_model mobilenet_v2.tflite
 */
#include <fuselite/delegate.h>
#include <fuselite/interpreter.h>
#include <stdio.h>

/* Reads the largest value of the first output; what went wrong is in FuseliteLastError(). */
static FuseliteStatus Run(FuseliteInterpreter* interpreter, struct TfLiteDelegate* delegate) {
  FuseliteStatus status = FuseliteInterpreterApplyDelegate(interpreter, delegate);
  if (status == kFuseliteOk) status = FuseliteInterpreterAllocate(interpreter);
  FuseliteTensor tensor;
  if (status == kFuseliteOk) {
    status =
        FuseliteInterpreterTensor(interpreter, FuseliteInterpreterInput(interpreter, 0), &tensor);
  }
  if (status != kFuseliteOk) return status;
  if (tensor.type == kFuseliteFloat32) {
    float* values = tensor.data;
    for (size_t i = 0; i < tensor.bytes / sizeof *values; ++i) values[i] = 0.5f;
  }
  status = FuseliteInterpreterInvoke(interpreter);
  if (status == kFuseliteOk) {
    status =
        FuseliteInterpreterTensor(interpreter, FuseliteInterpreterOutput(interpreter, 0), &tensor);
  }
  if (status == kFuseliteOk && tensor.type == kFuseliteFloat32) {
    const float* values = tensor.data;
    size_t best = 0;
    for (size_t i = 1; i < tensor.bytes / sizeof *values; ++i) {
      if (values[i] > values[best]) best = i;
    }
    printf("largest output: %zu, %g\n", best, values[best]);
  }
  return status;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: run_model MODEL.tflite\n");
    return 2;
  }
  FuseliteModel* model = FuseliteModelLoadFile(argv[1]);
  FuseliteInterpreter* interpreter = model ? FuseliteInterpreterCreate(model, NULL) : NULL;
  struct TfLiteDelegate* delegate = FuseliteDelegateCreate(NULL);
  const int failed = !interpreter || !delegate || Run(interpreter, delegate) != kFuseliteOk;
  if (failed) fprintf(stderr, "run_model: %s\n", FuseliteLastError());
  FuseliteInterpreterDelete(interpreter);
  FuseliteDelegateDelete(delegate);
  FuseliteModelDelete(model);
  return failed;
}
