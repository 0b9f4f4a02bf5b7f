/* Runs a model that has the custom operator Atan, with the delegate for everything around it.
 *
 *   run_with_atan MODEL.tflite [VALUE ...]
 */
#include <fuselite/delegate.h>
#include <fuselite/interpreter.h>
#include <stdio.h>
#include <stdlib.h>

#include "atan_operator.h"

/* The first input gets the values of the command line, zeros beyond them; the first output is
 * printed. */
static FuseliteStatus Run(FuseliteInterpreter* interpreter, char** values, int count) {
  FuseliteStatus status = FuseliteInterpreterAllocate(interpreter);
  FuseliteTensor tensor;
  if (status == kFuseliteOk) {
    status =
        FuseliteInterpreterTensor(interpreter, FuseliteInterpreterInput(interpreter, 0), &tensor);
  }
  if (status != kFuseliteOk) return status;
  float* input = tensor.data;
  for (size_t i = 0; i < tensor.bytes / sizeof *input; ++i) {
    input[i] = i < (size_t)count ? strtof(values[i], NULL) : 0.0f;
  }
  status = FuseliteInterpreterInvoke(interpreter);
  if (status == kFuseliteOk) {
    status =
        FuseliteInterpreterTensor(interpreter, FuseliteInterpreterOutput(interpreter, 0), &tensor);
  }
  if (status != kFuseliteOk) return status;
  const float* output = tensor.data;
  for (size_t i = 0; i < tensor.bytes / sizeof *output; ++i) printf("%g\n", output[i]);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: run_with_atan MODEL.tflite [VALUE ...]\n");
    return 2;
  }
  TfLiteOperator* atan_operator = AtanOperatorCreate(); /* outlives the interpreter */
  const struct TfLiteOperator* operators[] = {atan_operator};
  FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
  options.operators = operators;
  options.operator_count = 1;
  FuseliteModel* model = FuseliteModelLoadFile(argv[1]);
  FuseliteInterpreter* interpreter = model ? FuseliteInterpreterCreate(model, &options) : NULL;
  struct TfLiteDelegate* delegate = FuseliteDelegateCreate(NULL);
  const int failed = !interpreter || !delegate ||
                     FuseliteInterpreterApplyDelegate(interpreter, delegate) != kFuseliteOk ||
                     Run(interpreter, argv + 2, argc - 2) != kFuseliteOk;
  if (failed) fprintf(stderr, "run_with_atan: %s\n", FuseliteLastError());
  FuseliteInterpreterDelete(interpreter);
  FuseliteDelegateDelete(delegate);
  FuseliteModelDelete(model);
  TfLiteOperatorDelete(atan_operator);
  return failed;
}
