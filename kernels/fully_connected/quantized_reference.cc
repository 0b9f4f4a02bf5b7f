#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

// The sums of one row with all units.
template <class X, class Weights>
void RowSums(const FullyConnectedShape& shape, const X* x, int32_t x_offset, const Weights& weights,
             int32_t weights_offset, int64_t* sums) {
  for (int64_t u = 0; u < shape.units; ++u) {
    int64_t sum = 0;
    for (int64_t d = 0; d < shape.depth; ++d) {
      sum += int64_t{x[d] + x_offset} * (weights[u * shape.depth + d] + weights_offset);
    }
    sums[u] = sum;
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildFullyConnectedQuantizedReference(const OpDescription& op) {
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape.units));
  const size_t sums_bytes = AlignUp(shape.units * sizeof(int64_t));
  const Work work{.units = shape.rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.units),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  const int32_t x_offset = -op.inputs[0].quantization.zero_point();
  const int32_t w_offset = -op.inputs[1].quantization.zero_point();
  return MakeKernel(
      internal::Join("fully_connected ", DataTypeName(op.inputs[0].type), " reference"), work,
      [=, tail = std::move(tail), x_type = op.inputs[0].type, w_type = op.inputs[1].type](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          WithQuantizedOperands(x_type, args.inputs[0], w_type, args.inputs[1],
                                [&](const auto* x, const auto& w) {
                                  RowSums(shape, x + row * pitch, x_offset, w, w_offset, sums);
                                });
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildFullyConnectedHybridReference(const OpDescription& op) {
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeHybridTail(op, params.activation, shape.units));
  const size_t sums_bytes = AlignUp(shape.units * sizeof(int64_t));
  const size_t floats_bytes = AlignUp(tail.row_bytes());
  const Work work{.units = shape.rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.units),
                  .scratch_bytes = sums_bytes + floats_bytes + shape.depth * sizeof(int16_t)};
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  return MakeKernel(
      internal::Join("fully_connected hybrid ", DataTypeName(op.inputs[1].type), " reference"),
      work,
      [=, tail = std::move(tail), asymmetric = params.asymmetric_quantize_inputs,
       w_type = op.inputs[1].type](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        auto* floats = reinterpret_cast<float*>(args.scratch + sums_bytes);
        auto* quantized = reinterpret_cast<int16_t*>(args.scratch + sums_bytes + floats_bytes);
        for (int64_t row = begin; row < end; ++row) {
          const auto* x = static_cast<const float*>(args.inputs[0]) + row * pitch;
          const DynamicScale scale =
              QuantizeDynamically(x, 1, shape.depth, shape.depth, asymmetric, quantized);
          WithQuantizedOperands(
              DataType::kInt16, quantized, w_type, args.inputs[1],
              [&](const auto* q, const auto& w) { RowSums(shape, q, 0, w, 0, sums); });
          tail.StoreRow(args, row, sums, scale.scale, floats);
        }
      });
}

}  // namespace fuselite::kernels
