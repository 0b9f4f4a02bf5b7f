// Networks for pictures that give more than a class: boxes (Liu et al. 2016, on depthwise-separable
// blocks) and a mask (Ronneberger et al. 2015, with the residual PRELU blocks of Bazarevsky et al.
// 2019).
#include <utility>
#include <vector>

#include "tools/zoo/net_builder.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using kernels::Activation;

constexpr int32_t kAnchorsOfCell = 3, kObjects = 10;

Net SeparableBlock(NetBuilder& net, const Net& x, int32_t channels, int32_t stride) {
  return net.Conv(net.Depthwise(x, 3, stride, Activation::kRelu6), channels, 1, 1,
                  Activation::kRelu6);
}

// A head's values for each anchor of a feature map: [1, anchors, values].
Net ForAnchors(NetBuilder& net, const Net& x, int32_t values) {
  const Net head = net.Conv(x, kAnchorsOfCell * values, 3, 1, Activation::kNone);
  const int32_t anchors = x.shape[1] * x.shape[2] * kAnchorsOfCell;
  return net.Apply("RESHAPE", {head, net.IntConstant("shape", {1, anchors, values})});
}

// Boxes (y, x, height, width) around the middles of the cells of square maps, as parts of the
// picture.
std::vector<float> Anchors(const std::vector<Net>& maps) {
  std::vector<float> anchors;
  for (const Net& map : maps) {
    const auto side = static_cast<float>(map.shape[1]);
    for (int32_t cell = 0; cell < map.shape[1] * map.shape[2]; ++cell) {
      const int32_t row = cell / map.shape[2], column = cell % map.shape[2];
      for (const auto& [height, width] : {std::pair(1, 1), {1, 2}, {2, 1}}) {
        anchors.insert(
            anchors.end(),
            {(static_cast<float>(row) + 0.5f) / side, (static_cast<float>(column) + 0.5f) / side,
             1.5f * static_cast<float>(height) / side, 1.5f * static_cast<float>(width) / side});
      }
    }
  }
  return anchors;
}

Net Prelu(NetBuilder& net, const Net& x) {
  const int32_t channels = x.shape.dim(-1);
  return net.Apply(
      "PRELU", {x, net.Constant("slopes", {1, 1, channels}, std::vector<float>(channels, 0.25f))});
}

// Depthwise 5x5 and pointwise, added to what came in; with a stride to its largest values, with
// channels of zeros where there are more than came in.
Net FaceBlock(NetBuilder& net, const Net& x, int32_t channels, int32_t stride) {
  const Net y =
      net.Conv(net.Depthwise(x, 5, stride, Activation::kNone), channels, 1, 1, Activation::kNone);
  Net shortcut = x;
  if (stride > 1) {
    shortcut = net.Apply("MAX_POOL_2D", {x},
                         {{"padding", static_cast<double>(kernels::Padding::kSame)},
                          {"stride_w", stride},
                          {"stride_h", stride},
                          {"filter_width", stride},
                          {"filter_height", stride}});
  }
  if (const int32_t more = channels - x.shape.dim(-1); more > 0) {
    shortcut = net.Apply("PAD", {shortcut, net.Pairs("paddings", {0, 0, 0, 0, 0, 0, 0, more})});
  }
  return Prelu(net, net.Add(shortcut, y));
}

// Twice as high and wide, joined with what the way down had at that size.
Net Up(NetBuilder& net, const Net& x, const Net& skip) {
  const Net larger =
      net.Apply("RESIZE_BILINEAR", {x, net.IntConstant("size", {skip.shape[1], skip.shape[2]})},
                {{"half_pixel_centers", 1}});
  const Net joined = net.Apply("CONCATENATION", {larger, skip}, {{"axis", 3}});
  return Prelu(net, net.Conv(joined, skip.shape.dim(-1), 3, 1, Activation::kNone));
}

}  // namespace

std::vector<std::byte> BuildDetector(uint64_t seed) {
  constexpr int32_t kDetections = 10;
  NetBuilder net("single-shot detector, seeded weights", seed);
  Net x = net.Conv(net.Input("image", {1, 128, 128, 3}), 16, 3, 2, Activation::kRelu6);
  for (const auto& [channels, stride] : {std::pair(32, 2), {32, 1}, {64, 2}, {64, 1}}) {
    x = SeparableBlock(net, x, channels, stride);
  }
  const std::vector<Net> maps = {x, SeparableBlock(net, x, 128, 2)};
  std::vector<Net> boxes, scores;
  for (const Net& map : maps) {
    boxes.push_back(ForAnchors(net, map, 4));
    scores.push_back(ForAnchors(net, map, kObjects + 1));
  }
  const Net encodings = net.Apply("CONCATENATION", boxes, {{"axis", 1}});
  const Net probabilities =
      net.Apply("LOGISTIC", {net.Apply("CONCATENATION", scores, {{"axis", 1}})});
  const Net anchors = net.Constant("anchors", {encodings.shape[1], 4}, Anchors(maps));
  const std::vector<Net> found =
      net.Custom("TFLite_Detection_PostProcess", {encodings, probabilities, anchors},
                 {{1, kDetections, 4}, {1, kDetections}, {1, kDetections}, {1}},
                 {{"max_detections", kDetections},
                  {"max_classes_per_detection", 1},
                  {"detections_per_class", 100},
                  {"use_regular_nms", 0},
                  {"nms_score_threshold", 0.3},
                  {"nms_iou_threshold", 0.6},
                  {"num_classes", kObjects},
                  {"y_scale", 10},
                  {"x_scale", 10},
                  {"h_scale", 5},
                  {"w_scale", 5}});
  net.End("serving_default",
          {{"boxes", found[0]}, {"classes", found[1]}, {"scores", found[2]}, {"count", found[3]}});
  return net.Finish();
}

std::vector<std::byte> BuildSegmenter(uint64_t seed) {
  NetBuilder net("U-Net of residual PRELU blocks, seeded weights", seed);
  const Net image = net.Input("image", {1, 128, 128, 3});
  const Net half = Prelu(net, net.Conv(image, 16, 3, 2, Activation::kNone));
  const Net quarter = FaceBlock(net, FaceBlock(net, half, 32, 2), 32, 1);
  const Net eighth = FaceBlock(net, FaceBlock(net, quarter, 64, 2), 64, 1);
  const Net x = Up(net, Up(net, eighth, quarter), half);
  const Net weights = net.Random("mask_weights", {1, 2, 2, x.shape.dim(-1)}, x.shape.dim(-1));
  const Net logits =
      net.Apply("TRANSPOSE_CONV", {net.IntConstant("mask_shape", {1, 128, 128, 1}), weights, x},
                {{"padding", static_cast<double>(kernels::Padding::kSame)},
                 {"stride_w", 2},
                 {"stride_h", 2}});
  return net.Finish(net.Apply("LOGISTIC", {logits}));
}

}  // namespace fuselite::tools
