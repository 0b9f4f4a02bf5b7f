#include "kernels/select/select.h"

#include <algorithm>

#include "kernels/costs.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/by_element_bytes.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kBool}, DataType::kNone}};

// SELECT's condition of one dimension stands for whole slices of the outermost one: it is described
// as a tensor of as many dimensions as the output.
TensorInfo ConditionOf(const OpDescription& op) {
  TensorInfo condition = op.inputs[0];
  if (op.op->builtin_code == tflite::kTfLiteBuiltinSelect && condition.shape.rank() == 1 &&
      op.outputs[0].shape.rank() > 1 && condition.row_pitch == 0) {
    for (int d = 1; d < op.outputs[0].shape.rank(); ++d) condition.shape.push_back(1);
  }
  return condition;
}

Status CheckSelect(const OpDescription& op) {
  const Shape& condition = op.inputs[0].shape;
  const Shape& x = op.inputs[1].shape;
  if (x != op.inputs[2].shape) {
    return InvalidArgument("the operands to select from are ", x, " and ", op.inputs[2].shape);
  }
  const bool slices = condition.rank() == 1 && x.rank() > 0 && condition[0] == x[0];
  if (condition == x || condition.rank() == 0 || slices) return Status();
  return InvalidArgument("a condition of ", condition, " for operands of ", x);
}

// The host keeps the shape that the file states where there is one element, whatever the ranks.
bool IsOneElement(const OpDescription& op) {
  const auto one = [](const TensorInfo& info) { return info.elements() == 1; };
  return std::ranges::all_of(op.inputs, one) && !op.outputs[0].absent() && one(op.outputs[0]);
}

Status InferSelect(OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  const TensorInfo& x = op.inputs[1];
  const TensorInfo& y = op.inputs[2];
  if (x.type != y.type) {
    return InvalidArgument("operands of ", DataTypeName(x.type), " and ", DataTypeName(y.type));
  }
  FUSELITE_ASSIGN_OR_RETURN(const int bytes, ElementBytes(x.type));
  if (bytes > 8) return Unsupported("does not take elements of ", bytes, " bytes");
  if (IsOneElement(op)) return SetOutput(op, 0, x.type, op.outputs[0].shape);
  if (op.op->builtin_code == tflite::kTfLiteBuiltinSelect) {
    FUSELITE_RETURN_IF_ERROR(CheckSelect(op));
    return SetOutput(op, 0, x.type, x.shape);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(x.shape, y.shape));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(op.inputs[0].shape, both));
  const bool broadcasts = x.shape != y.shape || op.inputs[0].shape != x.shape;
  if (broadcasts && shape.rank() > 8) {
    return InvalidArgument("broadcasts to rank ", shape.rank(), ", expected 8 at most");
  }
  return SetOutput(op, 0, x.type, shape);
}

template <class T>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const BroadcastPlan plan = PlanSelect(op);
  return MakeKernel(
      "select " + std::string(DataTypeName(op.inputs[1].type)),
      {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
      [plan](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          const auto* c = static_cast<const uint8_t*>(args.inputs[0]) + piece.offsets[0];
          const auto* x = static_cast<const T*>(args.inputs[1]) + piece.offsets[1];
          const auto* y = static_cast<const T*>(args.inputs[2]) + piece.offsets[2];
          auto* out = static_cast<T*>(args.outputs[0]) + piece.offsets[3];
          for (int64_t i = 0; i < piece.count; ++i) {
            out[i] = c[i * plan.stride(0)] ? x[i * plan.stride(1)] : y[i * plan.stride(2)];
          }
        });
      });
}

Result<std::unique_ptr<Kernel>> BuildSelect(const OpDescription& op, const BuildContext&) {
  return ByElementBytes(op.inputs[1].type, [&]<class T>() { return BuildOf<T>(op); });
}

constexpr Candidate kCandidates[] = {{"highway", BuildSelectHighway}, {"reference", BuildSelect}};

constexpr OperatorDef MakeSelect(std::string_view name, int code, int options_type,
                                 int max_version) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.max_version = max_version;
  def.min_inputs = def.max_inputs = 3;
  def.types = kTypes;
  def.limits = "elements of 1, 2, 4 or 8 bytes; broadcasts to rank 8 at most";
  def.infer = InferSelect;
  def.candidates = kCandidates;
  def.cost = OutputElements;
  def.pointwise = true;
  return def;
}

}  // namespace

BroadcastPlan PlanSelect(const OpDescription& op) {
  const TensorInfo scalar{.type = op.outputs[0].type};
  if (IsOneElement(op)) return BroadcastPlan({&scalar, &scalar, &scalar, &scalar}, false);
  const TensorInfo condition = ConditionOf(op);
  return BroadcastPlan({&condition, &op.inputs[1], &op.inputs[2], &op.outputs[0]},
                       /*keep_rows=*/false);
}

const OperatorDef& SelectOperator() {
  static constexpr OperatorDef kDef = MakeSelect("SELECT", tflite::kTfLiteBuiltinSelect, 47, 4);
  return kDef;
}

const OperatorDef& SelectV2Operator() {
  static constexpr OperatorDef kDef =
      MakeSelect("SELECT_V2", tflite::kTfLiteBuiltinSelectV2, 98, 2);
  return kDef;
}

}  // namespace fuselite::kernels
