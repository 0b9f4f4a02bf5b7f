#include "kernels/weight_only/weight_only.h"

#include <algorithm>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {

namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI8 = DataType::kInt8, kI4 = DataType::kInt4, kF16 = DataType::kFloat16;
constexpr TypeRow kTypes[] = {
    {{kF32, kI8, kF32}, kF32}, {{kF32, kI4, kF32}, kF32}, {{kF32, kF16, kF32}, kF32}};

Status InferWeightOnly(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveWeightOnly(op));
  op.outputs[0].shape = FullyConnectedOutput(op, shape.rows, shape.units);
  if (op.outputs[0].absent()) op.outputs[0].type = kF32;
  return MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation).status();
}

float WeightAt(const TensorInfo& weights, int64_t i) {
  if (weights.type == kF16) return HalfToFloat(LoadUnaligned<uint16_t>(weights.data, i));
  if (weights.type == kI8) return static_cast<const int8_t*>(weights.data)[i];
  return static_cast<float>(PackedIntegers(weights.type, weights.data)[i]);
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanWeightOnlyHighway},
    {"reference", BuildWeightOnlyReference},
};

}  // namespace

Result<FullyConnectedShape> ResolveWeightOnly(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  const TensorInfo& weights = op.inputs[1];
  if (!weights.constant()) return Unsupported("weights that are no constants");
  if (weights.type == kF16) return shape;
  const Quantization& q = weights.quantization;
  const bool scaled =
      q.scales.size() == 1 || (q.axis == 0 && static_cast<int64_t>(q.scales.size()) == shape.units);
  if (!scaled || std::ranges::any_of(q.zero_points, [](int32_t zero) { return zero != 0; })) {
    return Unsupported("does not take weights without a scale for each unit, or with zero points");
  }
  return shape;
}

std::vector<float> WeightOnlyScales(const OpDescription& op, int64_t units) {
  const TensorInfo& weights = op.inputs[1];
  std::vector<float> scales(units, 1.0f);
  if (weights.type == kF16) return scales;
  for (int64_t u = 0; u < units; ++u) {
    scales[u] = weights.quantization.scales[weights.quantization.per_channel() ? u : 0];
  }
  return scales;
}

Result<std::unique_ptr<Kernel>> BuildWeightOnlyReference(const OpDescription& op,
                                                         const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveWeightOnly(op));
  FUSELITE_ASSIGN_OR_RETURN(const FloatTail tail,
                            MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation));
  const Work work{.units = shape.rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.units),
                  .scratch_bytes = shape.units * sizeof(float)};
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  return MakeKernel("fully_connected weight-only reference", work,
                    [=, weights = op.inputs[1], scales = WeightOnlyScales(op, shape.units),
                     output = op.outputs[0],
                     biased = op.has_input(2)](const KernelArgs& args, int64_t begin, int64_t end) {
                      auto* sums = reinterpret_cast<float*>(args.scratch);
                      for (int64_t row = begin; row < end; ++row) {
                        const auto* x = static_cast<const float*>(args.inputs[0]) + row * pitch;
                        for (int64_t u = 0; u < shape.units; ++u) {
                          float sum = 0;
                          for (int64_t d = 0; d < shape.depth; ++d) {
                            sum += x[d] * WeightAt(weights, u * shape.depth + d);
                          }
                          sums[u] = sum * scales[u];
                          if (biased) sums[u] += static_cast<const float*>(args.inputs[2])[u];
                        }
                        StoreFloatRow(tail, args, output, row, sums);
                      }
                    });
}

const OperatorDef& WeightOnlyFullyConnectedOperator() {
  static const OperatorDef kDef = {
      .name = "FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED",
      .max_version = FullyConnectedOperator().max_version,
      .fields = FullyConnectedOperator().fields,
      .params_bytes = sizeof(FullyConnectedParams),
      .min_inputs = 2,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "rank 1 or more; run-time operands: all but weights",
      .infer = InferWeightOnly,
      .candidates = kCandidates,
      .cost = FullyConnectedOperator().cost,
      .takes_tail = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
