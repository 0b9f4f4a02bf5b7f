#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/packed_integers.h"
#include "kernels/weight_only/weight_only.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/weight_only/highway.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/std_max-inl.h"

#ifndef FUSELITE_KERNELS_WEIGHT_ONLY_HIGHWAY_
#define FUSELITE_KERNELS_WEIGHT_ONLY_HIGHWAY_
namespace fuselite::kernels {

// Vectors of units in a panel: with those of two steps of the depth, as many sums as the latency of
// a multiplication needs on two ports.
constexpr int kPanelVectors = 4;
// Bytes of weights between what is multiplied and what is fetched: what memory gives in some
// 150 ns.
constexpr int64_t kWeightsAhead = 4096;

// A panel of weights times a row: element d of unit u is at d * kPanelVectors * lanes + u.
struct WeightOnlyPanel {
  const std::byte* weights;
  bool fetches_ahead;  // PlanContext::FetchesAhead
  const float* x;
  int64_t depth;
  const float *scales, *bias;  // of the panel's units, as many as vectors hold; no bias: null
  float min, max;
  float* to;  // as many
};

struct WeightOnlyFunctions {
  void (*int8)(const WeightOnlyPanel&);
  void (*half)(const WeightOnlyPanel&);
  int64_t width;  // units of a panel
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

HWY_INLINE VF LoadWeights(const int8_t* from) {
  const hn::Rebind<int8_t, DF> bytes;
  const hn::RebindToSigned<DF> wide;
  return hn::ConvertTo(DF(), hn::PromoteTo(wide, hn::LoadU(bytes, from)));
}
HWY_INLINE VF LoadWeights(const hwy::float16_t* from) {
  return hn::PromoteTo(DF(), hn::LoadU(hn::Rebind<hwy::float16_t, DF>(), from));
}

// sums += x * weights, one step of the depth.
template <class T>
HWY_INLINE void Step(const T* weights, float x, VF* sums) {
  const DF d;
  const auto lanes = hn::Lanes(d);
  const VF factor = hn::Set(d, x);
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v) {
    sums[v] = hn::MulAdd(factor, LoadWeights(weights + v * lanes), sums[v]);
  }
}

template <class T>
void MultiplyPanel(const WeightOnlyPanel& panel) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = kPanelVectors * lanes;
  const T* weights = reinterpret_cast<const T*>(panel.weights);
  VF even[kPanelVectors], odd[kPanelVectors];
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v) even[v] = odd[v] = hn::Zero(d);
  int64_t k = 0;
  for (; k + 2 <= panel.depth; k += 2, weights += 2 * width) {
    for (int64_t at = 0; panel.fetches_ahead && at < 2 * width;
         at += 64 / static_cast<int64_t>(sizeof(T))) {
      hwy::Prefetch(weights + at + kWeightsAhead / static_cast<int64_t>(sizeof(T)));
    }
    Step(weights, panel.x[k], even);
    Step(weights + width, panel.x[k + 1], odd);
  }
  if (k < panel.depth) Step(weights, panel.x[k], even);
  for (int v = 0; v < kPanelVectors; ++v) {
    VF sum = hn::Mul(hn::Add(even[v], odd[v]), hn::LoadU(d, panel.scales + v * lanes));
    if (panel.bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, panel.bias + v * lanes));
    hn::StoreU(StdMin(StdMax(sum, hn::Set(d, panel.min)), hn::Set(d, panel.max)), d,
               panel.to + v * lanes);
  }
}

constexpr WeightOnlyFunctions kWeightOnly = {.int8 = MultiplyPanel<int8_t>,
                                             .half = MultiplyPanel<hwy::float16_t>,
                                             .width = kPanelVectors * hn::MaxLanes(DF())};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr int64_t kMaxWidth = 64;

class WeightOnlyKernel final : public Kernel {
 public:
  WeightOnlyKernel(const FullyConnectedShape& shape, FloatTail tail)
      : shape_(shape), tail_(std::move(tail)) {}

  Status Plan(const OpDescription& op, const PlanContext& context) {
    static constexpr auto kTable = FUSELITE_SIMD_TABLE(kWeightOnly);
    const WeightOnlyFunctions* const functions = kTable.For(context.isa);
    if (functions == nullptr) return NoVectorTarget(context.isa);
    // A decode of 512 features takes 1.80 ms there instead of 1.63, one by halves twice as long.
    if (context.isa.has(Feature::kSsse3) && !context.isa.has(Feature::kAvx2)) {
      return Unsupported("without AVX2 converting weights takes longer than reading floats");
    }
    if (shape_.rows != 1) return Unsupported(shape_.rows, " rows repay weights of float32");
    halves_ = op.inputs[1].type == DataType::kFloat16;
    multiply_ = halves_ ? functions->half : functions->int8;
    width_ = functions->width;
    fetches_ahead_ = context.FetchesAhead(panels() * panel_bytes());
    apply_tail_ = ApplyTail(context.isa);
    output_ = op.outputs[0];
    biased_ = op.has_input(2);
    name_ = internal::Join("fully_connected f32 by ", DataTypeName(op.inputs[1].type), ' ',
                           SimdName(context.isa));
    return Status();
  }

  Status Pack(const OpDescription& op, const BuildContext& context) {
    const TensorInfo& weights = op.inputs[1];
    scales_ = WeightOnlyScales(op, shape_.units);
    scales_.resize(panels() * width_);
    PackRequest request;
    request.source = weights.data;
    request.source_bytes = weights.bytes();
    request.bytes = panels() * panel_bytes();
    request.layout = internal::Join("weight-only ", DataTypeName(weights.type), " k", shape_.depth,
                                    " w", width_);
    FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* to) {
      std::memset(to, 0, request.bytes);
      if (halves_) {
        const auto* const values = static_cast<const std::byte*>(weights.data);
        return PackAll(to, [&](int64_t i, std::byte* at) { std::memcpy(at, values + 2 * i, 2); });
      }
      if (weights.type == DataType::kInt8) {
        const auto* const values = static_cast<const std::byte*>(weights.data);
        return PackAll(to, [&](int64_t i, std::byte* at) { *at = values[i]; });
      }
      const PackedIntegers values(weights.type, weights.data);
      PackAll(to, [&](int64_t i, std::byte* at) { *at = static_cast<std::byte>(values[i]); });
    }));
    return Status();
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return panels(); }
  int64_t grain(int) const override { return GrainFor(width_ * shape_.depth / 8); }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t panel = begin; panel < end; ++panel) RunPanel(args, panel);
    return Status();
  }

 private:
  int64_t panels() const { return (shape_.units + width_ - 1) / width_; }
  int64_t panel_bytes() const { return width_ * shape_.depth * (halves_ ? 2 : 1); }

  // `copy(i, at)` brings weight `i` of the file to `at`.
  template <class Copy>
  void PackAll(std::byte* to, Copy copy) const {
    const int64_t bytes = halves_ ? 2 : 1;
    for (int64_t first = 0; first < shape_.units; first += width_, to += panel_bytes()) {
      const int64_t count = std::min(width_, shape_.units - first);
      for (int64_t d = 0; d < shape_.depth; ++d) {
        std::byte* const step = to + d * width_ * bytes;
        for (int64_t u = 0; u < count; ++u) {
          copy((first + u) * shape_.depth + d, step + u * bytes);
        }
      }
    }
  }

  void RunPanel(const KernelArgs& args, int64_t panel) const {
    const int64_t unit = panel * width_, units = std::min(width_, shape_.units - unit);
    float sums[kMaxWidth], bias[kMaxWidth] = {};
    if (biased_) {
      std::copy_n(static_cast<const float*>(args.inputs[2]) + unit, units, bias);
    }
    multiply_({.weights = packed_->data() + panel * panel_bytes(),
               .fetches_ahead = fetches_ahead_,
               .x = static_cast<const float*>(args.inputs[0]),
               .depth = shape_.depth,
               .scales = scales_.data() + unit,
               .bias = biased_ ? bias : nullptr,
               .min = tail_.min,
               .max = tail_.max,
               .to = sums});
    apply_tail_(tail_.rest, args.inputs,
                {.source = sums,
                 .source_pitch = width_,
                 .source_type = DataType::kFloat32,
                 .destination =
                     static_cast<std::byte*>(args.outputs[0]) + unit * BitWidth(output_.type) / 8,
                 .destination_pitch = output_.pitch(),
                 .destination_type = output_.type,
                 .row = 0,
                 .rows = 1,
                 .channel = unit,
                 .channels = units});
  }

  std::string name_;
  FullyConnectedShape shape_;
  FloatTail tail_;
  void (*multiply_)(const WeightOnlyPanel&) = nullptr;
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
  int64_t width_ = 0;
  bool halves_ = false, biased_ = false, fetches_ahead_ = false;
  std::vector<float> scales_;
  PackedWeights packed_;
};

}  // namespace

Result<KernelPlan> PlanWeightOnlyHighway(const OpDescription& op, const PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveWeightOnly(op));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation));
  return PlanThenPack(WeightOnlyKernel(shape, std::move(tail)), op, context);
}

}  // namespace fuselite::kernels
#endif
