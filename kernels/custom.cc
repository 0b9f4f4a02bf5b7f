#include "kernels/custom.h"

#include "kernels/audio/audio.h"
#include "kernels/convert/numeric_verify.h"
#include "kernels/detection/detection.h"
#include "kernels/split/split.h"
#include "kernels/tensorflow/bicubic.h"
#include "kernels/tensorflow/patches.h"
#include "kernels/tensorflow/pool3d.h"
#include "kernels/transpose_conv/transpose_conv.h"
#include "kernels/unpool/unpool.h"

namespace fuselite::kernels {

const OperatorDef& AudioSpectrogramOperator();
const OperatorDef& Convolution2DTransposeBiasOperator();
const OperatorDef& DetectionPostProcessOperator();
const OperatorDef& FlexAvgPool3DOperator();
const OperatorDef& FlexErfOperator();
const OperatorDef& FlexExtractImagePatchesOperator();
const OperatorDef& FlexMaxPool3DOperator();
const OperatorDef& FlexResizeBicubicOperator();
const OperatorDef& FlexSoftsignOperator();
const OperatorDef& FlexSplitVOperator();
const OperatorDef& MaxPoolingWithArgmax2DOperator();
const OperatorDef& MaxUnpooling2DOperator();
const OperatorDef& MfccOperator();
const OperatorDef& NumericVerifyOperator();

namespace {

// For operators whose tensors tell everything.
Status IgnoreOptions(std::span<const std::byte>, void*) { return Status(); }

}  // namespace

std::span<const CustomOperator> AllCustomOperators() {
  static const CustomOperator kAll[] = {
      {&AudioSpectrogramOperator(), ReadSpectrogramOptions},
      {&Convolution2DTransposeBiasOperator(), ReadTransposeConvBiasOptions},
      {&DetectionPostProcessOperator(), ReadDetectionOptions},
      {&FlexAvgPool3DOperator(), ReadPool3DOptions},
      {&FlexErfOperator(), IgnoreOptions},
      {&FlexExtractImagePatchesOperator(), ReadPatchesOptions},
      {&FlexMaxPool3DOperator(), ReadPool3DOptions},
      {&FlexResizeBicubicOperator(), ReadBicubicOptions},
      {&FlexSoftsignOperator(), IgnoreOptions},
      {&FlexSplitVOperator(), ReadSplitVOptions},
      {&MaxPoolingWithArgmax2DOperator(), ReadUnpoolOptions},
      {&MaxUnpooling2DOperator(), ReadUnpoolOptions},
      {&MfccOperator(), ReadMfccOptions},
      {&NumericVerifyOperator(), ReadNumericVerifyOptions},
  };
  return kAll;
}

const CustomOperator* FindCustomOperator(std::string_view name) {
  for (const CustomOperator& custom : AllCustomOperators()) {
    if (custom.op->name == name) return &custom;
  }
  return nullptr;
}

}  // namespace fuselite::kernels
