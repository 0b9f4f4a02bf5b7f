#include "kernels/tensorflow/bicubic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/tensorflow/node_def.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kFloat32, DataType::kInt32}, DataType::kFloat32}};

// Of the kernel of Keys: up to one pixel away, and from one to two.
float NearWeight(double x, double a) {
  return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
}
float FarWeight(double x, double a) {
  return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

// The weights of the pixels at -1, 0, 1 and 2 of a place between 0 and 1.
std::array<float, 4> CubicWeights(float place, double a) {
  constexpr float kSteps = 1024;
  const float x = std::nearbyint(place * kSteps) / kSteps;
  return {FarWeight(x + 1, a), NearWeight(x, a), NearWeight(1 - x, a), FarWeight(2 - x, a)};
}

// Pixels outside of an image of `in` have no weight.
void KeepInside(int32_t in, CubicTaps& taps) {
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    if (taps.first + k < 0 || taps.first + k >= in) taps.weights[k] = 0;
    sum += taps.weights[k];
  }
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) return;
  for (float& weight : taps.weights) weight *= 1 / sum;
}

// A unit is a row of the output.
class Bicubic {
 public:
  explicit Bicubic(const OpDescription& op)
      : shape_(op),
        ys_(CubicTapsOf(shape_.in_h, shape_.out_h, op.params.as<ResizeParams>())),
        xs_(CubicTapsOf(shape_.in_w, shape_.out_w, op.params.as<ResizeParams>())) {}

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* const in = static_cast<const float*>(args.inputs[0]);
    auto* out = static_cast<float*>(args.outputs[0]) + begin * shape_.out_w * shape_.channels;
    for (int64_t row = begin; row < end; ++row) {
      const float* image = in + row / shape_.out_h * shape_.in_h * shape_.in_w * shape_.channels;
      const CubicTaps& y = ys_[row % shape_.out_h];
      for (const CubicTaps& x : xs_) {
        for (int64_t c = 0; c < shape_.channels; ++c) *out++ = Interpolate(image + c, y, x);
      }
    }
  }

 private:
  // Of one channel: along columns, then along the row.
  float Interpolate(const float* image, const CubicTaps& y, const CubicTaps& x) const {
    float total = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t column = std::clamp(x.first + i, 0, shape_.in_w - 1);
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        const int64_t row = std::clamp(y.first + k, 0, shape_.in_h - 1);
        sum += y.weights[k] * image[(row * shape_.in_w + column) * shape_.channels];
      }
      total += x.weights[i] * sum;
    }
    return total;
  }

  ResizeShape shape_;
  std::vector<CubicTaps> ys_, xs_;
};

constexpr Candidate kCandidates[] = {{"highway", PlanBicubicHighway},
                                     {"reference", BuildBicubicReference}};

// Reads TensorFlow's attributes `align_corners` and `half_pixel_centers` into ResizeParams.
Status ReadBicubicOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const NodeDef node, NodeDef::Read(options));
  auto& to = *static_cast<ResizeParams*>(params);
  to.align_corners = node.Flag("align_corners").value_or(false);
  to.half_pixel_centers = node.Flag("half_pixel_centers").value_or(false);
  return Status();
}

}  // namespace

std::vector<CubicTaps> CubicTapsOf(int32_t in, int32_t out, ResizeParams params) {
  const float scale = ResizeScale(in, out, params.align_corners);
  std::vector<CubicTaps> taps(out);
  for (int32_t o = 0; o < out; ++o) {
    const auto position = static_cast<float>(o);
    const float at =
        params.half_pixel_centers ? (position + 0.5f) * scale - 0.5f : position * scale;
    const float low = std::floor(at);
    taps[o] = {std::clamp(static_cast<int32_t>(low), -1, in - 1) - 1,
               CubicWeights(at - low, params.half_pixel_centers ? -0.5 : -0.75)};
    if (params.half_pixel_centers) KeepInside(in, taps[o]);
  }
  return taps;
}

Result<std::unique_ptr<Kernel>> BuildBicubicReference(const OpDescription& op,
                                                      const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("FlexResizeBicubic takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const ResizeShape shape(op);
  return MakeKernel("resize_bicubic f32 reference",
                    {.units = shape.rows, .grain = GrainFor(20 * shape.out_w * shape.channels)},
                    Bicubic(op));
}

const OperatorDef& FlexResizeBicubicOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FlexResizeBicubic",
      .read_custom = ReadBicubicOptions,
      .params_bytes = sizeof(ResizeParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferInterpolation,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 8.0 * op.outputs[0].elements(); },
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
