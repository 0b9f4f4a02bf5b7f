#include "kernels/reduce_window/stablehlo.h"

#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using tflite::TfLiteStablehloReduceWindowParams;
constexpr Field kFields[] = {
    {"window_dimensions", FieldKind::kLongList, 0, offsetof(StablehloReduceWindowParams, sizes),
     offsetof(TfLiteStablehloReduceWindowParams, window_dimensions)},
    {"window_strides", FieldKind::kLongList, 1, offsetof(StablehloReduceWindowParams, strides),
     offsetof(TfLiteStablehloReduceWindowParams, window_strides)},
    {"base_dilations", FieldKind::kLongList, 2,
     offsetof(StablehloReduceWindowParams, base_dilations),
     offsetof(TfLiteStablehloReduceWindowParams, base_dilations)},
    {"window_dilations", FieldKind::kLongList, 3,
     offsetof(StablehloReduceWindowParams, window_dilations),
     offsetof(TfLiteStablehloReduceWindowParams, window_dilations)},
    {"padding", FieldKind::kLongPairs, 4, offsetof(StablehloReduceWindowParams, padding),
     offsetof(TfLiteStablehloReduceWindowParams, padding)},
    {"body_subgraph_index", FieldKind::kInt32, 5, offsetof(StablehloReduceWindowParams, subgraph),
     offsetof(TfLiteStablehloReduceWindowParams, body_subgraph_index)},
};
constexpr TypeRow Row(DataType type) { return {{type, type}, type}; }
constexpr TypeRow kTypes[] = {
    Row(DataType::kFloat32), Row(DataType::kFloat64), Row(DataType::kInt8),  Row(DataType::kUInt8),
    Row(DataType::kInt16),   Row(DataType::kInt32),   Row(DataType::kInt64), Row(DataType::kBool)};

// An entry that the file leaves out is zero, which only a padding may be.
std::vector<WindowDim> ReadWindow(const OpDescription& op) {
  const auto& p = op.params.as<StablehloReduceWindowParams>();
  const auto at = [](const auto& list, int i) -> int64_t {
    return i < list.count ? list.values[i] : 0;
  };
  std::vector<WindowDim> window;
  for (int d = 0; d < op.inputs[0].shape.rank(); ++d) {
    window.push_back({at(p.sizes, d), at(p.strides, d), at(p.window_dilations, d),
                      at(p.base_dilations, d), at(p.padding, 2 * d), at(p.padding, 2 * d + 1)});
  }
  return window;
}

Status InferStablehloReduceWindow(OpDescription& op) {
  return InferWindows(op, ReadWindow(op), op.params.as<StablehloReduceWindowParams>().function);
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  return BuildWindows(op, ReadWindow(op), op.params.as<StablehloReduceWindowParams>().function);
}

Result<std::unique_ptr<Kernel>> BuildRows(const OpDescription& op, const BuildContext& context) {
  return BuildWindowRows(op, ReadWindow(op), op.params.as<StablehloReduceWindowParams>().function,
                         context);
}

constexpr Candidate kCandidates[] = {{"highway", BuildRows}, {"reference", Build}};

}  // namespace

const OperatorDef& StablehloReduceWindowOperator() {
  static constexpr OperatorDef kDef = {
      .name = "STABLEHLO_REDUCE_WINDOW",
      .builtin_code = tflite::kTfLiteBuiltinStablehloReduceWindow,
      .options_type = kSecondUnion + 13,
      .fields = kFields,
      .params_bytes = sizeof(StablehloReduceWindowParams),
      .struct_bytes = sizeof(TfLiteStablehloReduceWindowParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank <= 6; its subgraph is one sum, product, minimum, maximum, AND or OR",
      .infer = InferStablehloReduceWindow,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
