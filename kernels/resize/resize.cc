#include "kernels/resize/resize.h"

#include <algorithm>
#include <cmath>

#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kBilinearFields[] = {
    {"align_corners", FieldKind::kBool, 2, offsetof(ResizeParams, align_corners),
     offsetof(tflite::TfLiteResizeBilinearParams, align_corners)},
    {"half_pixel_centers", FieldKind::kBool, 3, offsetof(ResizeParams, half_pixel_centers),
     offsetof(tflite::TfLiteResizeBilinearParams, half_pixel_centers), -1, 3},
};
constexpr Field kNearestFields[] = {
    {"align_corners", FieldKind::kBool, 0, offsetof(ResizeParams, align_corners),
     offsetof(tflite::TfLiteResizeNearestNeighborParams, align_corners)},
    {"half_pixel_centers", FieldKind::kBool, 1, offsetof(ResizeParams, half_pixel_centers),
     offsetof(tflite::TfLiteResizeNearestNeighborParams, half_pixel_centers), -1, 3},
};

constexpr TypeRow kBilinearTypes[] = {
    {{DataType::kFloat32, DataType::kInt32}, DataType::kFloat32},
    {{DataType::kUInt8, DataType::kInt32}, DataType::kUInt8},
    {{DataType::kInt8, DataType::kInt32}, DataType::kInt8},
    {{DataType::kInt16, DataType::kInt32}, DataType::kInt16},
};

constexpr std::span<const TypeRow> kNearestTypes =
    kAlikeRows<DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16, DataType::kInt8,
               DataType::kUInt8, DataType::kInt16, DataType::kUInt16, DataType::kInt32,
               DataType::kUInt32, DataType::kBool>;

constexpr Candidate kBilinearCandidates[] = {
    {"separable", BuildResizeBilinearSeparable},
    {"highway", BuildResizeBilinearHighway},
    {"reference", BuildResizeBilinearReference},
};
constexpr Candidate kNearestCandidates[] = {{"reference", BuildResizeNearest}};

}  // namespace

Status InferResize(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() != 4) return Unsupported("the input's rank is not 4");
  if (op.inputs[1].shape != Shape{2}) {
    return InvalidArgument("the size has shape ", op.inputs[1].shape, ", expected [2]");
  }
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                            ReadIntegers(op.inputs[1], "the size", IntegerTypes::kInt32));
  if (size[0] <= 0 || size[1] <= 0 || in.shape[1] <= 0 || in.shape[2] <= 0) {
    return InvalidArgument("cannot resize ", in.shape, " to ", size[0], " x ", size[1]);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape({in.shape[0], size[0], size[1], in.shape[3]}));
  return SetOutput(op, 0, in.type, shape);
}

Status InferInterpolation(OpDescription& op) {
  const auto& params = op.params.as<ResizeParams>();
  if (params.align_corners && params.half_pixel_centers) {
    return InvalidArgument("align_corners and half_pixel_centers exclude each other");
  }
  return InferResize(op);
}

float ResizeScale(int32_t in, int32_t out, bool align_corners) {
  return align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                  : static_cast<float>(in) / static_cast<float>(out);
}

std::vector<Tap> BilinearTaps(int32_t in, int32_t out, ResizeParams params) {
  const float scale = ResizeScale(in, out, params.align_corners);
  std::vector<Tap> taps(out);
  for (int32_t o = 0; o < out; ++o) {
    const auto position = static_cast<float>(o);
    const float at =
        params.half_pixel_centers ? (position + 0.5f) * scale - 0.5f : position * scale;
    // Rounding could reach past the last pixel; TFLite would read there.
    const auto low = std::clamp(static_cast<int32_t>(std::floor(at)), 0, in - 1);
    const auto high = std::clamp(static_cast<int32_t>(std::ceil(at)), 0, in - 1);
    taps[o] = {low, high, at - static_cast<float>(low)};
  }
  return taps;
}

std::vector<FixedTap> FixedBilinearTaps(int32_t in, int32_t out, ResizeParams params) {
  constexpr int64_t kOne = 1 << 10;
  if (out == 0) return {};
  int64_t scale = (kOne * in + out / 2) / out;
  if (params.align_corners && out > 1) scale = (kOne * (in - 1) + (out - 1) / 2) / (out - 1);
  std::vector<FixedTap> taps(out);
  for (int32_t o = 0; o < out; ++o) {
    int64_t at = o * scale;
    if (params.half_pixel_centers) at += scale / 2 - kOne / 2;
    const int64_t low = std::clamp<int64_t>(at / kOne, 0, in - 1);
    const int64_t high = std::clamp<int64_t>((at + kOne - 1) / kOne, 0, in - 1);
    taps[o] = {static_cast<int32_t>(low), static_cast<int32_t>(high),
               static_cast<int32_t>(at - kOne * low)};
  }
  return taps;
}

std::vector<int32_t> NearestTaps(int32_t in, int32_t out, ResizeParams params) {
  const float scale = ResizeScale(in, out, params.align_corners);
  const float offset = params.half_pixel_centers ? 0.5f : 0.0f;
  std::vector<int32_t> taps(out);
  for (int32_t o = 0; o < out; ++o) {
    const float at = (static_cast<float>(o) + offset) * scale;
    const float nearest = params.align_corners ? std::round(at) : std::floor(at);
    taps[o] = std::clamp(static_cast<int32_t>(nearest), 0, in - 1);
  }
  return taps;
}

const OperatorDef& ResizeBilinearOperator() {
  static constexpr OperatorDef kDef = {
      .name = "RESIZE_BILINEAR",
      .builtin_code = tflite::kTfLiteBuiltinResizeBilinear,
      .options_type = 15,
      .max_version = 4,
      .fields = kBilinearFields,
      .params_bytes = sizeof(ResizeParams),
      .struct_bytes = sizeof(tflite::TfLiteResizeBilinearParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kBilinearTypes,
      .limits = "rank 4",
      .infer = InferInterpolation,
      .candidates = kBilinearCandidates,
      .cost = [](const OpDescription& op) { return 4.0 * op.outputs[0].elements(); },
      .samples = SampleRule::kApart,
  };
  return kDef;
}

const OperatorDef& ResizeNearestNeighborOperator() {
  static constexpr OperatorDef kDef = {
      .name = "RESIZE_NEAREST_NEIGHBOR",
      .builtin_code = tflite::kTfLiteBuiltinResizeNearestNeighbor,
      .options_type = 74,
      .max_version = 4,
      .fields = kNearestFields,
      .params_bytes = sizeof(ResizeParams),
      .struct_bytes = sizeof(tflite::TfLiteResizeNearestNeighborParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kNearestTypes,
      .limits = "rank 4",
      .infer = InferResize,
      .candidates = kNearestCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.outputs[0].elements(); },
      .selects = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
