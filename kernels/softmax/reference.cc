#include <algorithm>
#include <cmath>

#include "kernels/make_kernel.h"
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
  const TensorInfo& in = op.inputs[0];
  const int64_t depth = in.shape.dim(-1);
  const int64_t rows = depth ? in.elements() / depth : 0;
  const float beta = op.params.as<SoftmaxParams>().beta;
  return MakeKernel("softmax f32 reference", {.units = rows, .grain = GrainFor(depth)},
                    [depth, beta, in_pitch = in.pitch(), out_pitch = op.outputs[0].pitch()](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* x = static_cast<const float*>(args.inputs[0]);
                      auto* y = static_cast<float*>(args.outputs[0]);
                      for (int64_t r = begin; r < end; ++r) {
                        SoftmaxRow(x + r * in_pitch, y + r * out_pitch, depth, beta);
                      }
                    });
}

}  // namespace fuselite::kernels
