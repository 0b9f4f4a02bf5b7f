// Mfcc: (spectrogram of squared magnitudes [channels, frames, bins], sample rate) ->
// [channels, frames, coefficients]. The magnitudes of a frame are summed under triangles that are
// equally wide in mel, and the logarithms of the sums transformed by a discrete cosine transform,
// of which the first coefficients are kept.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/audio/audio.h"
#include "kernels/flexible_map.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kFloat32, DataType::kInt32}, DataType::kFloat32}};
constexpr int64_t kMostFilters = 4096;
constexpr double kLeastSum = 1e-12;  // what the logarithm is taken of at least

Status InferMfcc(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const auto& params = op.params.as<MfccParams>();
  const Shape& in = op.inputs[0].shape;
  if (in.rank() != 3 || in[2] < 2) return InvalidArgument("a spectrogram of shape ", in);
  if (op.inputs[1].shape.elements() != 1) {
    return InvalidArgument("sample rates of shape ", op.inputs[1].shape);
  }
  if (params.coefficients < 1 || params.coefficients > params.filters) {
    return InvalidArgument(params.coefficients, " coefficients of ", params.filters, " filters");
  }
  if (params.lower_limit < 0 || params.upper_limit <= params.lower_limit) {
    return InvalidArgument("frequencies from ", params.lower_limit, " to ", params.upper_limit);
  }
  if (params.filters > kMostFilters) return Unsupported(params.filters, " filters");
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({in[0], in[1], params.coefficients}));
  return SetOutput(op, 0, DataType::kFloat32, shape);
}

double Mel(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

// The triangles. Each bin between the limits lies on the falling side of one (or in front of the
// first) and on the rising side of the next (or behind the last).
class MelFilters {
 public:
  MelFilters(const MfccParams& params, int64_t bins, int32_t rate) : filters_(params.filters) {
    const double hertz_per_bin = 0.5 * rate / static_cast<double>(bins - 1);
    const double end = params.upper_limit / hertz_per_bin;
    // Without the limits' bins TFLite's kernel sums up nothing, not even the least sum.
    if (end >= static_cast<double>(bins)) return;
    first_ = static_cast<int64_t>(1.5 + params.lower_limit / hertz_per_bin);  // never bin 0
    const double low = Mel(params.lower_limit);
    const double step = (Mel(params.upper_limit) - low) / static_cast<double>(filters_ + 1);
    const auto peak = [&](int64_t filter) { return low + step * static_cast<double>(filter + 1); };
    int64_t rising = 0;
    for (int64_t bin = first_; bin <= static_cast<int64_t>(end); ++bin) {
      const double mel = Mel(static_cast<double>(bin) * hertz_per_bin);
      while (rising < filters_ && peak(rising) < mel) ++rising;
      const double before = rising == 0 ? low : peak(rising - 1);
      bins_.push_back({rising, (peak(rising) - mel) / (peak(rising) - before)});
    }
    within_ = true;
  }

  // sums[filters] of the magnitudes; false where the limits lie beyond the bins.
  bool Sum(const float* squares, double* sums) const {
    if (!within_) return false;
    std::fill_n(sums, filters_, 0.0);
    for (size_t i = 0; i < bins_.size(); ++i) {
      const auto& [rising, weight] = bins_[i];
      const double magnitude = std::sqrt(static_cast<double>(squares[first_ + i]));
      const double falling = magnitude * weight;
      if (rising > 0) sums[rising - 1] += falling;
      if (rising < filters_) sums[rising] += magnitude - falling;
    }
    return true;
  }

 private:
  struct Bin {
    int64_t rising;
    double weight;  // on the falling side
  };
  int64_t filters_, first_ = 0;
  bool within_ = false;
  std::vector<Bin> bins_;  // from first_
};

// One unit: a frame. Scratch: the sums.
class Mfcc {
 public:
  explicit Mfcc(const OpDescription& op)
      : params_(op.params.as<MfccParams>()), shape_(op.inputs[0].shape) {
    const auto filters = static_cast<double>(params_.filters);
    for (int64_t i = 0; i < params_.coefficients; ++i) {
      for (int64_t j = 0; j < params_.filters; ++j) {
        const double turn = static_cast<double>(i) * (std::numbers::pi / filters);
        cosines_.push_back(std::sqrt(2.0 / filters) *
                           std::cos(turn * (static_cast<double>(j) + 0.5)));
      }
    }
  }

  Work work() const {
    const int64_t of_frame = shape_[2] + params_.filters * (16 + params_.coefficients);
    return {.units = int64_t{shape_[0]} * shape_[1],
            .grain = GrainFor(of_frame),
            .scratch_bytes = sizeof(double) * params_.filters};
  }

  Status operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const int32_t rate = *static_cast<const int32_t*>(args.inputs[1]);
    if (rate < 1) return InvalidArgument("a sample rate of ", rate);
    const MelFilters filters(params_, shape_[2], rate);
    auto* sums = reinterpret_cast<double*>(args.scratch);
    for (int64_t frame = begin; frame < end; ++frame) {
      const float* in = static_cast<const float*>(args.inputs[0]) + frame * shape_[2];
      float* out = static_cast<float*>(args.outputs[0]) + frame * params_.coefficients;
      if (filters.Sum(in, sums)) {
        Transform(sums, out);
      } else {
        std::fill_n(out, params_.coefficients, 0.0f);
      }
    }
    return Status();
  }

 private:
  void Transform(double* sums, float* out) const {
    for (int64_t j = 0; j < params_.filters; ++j) {
      sums[j] = std::log(sums[j] < kLeastSum ? kLeastSum : sums[j]);  // NaN stays
    }
    for (int64_t i = 0; i < params_.coefficients; ++i) {
      const double* cosines = cosines_.data() + i * params_.filters;
      double sum = 0;
      for (int64_t j = 0; j < params_.filters; ++j) sum += cosines[j] * sums[j];
      out[i] = static_cast<float>(sum);
    }
  }

  MfccParams params_;
  Shape shape_;
  std::vector<double> cosines_;  // [coefficients][filters]
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("Mfcc takes no fused tail");
  Mfcc mfcc(op);
  const Work work = mfcc.work();
  return MakeKernel("mfcc", work, std::move(mfcc));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

// A map of FlexBuffers, as TensorFlow's converter writes it.
Status ReadMfccOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const flexbuffers::Map map, ReadFlexibleMap(options));
  auto& to = *static_cast<MfccParams*>(params);
  // TFLite's kernel reads limits as integers too.
  to.lower_limit = static_cast<float>(map["lower_frequency_limit"].AsInt64());
  to.upper_limit = static_cast<float>(map["upper_frequency_limit"].AsInt64());
  to.filters = map["filterbank_channel_count"].AsInt64();
  to.coefficients = map["dct_coefficient_count"].AsInt64();
  return Status();
}

}  // namespace

const OperatorDef& MfccOperator() {
  static constexpr OperatorDef kDef = {
      .name = "Mfcc",
      .read_custom = ReadMfccOptions,
      .params_bytes = sizeof(MfccParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 3; at most 4096 filters",
      .infer = InferMfcc,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 20.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
