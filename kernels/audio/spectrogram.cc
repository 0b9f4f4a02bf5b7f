// AudioSpectrogram: (samples [n, channels]) -> [channels, frames, bins]. Frame f is the window of
// samples that begins at f * stride, multiplied by Hann's function, filled up with zeros to a power
// of two and transformed; there is a frame for each window that lies whole within the samples.
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/audio/audio.h"
#include "kernels/flexible_map.h"
#include "kernels/make_kernel.h"
#include "kernels/rfft2d/fourier_candidates.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kFloat32}, DataType::kFloat32}};
constexpr int64_t kLongestWindow = 1 << 20;  // 22 seconds at 48 kHz, and 32 MiB of roots

int64_t TransformLength(const SpectrogramParams& params) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(params.window)));
}

Status InferSpectrogram(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const auto& params = op.params.as<SpectrogramParams>();
  const Shape& in = op.inputs[0].shape;
  if (in.rank() != 2) return InvalidArgument("samples of shape ", in, ", not [samples, channels]");
  if (params.window < 2 || params.stride < 1) {
    return InvalidArgument("a window of ", params.window, " samples at steps of ", params.stride);
  }
  if (params.window > kLongestWindow || params.stride > INT32_MAX) {
    return Unsupported("does not take a window of ", params.window, " samples at steps of ",
                       params.stride);
  }
  const int64_t rest = in[0] - params.window;
  const int64_t frames = rest < 0 ? 0 : 1 + rest / params.stride;
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape({in[1], frames, TransformLength(params) / 2 + 1}));
  return SetOutput(op, 0, DataType::kFloat32, shape);
}

// One unit: a frame of a channel. Scratch: what is transformed, and the bins.
class Spectrogram {
 public:
  Spectrogram(const OpDescription& op, const FourierFunctions& functions)
      : params_(op.params.as<SpectrogramParams>()),
        channels_(op.inputs[0].shape[1]),
        frames_(op.outputs[0].shape[1]),
        window_(params_.window),
        transform_(TransformLength(params_), functions) {
    for (int64_t i = 0; i < params_.window; ++i) {
      const double turn = static_cast<double>(i) / static_cast<double>(params_.window);
      window_[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * turn);
    }
  }

  Work work() const {
    return {.units = channels_ * frames_,
            .grain = GrainFor(16 * transform_.bins()),
            .scratch_bytes = sizeof(double) * (rest_at() + transform_.scratch_doubles())};
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    auto* const scratch = reinterpret_cast<double*>(args.scratch);
    const SplitComplex bins = {scratch, scratch + ImaginaryOffset(transform_.bins())};
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % frames_ * params_.stride;
      const float* in =
          static_cast<const float*>(args.inputs[0]) + first * channels_ + unit / frames_;
      transform_.Run([&](int64_t i) { return static_cast<double>(in[i * channels_]) * window_[i]; },
                     params_.window, scratch + rest_at(), bins);
      Store(bins, static_cast<float*>(args.outputs[0]) + unit * transform_.bins());
    }
  }

 private:
  int64_t rest_at() const { return 2 * ImaginaryOffset(transform_.bins()); }
  void Store(SplitComplex bins, float* out) const {
    for (int64_t i = 0; i < transform_.bins(); ++i) {
      out[i] = static_cast<float>(bins.re[i] * bins.re[i] + bins.im[i] * bins.im[i]);
    }
    if (params_.squared) return;
    for (int64_t i = 0; i < transform_.bins(); ++i) out[i] = std::sqrt(out[i]);
  }

  SpectrogramParams params_;
  int64_t channels_, frames_;
  std::vector<double> window_;
  RealTransform transform_;
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, std::string_view target,
                                      const FourierFunctions& functions) {
  if (!op.tail.empty()) return Unsupported("AudioSpectrogram takes no fused tail");
  Spectrogram spectrogram(op, functions);
  const Work work = spectrogram.work();
  return MakeKernel(internal::Join("spectrogram ", target), work, std::move(spectrogram));
}

// A map of FlexBuffers, as TensorFlow's converter writes it.
Status ReadSpectrogramOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const flexbuffers::Map map, ReadFlexibleMap(options));
  auto& to = *static_cast<SpectrogramParams*>(params);
  to.window = map["window_size"].AsInt64();
  to.stride = map["stride"].AsInt64();
  to.squared = map["magnitude_squared"].AsBool();
  return Status();
}

}  // namespace

const OperatorDef& AudioSpectrogramOperator() {
  static constexpr OperatorDef kDef = {
      .name = "AudioSpectrogram",
      .read_custom = ReadSpectrogramOptions,
      .params_bytes = sizeof(SpectrogramParams),
      .min_inputs = 1,
      .max_inputs = 1,
      .types = kTypes,
      .limits = "rank 2; windows of at most 1048576 samples",
      .infer = InferSpectrogram,
      .candidates = kFourierCandidates<Build>,
      .cost = [](const OpDescription& op) { return 40.0 * op.outputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
