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
const OperatorDef& FlexAcosOperator();
const OperatorDef& FlexAcoshOperator();
const OperatorDef& FlexAsinOperator();
const OperatorDef& FlexAsinhOperator();
const OperatorDef& FlexAtanOperator();
const OperatorDef& FlexAtanhOperator();
const OperatorDef& FlexAvgPool3DOperator();
const OperatorDef& FlexCoshOperator();
const OperatorDef& FlexErfOperator();
const OperatorDef& FlexErfcOperator();
const OperatorDef& FlexExpm1Operator();
const OperatorDef& FlexExtractImagePatchesOperator();
const OperatorDef& FlexInvOperator();
const OperatorDef& FlexIsFiniteOperator();
const OperatorDef& FlexIsInfOperator();
const OperatorDef& FlexIsNanOperator();
const OperatorDef& FlexLog1pOperator();
const OperatorDef& FlexMaxPool3DOperator();
const OperatorDef& FlexReciprocalOperator();
const OperatorDef& FlexResizeBicubicOperator();
const OperatorDef& FlexSeluOperator();
const OperatorDef& FlexSinhOperator();
const OperatorDef& FlexSoftplusOperator();
const OperatorDef& FlexSoftsignOperator();
const OperatorDef& FlexSplitVOperator();
const OperatorDef& FlexTanOperator();
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
      {&FlexAcosOperator(), IgnoreOptions},
      {&FlexAcoshOperator(), IgnoreOptions},
      {&FlexAsinOperator(), IgnoreOptions},
      {&FlexAsinhOperator(), IgnoreOptions},
      {&FlexAtanOperator(), IgnoreOptions},
      {&FlexAtanhOperator(), IgnoreOptions},
      {&FlexAvgPool3DOperator(), ReadPool3DOptions},
      {&FlexCoshOperator(), IgnoreOptions},
      {&FlexErfOperator(), IgnoreOptions},
      {&FlexErfcOperator(), IgnoreOptions},
      {&FlexExpm1Operator(), IgnoreOptions},
      {&FlexExtractImagePatchesOperator(), ReadPatchesOptions},
      {&FlexInvOperator(), IgnoreOptions},
      {&FlexIsFiniteOperator(), IgnoreOptions},
      {&FlexIsInfOperator(), IgnoreOptions},
      {&FlexIsNanOperator(), IgnoreOptions},
      {&FlexLog1pOperator(), IgnoreOptions},
      {&FlexMaxPool3DOperator(), ReadPool3DOptions},
      {&FlexReciprocalOperator(), IgnoreOptions},
      {&FlexResizeBicubicOperator(), ReadBicubicOptions},
      {&FlexSeluOperator(), IgnoreOptions},
      {&FlexSinhOperator(), IgnoreOptions},
      {&FlexSoftplusOperator(), IgnoreOptions},
      {&FlexSoftsignOperator(), IgnoreOptions},
      {&FlexSplitVOperator(), ReadSplitVOptions},
      {&FlexTanOperator(), IgnoreOptions},
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
