#include <algorithm>
#include <cmath>

#include "kernels/numbers/short_floats.h"
#include "kernels/rows/row_kernel.h"
#include "kernels/softmax/quantized.h"
#include "kernels/softmax/softmax.h"

namespace fuselite::kernels {
namespace {

void SoftmaxRow(const float* in, float* out, int64_t n, float beta) {
  const float largest = *std::max_element(in, in + n);
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = std::exp((in[i] - largest) * beta);
    sum += out[i];
  }
  for (int64_t i = 0; i < n; ++i) out[i] = out[i] / sum;
}

// Exponentials are rounded before they are divided, their sum is not.
void SoftmaxRowHalf(const Half* in, Half* out, int64_t n, float beta) {
  float largest = -Half::kMax;
  for (int64_t i = 0; i < n; ++i) largest = std::max<float>(largest, in[i]);
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float power = std::exp((in[i] - largest) * beta);
    out[i] = Half(power);
    sum += power;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = Half(out[i] / sum);
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildSoftmaxReference(const OpDescription& op,
                                                      const BuildContext&) {
  const DataType type = op.inputs[0].type;
  const int64_t n = op.inputs[0].shape.dim(-1);
  const float beta = op.params.as<SoftmaxParams>().beta;
  if (type == DataType::kFloat16) {
    return MakeQuantizedRowKernel<Half, Half>(
        "softmax f16 reference", op, 8, 0,
        [=](const KernelArgs&, const Half* x, Half* y) { SoftmaxRowHalf(x, y, n, beta); });
  }
  if (type != DataType::kFloat32) return BuildQuantizedSoftmaxReference(op);
  return MakeRowKernel(
      "softmax f32 reference", op, &ApplyTailReference, 8,
      [=](const KernelArgs&, const float* x, float* y) { SoftmaxRow(x, y, n, beta); });
}

}  // namespace fuselite::kernels
