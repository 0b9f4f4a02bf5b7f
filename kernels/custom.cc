#include "kernels/custom.h"

#include "kernels/audio/audio.h"
#include "kernels/convert/numeric_verify.h"
#include "kernels/detection/detection.h"
#include "kernels/transpose_conv/transpose_conv.h"
#include "kernels/unpool/unpool.h"

namespace fuselite::kernels {

const OperatorDef& AudioSpectrogramOperator();
const OperatorDef& Convolution2DTransposeBiasOperator();
const OperatorDef& DetectionPostProcessOperator();
const OperatorDef& MaxPoolingWithArgmax2DOperator();
const OperatorDef& MaxUnpooling2DOperator();
const OperatorDef& MfccOperator();
const OperatorDef& NumericVerifyOperator();

std::span<const CustomOperator> AllCustomOperators() {
  static const CustomOperator kAll[] = {
      {&AudioSpectrogramOperator(), ReadSpectrogramOptions},
      {&Convolution2DTransposeBiasOperator(), ReadTransposeConvBiasOptions},
      {&DetectionPostProcessOperator(), ReadDetectionOptions},
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
