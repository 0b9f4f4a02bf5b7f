#include "kernels/where/where.h"

#include "kernels/make_kernel.h"
#include "kernels/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {
    {{DataType::kBool}, kI64},
    {{DataType::kFloat32}, kI64},
    {{DataType::kInt8}, kI64},
    {{DataType::kUInt8}, kI64},
    {{DataType::kInt32}, kI64},
    {{DataType::kUInt32}, kI64},
    {{kI64}, kI64},
};

bool IsTrue(DataType type, const void* data, int64_t i) {
  switch (BitWidth(type)) {
    case 8: return LoadUnaligned<uint8_t>(data, i) != 0;
    case 64: return LoadUnaligned<uint64_t>(data, i) != 0;
    default:
      return type == DataType::kFloat32 ? LoadUnaligned<float>(data, i) != 0  // -0 is 0
                                        : LoadUnaligned<uint32_t>(data, i) != 0;
  }
}

Status InferWhere(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() < 1) return Unsupported("the condition is a scalar");
  if (!in.constant() && in.elements() > 0) {
    return DynamicShape("the number of true elements is known at run time only");
  }
  int64_t count = 0;
  for (int64_t i = 0; i < in.elements(); ++i) count += IsTrue(in.type, in.data, i);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({count, in.shape.rank()}));
  return SetOutput(op, 0, kI64, shape);
}

constexpr Candidate kCandidates[] = {{"reference", BuildWhere}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildWhere(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("WHERE takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return MakeKernel("where", {},
                    [in = op.inputs[0], count = int64_t{op.outputs[0].shape[0]}](
                        const KernelArgs& args, int64_t, int64_t) -> Status {
                      auto* out = static_cast<int64_t*>(args.outputs[0]);
                      const int rank = in.shape.rank();
                      int64_t found = 0;
                      for (int64_t i = 0; i < in.elements(); ++i) {
                        if (!IsTrue(in.type, args.inputs[0], i)) continue;
                        if (found == count)
                          return InvalidArgument("more elements are true than were counted");
                        int64_t rest = i;
                        for (int d = rank - 1; d >= 0; --d) {
                          out[found * rank + d] = rest % in.shape[d];
                          rest /= in.shape[d];
                        }
                        ++found;
                      }
                      if (found != count)
                        return InvalidArgument("fewer elements are true than were counted");
                      return Status();
                    });
}

const OperatorDef& WhereOperator() {
  static const OperatorDef kDef = {
      .name = "WHERE",
      .builtin_code = tflite::kTfLiteBuiltinWhere,
      .options_type = 85,
      .max_version = 2,
      .types = kTypes,
      .limits = "rank 1 or more; one operand",
      .infer = InferWhere,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
