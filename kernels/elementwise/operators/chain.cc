// FUSELITE_ELEMENTWISE: the input itself, then the tail. What rewrites make of functions that no
// operator of TFLite stands for, and of chains of elementwise operators.
#include "kernels/elementwise/bytes/byte_map.h"
#include "kernels/elementwise/elementwise.h"

namespace fuselite::kernels {
namespace {

// The output's type is what the tail gives.
constexpr TypeRow kTypes[] = {
    {{DataType::kFloat32}, DataType::kNone}, {{DataType::kInt32}, DataType::kNone},
    {{DataType::kInt8}, DataType::kNone},    {{DataType::kUInt8}, DataType::kNone},
    {{DataType::kInt16}, DataType::kNone},
};

Status InferElementwise(OpDescription& op) {
  return SetElementwiseOutput(op, op.inputs[0].type, op.inputs[0].shape);
}

template <TailCandidate kCandidate>
Result<KernelPlan> PlanElementwise(const OpDescription& op, const PlanContext& context) {
  // One table, as a requantization becomes one: those often follow a line.
  const bool table = op.tail.stages.size() == 1 && BitWidth(op.inputs[0].type) == 8 &&
                     BitWidth(op.outputs[0].type) == 8 &&
                     op.tail.stages[0].kind == TailStage::Kind::kLookup;
  if (kCandidate == TailCandidate::kHighway && table) {
    return PlanByteMap(op, "elementwise " + std::string(DataTypeName(op.inputs[0].type)),
                       op.inputs[0].quantization.zero_point(), context.isa,
                       [](const OpDescription& described) -> Result<std::vector<uint8_t>> {
                         const auto& entries = described.tail.stages[0].table;
                         return std::vector<uint8_t>(entries.begin(), entries.end());
                       });
  }
  return OwnPlan(BuildTailKernel("elementwise", op, context, Tail{}, 0, kCandidate));
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanElementwise<TailCandidate::kHighway>},
    {"reference", PlanElementwise<TailCandidate::kReference>},
};

}  // namespace

const OperatorDef& ElementwiseOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FUSELITE_ELEMENTWISE",
      .types = kTypes,
      .infer = InferElementwise,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return static_cast<double>(op.inputs[0].elements()); },
      .elementwise = true,
      .bfloat16_values = true,
      .pointwise = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
