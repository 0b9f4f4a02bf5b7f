#include "kernels/unpool/unpool.h"

#include <algorithm>
#include <limits>

#include "kernels/costs.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/tail/tail.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr TypeRow kTypes[] = {{{kF32, kF32}, kF32}};

Status CheckImages(const OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  for (const TensorInfo& input : op.inputs) {
    if (input.shape.rank() != 4 || input.shape != op.inputs[0].shape) {
      return InvalidArgument("inputs ", op.inputs[0].shape, " and ", input.shape,
                             ", expected images of one shape");
    }
  }
  return Status();
}

Result<Window> WindowOn(int32_t height, int32_t width, const UnpoolParams& params) {
  return ResolveWindow({.input_h = height,
                        .input_w = width,
                        .filter_h = params.filter_height,
                        .filter_w = params.filter_width,
                        .stride_h = params.stride_h,
                        .stride_w = params.stride_w,
                        .padding = params.padding});
}

Status InferMaxPoolWithArgmax(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckImages(op));
  float low, high;
  if (!ActivationRange(op.params.as<UnpoolParams>().activation, &low, &high)) {
    return Unsupported("an activation that is no clamp");
  }
  FUSELITE_ASSIGN_OR_RETURN(const PooledImages images, ResolvePooled(op));
  const Shape shape{images.batch, images.window.y.output, images.window.x.output, images.channels};
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, kF32, shape));
  return SetOutput(op, 1, kF32, shape);
}

// Padding of the pool that leads back from the output to the input: what its windows reach beyond
// the output, half of it in front.
int32_t Before(int32_t input, int32_t output, int32_t stride, int32_t filter) {
  const int64_t beyond = int64_t{input - 1} * stride + filter - output;
  return static_cast<int32_t>(std::max<int64_t>(beyond, 0) / 2);
}

Status InferMaxUnpool(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(CheckImages(op));
  const Shape& in = op.inputs[0].shape;
  const auto& params = op.params.as<UnpoolParams>();
  constexpr int32_t kMost = 1 << 15;
  for (int32_t size :
       {params.filter_width, params.filter_height, params.stride_w, params.stride_h}) {
    if (size < 1 || size > kMost) return InvalidArgument("a filter or stride of ", size);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape({in[0], int64_t{in[1]} * params.filter_height,
                                       int64_t{in[2]} * params.filter_width, in[3]}));
  return SetOutput(op, 0, kF32, shape);
}

constexpr Candidate kPoolCandidates[] = {{"highway", BuildMaxPoolWithArgmaxHighway},
                                         {"reference", BuildMaxPoolWithArgmax}};
constexpr Candidate kUnpoolCandidates[] = {{"highway", BuildMaxUnpoolHighway},
                                           {"reference", BuildMaxUnpool}};

// Reads the options of both custom operators: TFLite's struct of a pool.
Status ReadUnpoolOptions(std::span<const std::byte> options, void* params) {
  constexpr size_t kFields = 6;
  if (options.size() < kFields * sizeof(int32_t)) {
    return InvalidArgument("has ", options.size(), " bytes of options");
  }
  int32_t fields[kFields];
  std::memcpy(fields, options.data(), sizeof fields);
  auto& to = *static_cast<UnpoolParams*>(params);
  constexpr int32_t kSame = 1, kValid = 2, kSignBit = 5;
  if ((fields[0] != kSame && fields[0] != kValid) || fields[5] < 0 || fields[5] > kSignBit) {
    return InvalidArgument("padding ", fields[0], " and activation ", fields[5], " are unknown");
  }
  to = {.padding = fields[0] == kSame ? Padding::kSame : Padding::kValid,
        .stride_w = fields[1],
        .stride_h = fields[2],
        .filter_width = fields[3],
        .filter_height = fields[4],
        .activation = static_cast<Activation>(fields[5])};
  return Status();
}

}  // namespace

Result<PooledImages> ResolvePooled(const OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  PooledImages images{{}, in[0], in[3]};
  FUSELITE_ASSIGN_OR_RETURN(images.window, WindowOn(in[1], in[2], op.params.as<UnpoolParams>()));
  return images;
}

Result<std::unique_ptr<Kernel>> BuildMaxPoolWithArgmax(const OpDescription& op,
                                                       const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const PooledImages images, ResolvePooled(op));
  float low, high;
  ActivationRange(op.params.as<UnpoolParams>().activation, &low, &high);
  const auto& [window, batch, channels] = images;
  const int64_t rows = int64_t{batch} * window.y.output;
  const int64_t row_elements = int64_t{window.x.output} * channels;
  return MakeKernel(
      "max pool with argmax", {.units = rows, .grain = GrainFor(row_elements * window.taps())},
      [=, y = window.y, x = window.x, channels = channels](const KernelArgs& args, int64_t begin,
                                                           int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t image = row / y.output;
          const int32_t top = y.start(static_cast<int32_t>(row % y.output));
          const auto* in =
              static_cast<const float*>(args.inputs[0]) + image * y.input * x.input * channels;
          auto* values = static_cast<float*>(args.outputs[0]) + row * row_elements;
          auto* taps = static_cast<float*>(args.outputs[1]) + row * row_elements;
          for (int32_t ox = 0; ox < x.output; ++ox) {
            const int32_t left = x.start(ox);
            for (int32_t c = 0; c < channels; ++c) {
              float largest = std::numeric_limits<float>::lowest();
              int32_t tap = 0;
              for (int32_t ky = y.first_tap(top); ky < y.last_tap(top); ++ky) {
                for (int32_t kx = x.first_tap(left); kx < x.last_tap(left); ++kx) {
                  const float value = in[(int64_t{top + ky} * x.input + left + kx) * channels + c];
                  if (value > largest) {
                    largest = value;
                    tap = ky * x.filter + kx;
                  }
                }
              }
              values[int64_t{ox} * channels + c] = std::min(std::max(largest, low), high);
              taps[int64_t{ox} * channels + c] = static_cast<float>(tap) + 0.1f;
            }
          }
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildMaxUnpool(const OpDescription& op, const BuildContext&) {
  const auto& params = op.params.as<UnpoolParams>();
  const Shape in = op.inputs[0].shape, out = op.outputs[0].shape;
  const int32_t above = Before(in[1], out[1], params.stride_h, params.filter_height);
  const int32_t left = Before(in[2], out[2], params.stride_w, params.filter_width);
  // One unit is one image: windows of neighbouring rows may meet.
  return MakeKernel(
      "max unpool", {.units = in[0], .grain = GrainFor(out.elements(1, 4))},
      [=](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
        const int64_t in_elements = in.elements(1, 4), out_elements = out.elements(1, 4);
        for (int64_t image = begin; image < end; ++image) {
          const auto* values = static_cast<const float*>(args.inputs[0]) + image * in_elements;
          const auto* taps = static_cast<const float*>(args.inputs[1]) + image * in_elements;
          auto* to = static_cast<float*>(args.outputs[0]) + image * out_elements;
          std::fill_n(to, out_elements, 0.0f);
          for (int64_t i = 0; i < in_elements; ++i) {
            const int64_t pixel = i / in[3], channel = i % in[3];
            const float limit =
                static_cast<float>(params.filter_width) * static_cast<float>(params.filter_height);
            if (!(taps[i] >= 0 && taps[i] < limit)) {
              return InvalidArgument("tap ", taps[i], " of a window of ", params.filter_height, "x",
                                     params.filter_width);
            }
            const auto tap = static_cast<int32_t>(taps[i]);
            const int64_t y = pixel / in[2] * params.stride_h - above + tap / params.filter_width;
            const int64_t x = pixel % in[2] * params.stride_w - left + tap % params.filter_width;
            if (y < 0 || y >= out[1] || x < 0 || x >= out[2]) {
              return InvalidArgument("tap ", tap, " of pixel ", pixel, " lies outside of ", out);
            }
            to[(y * out[2] + x) * in[3] + channel] = values[i];
          }
        }
        return Status();
      });
}

const OperatorDef& MaxPoolingWithArgmax2DOperator() {
  static constexpr OperatorDef kDef = {
      .name = "MaxPoolingWithArgmax2D",
      .read_custom = ReadUnpoolOptions,
      .params_bytes = sizeof(UnpoolParams),
      .min_outputs = 2,
      .max_outputs = 2,
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferMaxPoolWithArgmax,
      .candidates = kPoolCandidates,
      .cost = OutputElements,
  };
  return kDef;
}

const OperatorDef& MaxUnpooling2DOperator() {
  static constexpr OperatorDef kDef = {
      .name = "MaxUnpooling2D",
      .read_custom = ReadUnpoolOptions,
      .params_bytes = sizeof(UnpoolParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferMaxUnpool,
      .candidates = kUnpoolCandidates,
      .cost = OutputElements,
  };
  return kDef;
}

}  // namespace fuselite::kernels
