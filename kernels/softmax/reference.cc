#include <algorithm>
#include <cmath>

#include "kernels/row_kernel.h"
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

}  // namespace

Result<std::unique_ptr<Kernel>> BuildSoftmaxReference(const OpDescription& op,
                                                      const BuildContext&) {
  if (op.inputs[0].type != DataType::kFloat32) return BuildQuantizedSoftmaxReference(op);
  return MakeRowKernel(
      "softmax f32 reference", op, &ApplyTailReference, 8,
      [n = op.inputs[0].shape.dim(-1), beta = op.params.as<SoftmaxParams>().beta](
          const KernelArgs&, const float* x, float* y) { SoftmaxRow(x, y, n, beta); });
}

}  // namespace fuselite::kernels
