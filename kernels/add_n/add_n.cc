// ADD_N: the sum of two or more inputs of one type and shape, added in their order. The compiler
// makes vectors of its loops (this file is compiled with -O3).
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/costs.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {
    {{DataType::kFloat32, DataType::kFloat32}, DataType::kFloat32},
    {{DataType::kInt32, DataType::kInt32}, DataType::kInt32},
};
constexpr int64_t kPiece = 4096;  // elements of a unit

Status InferAddN(OpDescription& op) {
  const TensorInfo& first = op.inputs[0];
  for (const TensorInfo& input : op.inputs) {
    if (input.type != first.type || input.shape != first.shape) {
      return InvalidArgument("operands of ", DataTypeName(first.type), first.shape, " and ",
                             DataTypeName(input.type), input.shape);
    }
  }
  return SetOutput(op, 0, first.type, first.shape);
}

// As LiteRT, which clamps a float's sum to the finite ones and keeps a NaN; integers are left
// alone.
template <class T>
void ClampToFinite(T* values, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr float kMost = std::numeric_limits<float>::max();
    for (int64_t i = 0; i < n; ++i) values[i] = std::min(std::max(values[i], -kMost), kMost);
  }
}

// T: float, or the unsigned integer of the element's width, which may overflow.
template <class T>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const int64_t elements = op.outputs[0].elements();
  return MakeKernel(
      "add_n " + std::string(DataTypeName(op.inputs[0].type)),
      {.units = (elements + kPiece - 1) / kPiece, .grain = 4},
      [elements, count = op.inputs.size()](const KernelArgs& args, int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t first = unit * kPiece, n = std::min(kPiece, elements - first);
          T* out = static_cast<T*>(args.outputs[0]) + first;
          const T* x = static_cast<const T*>(args.inputs[0]) + first;
          const T* y = static_cast<const T*>(args.inputs[1]) + first;
          for (int64_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
          for (size_t k = 2; k < count; ++k) {
            y = static_cast<const T*>(args.inputs[k]) + first;
            for (int64_t i = 0; i < n; ++i) out[i] += y[i];
          }
          ClampToFinite(out, n);
        }
      });
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("ADD_N takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return op.inputs[0].type == DataType::kFloat32 ? BuildOf<float>(op) : BuildOf<uint32_t>(op);
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& AddNOperator() {
  static constexpr OperatorDef kDef = {
      .name = "ADD_N",
      .builtin_code = tflite::kTfLiteBuiltinAddN,
      .options_type = 82,
      .min_inputs = 2,
      .max_inputs = -1,
      .types = kTypes,
      .infer = InferAddN,
      .candidates = kCandidates,
      .cost = ElementsOfTerms,
  };
  return kDef;
}

}  // namespace fuselite::kernels
