#include "kernels/pool/pool.h"

#include <cmath>

#include "kernels/check_tail.h"
#include "kernels/numbers/quantization.h"
#include "kernels/rows/along_one_line.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"padding", FieldKind::kPadding, 0, offsetof(PoolParams, padding),
     offsetof(tflite::TfLitePoolParams, padding)},
    {"stride_w", FieldKind::kInt32, 1, offsetof(PoolParams, stride_w),
     offsetof(tflite::TfLitePoolParams, stride_width)},
    {"stride_h", FieldKind::kInt32, 2, offsetof(PoolParams, stride_h),
     offsetof(tflite::TfLitePoolParams, stride_height)},
    {"filter_width", FieldKind::kInt32, 3, offsetof(PoolParams, filter_width),
     offsetof(tflite::TfLitePoolParams, filter_width)},
    {"filter_height", FieldKind::kInt32, 4, offsetof(PoolParams, filter_height),
     offsetof(tflite::TfLitePoolParams, filter_height)},
    {"fused_activation_function", FieldKind::kActivation, 5, offsetof(PoolParams, activation),
     offsetof(tflite::TfLitePoolParams, activation)},
};

constexpr TypeRow Same(DataType type) { return {{type}, type}; }
constexpr TypeRow kTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt8),
                              Same(DataType::kUInt8), Same(DataType::kInt16)};
constexpr TypeRow kFloat[] = {Same(DataType::kFloat32)};

Status CheckQuantization(const OpDescription& op) {
  const Quantization& in = op.inputs[0].quantization;
  const Quantization& out = op.outputs[0].quantization;
  if (std::abs(in.scale() - out.scale()) > 1e-6f || in.zero_point() != out.zero_point()) {
    return Unsupported("input and output have different scales or zero points");
  }
  int32_t min, max;
  return QuantizedActivationRange(op.params.as<PoolParams>().activation, op.inputs[0].type, out,
                                  &min, &max);
}

Status InferPool(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePool(op));
  const Shape out({shape.batch, shape.window.y.output, shape.window.x.output, shape.channels});
  if (in.type != DataType::kFloat32) FUSELITE_RETURN_IF_ERROR(CheckQuantization(op));
  float low, high;
  if (!ActivationRange(op.params.as<PoolParams>().activation, &low, &high)) {
    return Unsupported("does not take a fused activation other than a clamp");
  }
  if (op.tail.empty()) return SetOutput(op, 0, in.type, out);
  if (in.type != DataType::kFloat32)
    return Unsupported("does not take a tail behind a quantized pool");
  op.outputs[0].shape = out;
  return CheckTail(op, in.type);
}

double PoolCost(const OpDescription& op) {
  const auto& params = op.params.as<PoolParams>();
  return static_cast<double>(op.outputs[0].elements()) * params.filter_width * params.filter_height;
}

constexpr Candidate kCandidates[] = {
    Candidate::OfBFloat16("highway", BuildPoolHighway),
    {"reference", BuildPoolReference},
};

constexpr OperatorDef MakePool(std::string_view name, int code, PoolKind kind, int max_version,
                               std::span<const TypeRow> types) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = 5;
  def.max_version = max_version;
  def.fields = kFields;
  def.params_bytes = sizeof(PoolParams);
  def.struct_bytes = sizeof(tflite::TfLitePoolParams);
  def.types = types;
  def.limits = "rank 4";
  def.infer = InferPool;
  def.candidates = kCandidates;
  def.cost = PoolCost;
  def.window = [](const OpDescription& op) -> Result<Window> {
    FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePool(op));
    return shape.window;
  };
  def.set_window = SetWindow<PoolParams>;
  def.takes_tail = def.bfloat16_values = kind != PoolKind::kL2;
  def.selects = kind == PoolKind::kMax;
  def.samples = SampleRule::kApart;
  return def;
}

}  // namespace

PoolKind PoolKindOf(const OperatorDef& op) {
  if (op.builtin_code == tflite::kTfLiteBuiltinMaxPool2d) return PoolKind::kMax;
  return op.builtin_code == tflite::kTfLiteBuiltinL2Pool2d ? PoolKind::kL2 : PoolKind::kAverage;
}

Result<PoolShape> ResolvePool(const OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  const auto& params = op.params.as<PoolParams>();
  if (in.rank() != 4) return InvalidArgument("input ", in, " must have 4 dimensions");
  PoolShape shape;
  shape.batch = in[0];
  shape.channels = in[3];
  FUSELITE_ASSIGN_OR_RETURN(shape.window, ResolveWindow({.input_h = in[1],
                                                         .input_w = in[2],
                                                         .filter_h = params.filter_height,
                                                         .filter_w = params.filter_width,
                                                         .stride_h = params.stride_h,
                                                         .stride_w = params.stride_w,
                                                         .padding = params.padding,
                                                         .extra = params.extra_padding,
                                                         .none_in_too_small = true}));
  // The taps must fit into 32 bits, and a mean's integer sum with half of its count, too.
  const DataType type = op.inputs[0].type;
  const bool mean = PoolKindOf(*op.op) == PoolKind::kAverage && type != DataType::kFloat32;
  const int64_t most = !mean ? 1 << 30 : type == DataType::kInt16 ? kMostSummedTaps : 1 << 23;
  if (int64_t{params.filter_height} * params.filter_width > most) {
    return Unsupported("a window of ", params.filter_height, " x ", params.filter_width,
                       " is too large");
  }
  return shape;
}

Result<PoolShape> ResolvePoolAlongLines(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(PoolShape shape, ResolvePool(op));
  shape.window = WholeRowsAlongOneLine(shape.window);
  return shape;
}

Result<PoolRange> PoolRangeOf(const OpDescription& op) {
  const Activation activation = op.params.as<PoolParams>().activation;
  const DataType type = op.inputs[0].type;
  PoolRange range{};
  if (type == DataType::kFloat32) {
    ActivationRange(activation, &range.low, &range.high);
    return range;
  }
  int32_t low, high, min, max;
  FUSELITE_RETURN_IF_ERROR(
      QuantizedActivationRange(activation, type, op.outputs[0].quantization, &low, &high));
  QuantizedTypeRange(type, &min, &max);
  if (low > max || high < min) return Unsupported("an activation that leaves nothing");
  return PoolRange{static_cast<float>(low), static_cast<float>(high)};
}

Status CheckSummedTaps(const OpDescription& op, const PoolShape& shape) {
  const DataType type = op.inputs[0].type;
  const int32_t taps = shape.window.taps();
  const bool sums_integers = PoolKindOf(*op.op) != PoolKind::kMax && type != DataType::kFloat32;
  if (!sums_integers || taps <= kMostSummedTaps) return Status();
  return Unsupported("does not take a mean of ", taps, " values of type ", DataTypeName(type));
}

const OperatorDef& AveragePool2DOperator() {
  static constexpr OperatorDef kDef = MakePool(
      "AVERAGE_POOL_2D", tflite::kTfLiteBuiltinAveragePool2d, PoolKind::kAverage, 3, kTypes);
  return kDef;
}

const OperatorDef& L2Pool2DOperator() {
  static constexpr OperatorDef kDef =
      MakePool("L2_POOL_2D", tflite::kTfLiteBuiltinL2Pool2d, PoolKind::kL2, 1, kFloat);
  return kDef;
}

const OperatorDef& MaxPool2DOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def =
        MakePool("MAX_POOL_2D", tflite::kTfLiteBuiltinMaxPool2d, PoolKind::kMax, 3, kTypes);
    def.extra_padding = [](Params& params) -> ExtraPadding& {
      return params.as<PoolParams>().extra_padding;
    };
    return def;
  }();
  return kDef;
}

}  // namespace fuselite::kernels
