#include "kernels/transpose/transpose.h"

#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

Result<std::vector<int64_t>> ReadPermutation(const OpDescription& op) {
  const int rank = op.inputs[0].shape.rank();
  FUSELITE_ASSIGN_OR_RETURN(std::vector<int64_t> perm,
                            ReadIntegers(op.inputs[1], "the permutation", IntegerTypes::kInt32));
  if (static_cast<int>(perm.size()) != rank) {
    return InvalidArgument("the permutation has ", perm.size(), " entries for rank ", rank);
  }
  unsigned seen = 0;
  for (int64_t& p : perm) {
    FUSELITE_ASSIGN_OR_RETURN(p, ResolveAxis(p, rank));
    if (seen & (1u << p)) return InvalidArgument("the permutation names axis ", p, " twice");
    seen |= 1u << p;
  }
  return perm;
}

Status InferTranspose(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() > 8) return InvalidArgument("rank ", in.shape.rank(), ", expected 8 at most");
  if (in.type == DataType::kInt2) return Unsupported("does not take elements of type int2");
  FUSELITE_RETURN_IF_ERROR(RequireSized(in.type));
  FUSELITE_RETURN_IF_ERROR(RequireAtMost8Bytes(in.type));
  FUSELITE_RETURN_IF_ERROR(RequireOutputType(op, 0, in.type));
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, ReadPermutation(op));
  Shape shape;
  for (int64_t p : perm) shape.push_back(in.shape[static_cast<int>(p)]);
  return SetOutput(op, 0, in.type, shape);
}

}  // namespace

Result<Movement> PlanTranspose(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, ReadPermutation(op));
  CopyPart part = MakePart(op, 0, 0);
  const auto from = ByteStrides(op.inputs[0]);
  const auto to = ByteStrides(op.outputs[0]);
  for (size_t d = 0; d < perm.size(); ++d) {
    part.copy.Add(op.outputs[0].shape[static_cast<int>(d)], from[perm[d]], to[d]);
  }
  return Movement{{part}};
}

const OperatorDef& TransposeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "TRANSPOSE",
      .builtin_code = tflite::kTfLiteBuiltinTranspose,
      .options_type = 26,
      .max_version = 9,
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "rank <= 8; any type but string, int2 and complex128",
      .infer = InferTranspose,
      .candidates = kMovementCandidates<PlanTranspose>,
      .cost = MovementCost,
      .selects = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
