#include "kernels/micro_kernels/product_f32.h"

#include <algorithm>
#include <cstring>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/micro_kernels/left_rows.h"
#include "kernels/simd.h"
#include "kernels/source/image_source.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr int64_t kFloat = sizeof(float);
// What each row of a tile costs, however long it is.
constexpr double kTailRowCycles = 40;

// Packed panels hold the bias, then for each term the weights of all the panel's channels.
class HighwayMicroKernelF32 final : public MicroKernel {
 public:
  HighwayMicroKernelF32(const GemmF32& gemm, const DepthRuns& depth, const ProductProblem& problem,
                        float min, float max, Isa isa)
      : gemm_(gemm),
        isa_(isa),
        left_(depth, problem, 1, kFloat),
        terms_(depth.depth()),
        out_step_(problem.out.row * problem.out_row_bytes),
        waits_(problem.rest.waits()),
        tailed_(problem.rest.apply != nullptr),
        min_(min),
        max_(max) {}

  std::string types() const override { return "f32"; }
  std::string target() const override { return SimdName(isa_); }
  int lanes() const override { return gemm_.lanes(); }
  int max_rows(int vectors) const override {
    return vectors <= kMostTileVectors ? std::min(gemm_.tile_rows, left_.rows_together()) : 0;
  }
  double TileCycles(int rows, int vectors) const override;
  int64_t row_bytes() const override { return left_.fresh_bytes(); }
  int64_t small_block_bytes() const override { return 64 << 10; }
  size_t panel_bytes(int vectors) const override {
    return static_cast<size_t>(vectors * lanes() * (terms_ + 1) * kFloat);
  }
  void PackPanel(const RightMatrix& right, const PanelChannels& channels,
                 std::byte* to) const override;
  std::string layout() const override { return internal::Join("f32 highway k", terms_); }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles,
                                                  const TileCalls& calls,
                                                  const std::string& name) const override;
  void Run(const TileRun& run) const override;

 private:
  const GemmF32& gemm_;
  Isa isa_;
  LeftRows left_;
  int64_t terms_;
  int64_t out_step_;
  bool waits_, tailed_;
  float min_, max_;
  std::array<TileSteps<TileF32Function>, 4> steps_{};
};

double HighwayMicroKernelF32::TileCycles(int rows, int vectors) const {
  const bool fuses = isa_.has(Feature::kAvx2) || isa_.has(Feature::kNeon);
  return CyclesOfTile({.steps = terms_,
                       .pieces = static_cast<int64_t>(left_.pieces().size()),
                       .arithmetic = fuses ? 1.0 : 2.0,
                       .latency = 4,
                       .row = tailed_ ? kTailRowCycles : 0},
                      rows, vectors);
}

void HighwayMicroKernelF32::PackPanel(const RightMatrix& right, const PanelChannels& channels,
                                      std::byte* to) const {
  auto* packed = reinterpret_cast<float*>(to);
  const int width = channels.vectors * lanes();
  const int64_t used = channels.last - channels.first;
  std::fill_n(packed, width, 0.0f);
  if (right.bias != nullptr) {
    std::memcpy(packed, static_cast<const float*>(right.bias) + channels.first, used * kFloat);
  }
  // Two vectors at a time, a last one by itself.
  for (int first = 0; first < width;) {
    const int panel = NextTileVectors(GemmF32::kMostRows, (width - first) / lanes()) * lanes();
    const int64_t channel = channels.first + first;
    PackPanelsF32({.base = static_cast<const float*>(right.values) + channel * right.n_step,
                   .k_stride = right.k_step,
                   .n_stride = right.n_step,
                   .depth = terms_,
                   .columns = used - first},
                  panel, 0, 1, packed + width + first * terms_);
    first += panel;
  }
}

Result<std::shared_ptr<const MicroKernel>> HighwayMicroKernelF32::Emit(
    std::span<const Tile> tiles, const TileCalls& calls, const std::string& /*name*/) const {
  auto kernel = std::make_shared<HighwayMicroKernelF32>(*this);
  const int64_t panel_lanes = int64_t{tiles.front().vectors} * lanes();
  if (waits_) kernel->out_step_ = panel_lanes * kFloat;
  for (size_t i = 0; i < tiles.size(); ++i) {
    kernel->steps_[i] =
        TileSteps(*this, left_, tiles[i], calls.order, kernel->out_step_, kFloat, gemm_.tile);
  }
  return std::shared_ptr<const MicroKernel>(std::move(kernel));
}

void HighwayMicroKernelF32::Run(const TileRun& run) const {
  const auto& step = steps_[run.tile];
  // With few terms, a tile takes little longer to compute than to describe.
  TileF32 tiles[kMostTileVectors];
  for (int i = 0; i < step.parts; ++i) {
    const auto& part = step.part[i];
    const auto* const bias = reinterpret_cast<const float*>(run.panel);
    tiles[i] = {.a = reinterpret_cast<const float*>(run.left),
                .rows = left_.rows(),
                .pieces = left_.pieces().data(),
                .piece_count = static_cast<int64_t>(left_.pieces().size()),
                .b = bias + step.width + part.first * terms_,
                .step = int64_t{std::min(part.vectors, 2)} * lanes(),
                .pair_step = int64_t{2} * lanes() * terms_,
                .plain = false,
                .bias = bias + part.first,
                .min = min_,
                .max = max_,
                .c = reinterpret_cast<float*>(run.out) + part.first,
                .c_pitch = out_step_ / kFloat,
                .columns = part.columns};
  }
  for (int64_t tile = 0; tile < run.tiles; ++tile) {
    for (int i = 0; i < step.parts; ++i) {
      TileF32& at = tiles[i];
      step.part[i].function(at);
      at.a += step.left / kFloat;
      at.b += step.panel / kFloat;
      at.bias += step.panel / kFloat;
      at.c += step.out / kFloat;
    }
  }
}

}  // namespace

Result<std::shared_ptr<const MicroKernel>> MakeHighwayMicroKernelF32(const DepthRuns& depth,
                                                                     const ProductProblem& problem,
                                                                     float min, float max,
                                                                     Isa isa) {
  const GemmF32* const gemm = FindGemmF32(isa);
  if (gemm == nullptr) return NoVectorTarget(isa);
  return std::shared_ptr<const MicroKernel>(
      std::make_shared<HighwayMicroKernelF32>(*gemm, depth, problem, min, max, isa));
}

Result<KernelPlan> PlanHighwayProductF32(const OpDescription& op, const PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription d, op.op->product(op));
  const ProductInputs& inputs = *op.op->product_inputs;
  for (int i : {inputs.x, inputs.weights}) {
    if (op.inputs[i].type != kF32) {
      return Unsupported("takes float32, not ", DataTypeName(op.inputs[i].type));
    }
  }
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail, MakeFloatTail(op, d.activation));
  ProductKernelSpec spec;
  spec.source = FloatSource(inputs.x, d, context.isa);
  spec.value_bytes = kFloat;
  spec.takes_empty_sums = true;
  spec.tail_is_linear = true;  // what is emitted has no operands
  spec.micro_kernel = [&](const DepthRuns& depth, ProductProblem* problem) {
    problem->rest = RestBehind(kF32, op.outputs[0].type, tail.rest, context.isa);
    return MakeHighwayMicroKernelF32(depth, *problem, tail.min, tail.max, context.isa);
  };
  return PlanProductKernel(op, d, spec, context);
}

}  // namespace fuselite::kernels
