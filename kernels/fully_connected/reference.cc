#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildFullyConnectedReference(const OpDescription& op,
                                                             const BuildContext&) {
  if (op.inputs[0].type != DataType::kFloat32) return BuildFullyConnectedQuantizedReference(op);
  if (op.inputs[1].type != DataType::kFloat32) return BuildFullyConnectedHybridReference(op);
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation));
  const Work work{.units = shape.rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.units),
                  .scratch_bytes = shape.units * sizeof(float)};
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  return MakeKernel("fully_connected f32 reference", work,
                    [shape, tail = std::move(tail), pitch, output = op.outputs[0],
                     biased = op.has_input(2)](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* x = static_cast<const float*>(args.inputs[0]);
                      const auto* w = static_cast<const float*>(args.inputs[1]);
                      const auto* bias =
                          biased ? static_cast<const float*>(args.inputs[2]) : nullptr;
                      auto* sums = reinterpret_cast<float*>(args.scratch);
                      for (int64_t row = begin; row < end; ++row) {
                        for (int64_t u = 0; u < shape.units; ++u) {
                          float sum = 0;
                          for (int64_t d = 0; d < shape.depth; ++d) {
                            sum += x[row * pitch + d] * w[u * shape.depth + d];
                          }
                          sums[u] = bias != nullptr ? sum + bias[u] : sum;
                        }
                        StoreFloatRow(tail, args, output, row, sums);
                      }
                    });
}

}  // namespace fuselite::kernels
