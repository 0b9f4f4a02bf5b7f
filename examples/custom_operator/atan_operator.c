#include "atan_operator.h"

#include <math.h>

/* One input, one output of its shape. */
static TfLiteStatus AtanPrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeNumberOfInputs(node), 1);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeNumberOfOutputs(node), 1);
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorType(input), kTfLiteFloat32);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorType(output), kTfLiteFloat32);

  const int rank = TfLiteOpaqueTensorNumDims(input);
  TfLiteIntArray* shape = TfLiteIntArrayCreate(rank);
  TF_LITE_OPAQUE_ENSURE(context, shape != NULL);
  for (int i = 0; i < rank; ++i) shape->data[i] = TfLiteOpaqueTensorDim(input, i);
  return TfLiteOpaqueContextResizeTensor(context, output, shape); /* which takes `shape` over */
}

static TfLiteStatus AtanInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* from = TfLiteOpaqueTensorData(input);
  float* to = TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  const size_t count = TfLiteOpaqueTensorByteSize(input) / sizeof *from;
  for (size_t i = 0; i < count; ++i) to[i] = atanf(from[i]);
  return kTfLiteOk;
}

TfLiteOperator* AtanOperatorCreate(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Atan", 1, NULL);
  if (op == NULL) return NULL;
  TfLiteOperatorSetPrepare(op, AtanPrepare);
  TfLiteOperatorSetInvoke(op, AtanInvoke);
  return op;
}
