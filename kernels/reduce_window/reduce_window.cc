#include "kernels/reduce_window/reduce_window.h"

#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"reduce_function", FieldKind::kInt32, 0, offsetof(ReduceWindowParams, function),
     offsetof(tflite::TfLiteReduceWindowParams, reduce_function)},
};
constexpr TypeRow Row(DataType type) { return {{type, type, DataType::kInt64}, type}; }
constexpr TypeRow kTypes[] = {
    Row(DataType::kFloat32), Row(DataType::kFloat64), Row(DataType::kInt8),  Row(DataType::kUInt8),
    Row(DataType::kInt16),   Row(DataType::kInt32),   Row(DataType::kInt64), Row(DataType::kBool)};

Result<std::vector<WindowDim>> ReadWindow(const OpDescription& op) {
  const int rank = op.inputs[0].shape.rank();
  std::vector<WindowDim> dims(rank);
  for (int input = 2; input < 5; ++input) {
    const TensorInfo& info = op.inputs[input];
    if (info.type != DataType::kInt64 || info.elements() != rank) {
      return InvalidArgument("window, strides and dilations must be ", rank, " of int64");
    }
    // As the host's own kernel wants it.
    if (!info.constant()) return Unsupported("window, strides and dilations are no constants");
    FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                              ReadIntegers(info, "the window", IntegerTypes::kInt32Or64));
    for (int d = 0; d < rank; ++d) {
      (input == 2 ? dims[d].size : input == 3 ? dims[d].stride : dims[d].dilation) = values[d];
    }
  }
  return dims;
}

WindowFunction FunctionOf(const OpDescription& op) {
  return op.params.as<ReduceWindowParams>().function;
}

Status InferReduceWindow(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<WindowDim> window, ReadWindow(op));
  return InferWindows(op, window, FunctionOf(op));
}

constexpr Candidate kCandidates[] = {{"highway", BuildReduceWindowRows},
                                     {"reference", BuildReduceWindow}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildReduceWindow(const OpDescription& op, const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<WindowDim> window, ReadWindow(op));
  return BuildWindows(op, window, FunctionOf(op));
}

Result<std::unique_ptr<Kernel>> BuildReduceWindowRows(const OpDescription& op,
                                                      const BuildContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<WindowDim> window, ReadWindow(op));
  return BuildWindowRows(op, window, FunctionOf(op), context);
}

const OperatorDef& ReduceWindowOperator() {
  static constexpr OperatorDef kDef = {
      .name = "REDUCE_WINDOW",
      .builtin_code = tflite::kTfLiteBuiltinReduceWindow,
      .options_type = kSecondUnion + 20,
      .fields = kFields,
      .params_bytes = sizeof(ReduceWindowParams),
      .struct_bytes = sizeof(tflite::TfLiteReduceWindowParams),
      .min_inputs = 5,
      .max_inputs = 5,
      .types = kTypes,
      .limits = "rank <= 6; run-time operands: the first two",
      .infer = InferReduceWindow,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
