#include "kernels/detection/detection.h"

#include <limits>

#include "kernels/flexible_map.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kU8 = DataType::kUInt8;
constexpr TypeRow kTypes[] = {
    {{kF32, kF32, kF32}, kF32},
    {{kF32, kU8, kF32}, kF32},
    {{kU8, kF32, kU8}, kF32},
    {{kU8, kU8, kU8}, kF32},
};

Status CheckParams(const DetectionParams& params) {
  const int64_t boxes = int64_t{params.max_detections} * params.max_classes_per_detection;
  if (params.max_detections < 0 || params.max_classes_per_detection < 1 || params.num_classes < 1 ||
      boxes > std::numeric_limits<int32_t>::max() / 4) {
    return InvalidArgument("max_detections ", params.max_detections, ", max_classes_per_detection ",
                           params.max_classes_per_detection, " and num_classes ",
                           params.num_classes, " are not possible");
  }
  if (params.regular && (params.detections_per_class < 1 || params.max_detections < 1)) {
    return InvalidArgument("detections_per_class ", params.detections_per_class,
                           " is not possible");
  }
  if (params.overlap_threshold > 0 && params.overlap_threshold <= 1) return Status();
  return InvalidArgument("nms_iou_threshold is ", params.overlap_threshold, ", not in (0, 1]");
}

Status InferDetection(OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const auto& params = op.params.as<DetectionParams>();
  FUSELITE_RETURN_IF_ERROR(CheckParams(params));
  const Shape& boxes = op.inputs[0].shape;
  const Shape& scores = op.inputs[1].shape;
  const Shape& anchors = op.inputs[2].shape;
  if (boxes.rank() != 3 || scores.rank() != 3 || anchors.rank() != 2 || boxes[0] != 1 ||
      scores[0] != 1 || boxes[2] < 4 || scores[1] != boxes[1] || anchors[0] < boxes[1] ||
      anchors[1] != 4) {
    return InvalidArgument("encodings ", boxes, ", scores ", scores, " and anchors ", anchors,
                           " do not fit together");
  }
  const int32_t background = scores[2] - params.num_classes;
  if (background != 0 && background != 1) {
    return InvalidArgument("scores ", scores, " for ", params.num_classes, " classes");
  }
  const int32_t count = params.max_detections * params.max_classes_per_detection;
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, kF32, {1, count, 4}));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 1, kF32, {1, count}));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 2, kF32, {1, count}));
  return SetOutput(op, 3, kF32, {1});
}

constexpr Candidate kCandidates[] = {{"highway", BuildDetectionHighway},
                                     {"reference", BuildDetection}};

// A map of FlexBuffers, as TensorFlow's exporter writes it.
Status ReadDetectionOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const flexbuffers::Map map, ReadFlexibleMap(options));
  const auto number = [&](const char* key, int32_t otherwise) {
    return map[key].IsNull() ? otherwise : map[key].AsInt32();
  };
  constexpr int32_t kDetectionsPerClass = 100;
  auto& to = *static_cast<DetectionParams*>(params);
  to.max_detections = number("max_detections", 0);
  to.max_classes_per_detection = number("max_classes_per_detection", 0);
  to.detections_per_class = number("detections_per_class", kDetectionsPerClass);
  to.num_classes = number("num_classes", 0);
  to.regular = !map["use_regular_nms"].IsNull() && map["use_regular_nms"].AsBool();
  to.score_threshold = map["nms_score_threshold"].AsFloat();
  to.overlap_threshold = map["nms_iou_threshold"].AsFloat();
  to.y_scale = map["y_scale"].AsFloat();
  to.x_scale = map["x_scale"].AsFloat();
  to.h_scale = map["h_scale"].AsFloat();
  to.w_scale = map["w_scale"].AsFloat();
  return Status();
}

}  // namespace

const OperatorDef& DetectionPostProcessOperator() {
  static constexpr OperatorDef kDef = {
      .name = "TFLite_Detection_PostProcess",
      .read_custom = ReadDetectionOptions,
      .params_bytes = sizeof(DetectionParams),
      .min_inputs = 3,
      .max_inputs = 3,
      .min_outputs = 4,
      .max_outputs = 4,
      .types = kTypes,
      .limits = "rank 3",
      .infer = InferDetection,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return static_cast<double>(op.inputs[1].elements()); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
