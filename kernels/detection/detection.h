// TFLite_Detection_PostProcess, with which detectors end: boxes decoded from their anchors, and the
// best of those that overlap. Inputs: encodings [1, N, 4 or more] (y, x, h, w), scores
// [1, N, classes, or one more with a background in front], anchors [N, 4] (y, x, h, w). Outputs,
// all float32: boxes [1, D, 4] (top, left, bottom, right), classes [1, D], scores [1, D] and the
// number of detections [1]; D = max_detections * max_classes_per_detection.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct DetectionParams {
  int32_t max_detections, max_classes_per_detection, detections_per_class, num_classes;
  float score_threshold, overlap_threshold;
  float y_scale, x_scale, h_scale, w_scale;
  bool regular;  // class by class; else each box stands for its best classes
};

// The first of equal scores wins. Encodings and anchors are float32 or uint8, scores too. A run
// fails where a decoded box ends before it begins. What lies behind the last detection is 0.
Result<std::unique_ptr<Kernel>> BuildDetection(const OpDescription& op, const BuildContext&);
// The same; vectors find the best label of a box.
Result<std::unique_ptr<Kernel>> BuildDetectionHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
