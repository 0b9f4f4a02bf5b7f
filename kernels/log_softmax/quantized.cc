#include "kernels/log_softmax/quantized.h"

#include <algorithm>
#include <limits>

#include "kernels/rows/row_kernel.h"

namespace fuselite::kernels {
namespace {

template <class T>
void Row(const QuantizedLogSoftmax& f, const T* in, T* out, int64_t n) {
  constexpr int32_t kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  const int32_t largest = *std::max_element(in, in + n);
  int64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += RoundingDivideByPowerOfTwo(f.exp.values[largest - in[i]], 12);
  }
  const int32_t log_sum = FixedLogOfQ12(
      static_cast<int32_t>(std::min<int64_t>(sum, std::numeric_limits<int32_t>::max())));
  const int32_t excluded = f.Excluded(log_sum);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t d = in[i] - largest;
    int32_t y = kMin;
    // This goes from Q5.26 to sixteenths.
    if (d > excluded) y = RoundingDivideByPowerOfTwo(f.difference(d) - log_sum, 22) + kMax;
    out[i] = static_cast<T>(std::clamp(y, kMin, kMax));
  }
}

template <class T>
std::unique_ptr<Kernel> Build(const OpDescription& op, const QuantizedLogSoftmax& f) {
  return MakeQuantizedRowKernel<T, T>(
      "log_softmax " + std::string(DataTypeName(op.inputs[0].type)) + " reference", op, 8, 0,
      [f, n = op.inputs[0].shape.dim(-1)](const KernelArgs&, const T* x, T* y) {
        Row(f, x, y, n);
      });
}

}  // namespace

int32_t QuantizedLogSoftmax::Excluded(int32_t log_sum) const {
  const int32_t smallest = log_sum + std::numeric_limits<int32_t>::min();
  return std::max(difference.least - 1,
                  MultiplyByQuantizedMultiplier(smallest, back.multiplier, back.shift));
}

Result<QuantizedLogSoftmax> MakeQuantizedLogSoftmax(const OpDescription& op) {
  const double scale = op.inputs[0].quantization.scale();
  FUSELITE_ASSIGN_OR_RETURN(const ScaledDifference difference, MakeScaledDifference(1, scale));
  FUSELITE_ASSIGN_OR_RETURN(const ExpTable exp, MakeExpTable(1, scale));
  const FixedPoint& forth = difference.scale;
  const double back = static_cast<double>(int64_t{1} << (31 - forth.shift)) / forth.multiplier;
  if (forth.shift < 1 || !(back < 1)) return Unsupported("does not take an input scale of ", scale);
  return QuantizedLogSoftmax{exp, difference, ToFixedPoint(back)};
}

Status CheckQuantizedLogSoftmax(const OpDescription& op) {
  int32_t min, max;
  QuantizedTypeRange(op.inputs[0].type, &min, &max);
  const Quantization& out = op.outputs[0].quantization;
  if (out.scale() != 1.0f / 16 || out.zero_point() != max) {
    return Unsupported("does not take an output scale of ", out.scale(), " and zero point ",
                       out.zero_point(), ", not 1/16 and ", max);
  }
  return MakeQuantizedLogSoftmax(op).status();
}

Result<std::unique_ptr<Kernel>> BuildQuantizedLogSoftmax(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const QuantizedLogSoftmax softmax, MakeQuantizedLogSoftmax(op));
  if (op.inputs[0].type == DataType::kInt8) return Build<int8_t>(op, softmax);
  return Build<uint8_t>(op, softmax);
}

}  // namespace fuselite::kernels
