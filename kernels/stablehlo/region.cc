#include "kernels/stablehlo/region.h"

#include "kernels/reduce_window/stablehlo.h"
#include "kernels/stablehlo/scatter.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {
namespace {

bool IsScatter(const OperatorDef& op) {
  return op.builtin_code == tflite::kTfLiteBuiltinStablehloScatter;
}
bool IsReduceWindow(const OperatorDef& op) {
  return op.builtin_code == tflite::kTfLiteBuiltinStablehloReduceWindow;
}

ScatterFunction ScatterFunctionOf(int code) {
  switch (code) {
    case tflite::kTfLiteBuiltinStablehloAdd: return ScatterFunction::kAdd;
    case tflite::kTfLiteBuiltinStablehloMultiply: return ScatterFunction::kMultiply;
    case tflite::kTfLiteBuiltinStablehloMaximum: return ScatterFunction::kMaximum;
    case tflite::kTfLiteBuiltinStablehloMinimum: return ScatterFunction::kMinimum;
    default: return ScatterFunction::kUnknown;
  }
}

WindowFunction WindowFunctionOf(int code) {
  switch (code) {
    case tflite::kTfLiteBuiltinAdd:
    case tflite::kTfLiteBuiltinStablehloAdd: return WindowFunction::kAdd;
    case tflite::kTfLiteBuiltinMul:
    case tflite::kTfLiteBuiltinStablehloMultiply: return WindowFunction::kMul;
    case tflite::kTfLiteBuiltinMaximum:
    case tflite::kTfLiteBuiltinStablehloMaximum: return WindowFunction::kMaximum;
    case tflite::kTfLiteBuiltinMinimum:
    case tflite::kTfLiteBuiltinStablehloMinimum: return WindowFunction::kMinimum;
    case tflite::kTfLiteBuiltinLogicalAnd:
    case tflite::kTfLiteBuiltinStablehloAnd: return WindowFunction::kAll;
    case tflite::kTfLiteBuiltinLogicalOr:
    case tflite::kTfLiteBuiltinStablehloOr: return WindowFunction::kAny;
    default: return WindowFunction::kUnsupported;
  }
}

}  // namespace

std::optional<int> RegionOf(const OperatorDef& op, const Params& params) {
  if (IsScatter(op)) return params.as<ScatterParams>().subgraph;
  if (IsReduceWindow(op)) return params.as<StablehloReduceWindowParams>().subgraph;
  return std::nullopt;
}

Status ReadRegion(const OperatorDef& op, std::span<const int> codes, Params& params) {
  bool known = true;
  if (IsScatter(op)) {
    ScatterFunction& function = params.as<ScatterParams>().function;
    function = codes.empty()       ? ScatterFunction::kUpdate
               : codes.size() == 1 ? ScatterFunctionOf(codes[0])
                                   : ScatterFunction::kUnknown;
    known = function != ScatterFunction::kUnknown;
  } else if (IsReduceWindow(op)) {
    WindowFunction& function = params.as<StablehloReduceWindowParams>().function;
    function = codes.size() == 1 ? WindowFunctionOf(codes[0]) : WindowFunction::kUnsupported;
    known = function != WindowFunction::kUnsupported;
  }
  return known ? Status() : Unsupported("its subgraph is no function that LiteRT knows there");
}

}  // namespace fuselite::kernels
