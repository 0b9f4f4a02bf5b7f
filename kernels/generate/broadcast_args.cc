#include <algorithm>

#include "kernels/generate/generate.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kI32 = DataType::kInt32, kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {{{kI32, kI32}, kI32}, {{kI64, kI64}, kI64}};

Status InferBroadcastArgs(OpDescription& op) {
  const Shape& a = op.inputs[0].shape;
  const Shape& b = op.inputs[1].shape;
  if (a.rank() != 1 || b.rank() != 1) return InvalidArgument("shapes that are no vectors");
  return SetOutput(op, 0, op.inputs[0].type, Shape{std::max(a[0], b[0])});
}

template <class T>
Status Broadcast(const T* a, int64_t a_rank, const T* b, int64_t b_rank, T* out) {
  const int64_t rank = std::max(a_rank, b_rank);
  for (int64_t d = 0; d < rank; ++d) {
    const T x = d < rank - a_rank ? 1 : a[d - (rank - a_rank)];
    const T y = d < rank - b_rank ? 1 : b[d - (rank - b_rank)];
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("dimensions of ", x, " and ", y, " do not broadcast");
    }
    out[d] = x == 1 ? y : x;
  }
  return Status();
}

constexpr Candidate kCandidates[] = {{"reference", BuildBroadcastArgs}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildBroadcastArgs(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("BROADCAST_ARGS takes no fused tail");
  const auto make = [&]<class T>(T /*zero*/) {
    return MakeKernel("broadcast_args", {},
                      [a = op.inputs[0].elements(), b = op.inputs[1].elements()](
                          const KernelArgs& args, int64_t, int64_t) {
                        return Broadcast(static_cast<const T*>(args.inputs[0]), a,
                                         static_cast<const T*>(args.inputs[1]), b,
                                         static_cast<T*>(args.outputs[0]));
                      });
  };
  return op.inputs[0].type == kI64 ? make(int64_t{}) : make(int32_t{});
}

const OperatorDef& BroadcastArgsOperator() {
  static constexpr OperatorDef kDef = {
      .name = "BROADCAST_ARGS",
      .builtin_code = tflite::kTfLiteBuiltinBroadcastArgs,
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 1",
      .infer = InferBroadcastArgs,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.outputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
