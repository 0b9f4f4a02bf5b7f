#include "kernels/micro_kernels/scaled_terms.h"

#include <algorithm>

#include "kernels/micro_kernels/left_rows.h"
#include "kernels/micro_kernels/term_sums.h"
#include "kernels/simd.h"
#include "kernels/source/image_source.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Panels hold for each term the weights of all the panel's channels, as floats.
class ScaledTermsMicroKernel final : public MicroKernel {
 public:
  ScaledTermsMicroKernel(std::shared_ptr<const HybridTail> tail, const TermSums& sums,
                         const DepthRuns& depth, const ProductProblem& problem, Isa isa)
      : tail_(std::move(tail)),
        sums_(sums),
        isa_(isa),
        left_(depth, problem, 1, sizeof(int16_t)),
        terms_(depth.depth()),
        out_step_(problem.out.row * problem.out_row_bytes),
        waits_(problem.rest.waits()) {}

  std::string types() const override { return "hybrid int8"; }
  std::string target() const override { return SimdName(isa_); }
  int lanes() const override { return sums_.lanes; }
  int max_rows(int vectors) const override {
    return vectors <= TermTile::kMostVectors ? TermTile::kMostRows : 0;
  }
  // Three multiplications for each term, and an addition.
  double TileCycles(int rows, int vectors) const override {
    return CyclesOfTile({.steps = terms_,
                         .pieces = static_cast<int64_t>(left_.pieces().size()),
                         .arithmetic = 4,
                         .latency = 4,
                         .row = 0},
                        rows, vectors);
  }
  int64_t row_bytes() const override { return left_.fresh_bytes(); }
  int64_t small_block_bytes() const override { return 32 << 10; }
  size_t panel_bytes(int vectors) const override {
    return static_cast<size_t>(vectors * lanes() * terms_ * kFloat);
  }
  void PackPanel(const RightMatrix& right, const PanelChannels& channels,
                 std::byte* to) const override;
  std::string layout() const override { return internal::Join("scaled terms k", terms_); }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles,
                                                  const TileCalls& calls,
                                                  const std::string& name) const override;
  void Run(const TileRun& run) const override;

 private:
  std::shared_ptr<const HybridTail> tail_;
  const TermSums& sums_;
  Isa isa_;
  LeftRows left_;
  int64_t terms_, out_step_;
  bool waits_;
  std::array<TileSteps<TermTileFunction>, 4> steps_{};
};

void ScaledTermsMicroKernel::PackPanel(const RightMatrix& right, const PanelChannels& channels,
                                       std::byte* to) const {
  const auto* const values = static_cast<const int8_t*>(right.values);
  auto* packed = reinterpret_cast<float*>(to);
  const int64_t width = int64_t{channels.vectors} * lanes(), used = channels.last - channels.first;
  for (int64_t k = 0; k < terms_; ++k, packed += width) {
    for (int64_t n = 0; n < used; ++n) {
      packed[n] = values[k * right.k_step + (channels.first + n) * right.n_step];
    }
    std::fill(packed + used, packed + width, 0.0f);
  }
}

Result<std::shared_ptr<const MicroKernel>> ScaledTermsMicroKernel::Emit(
    std::span<const Tile> tiles, const TileCalls& calls, const std::string& /*name*/) const {
  auto kernel = std::make_shared<ScaledTermsMicroKernel>(*this);
  if (waits_) kernel->out_step_ = int64_t{tiles.front().vectors} * lanes() * kFloat;
  for (size_t i = 0; i < tiles.size(); ++i) {
    kernel->steps_[i] =
        TileSteps(*this, left_, tiles[i], calls.order, kernel->out_step_, kFloat, sums_.tile);
  }
  return std::shared_ptr<const MicroKernel>(std::move(kernel));
}

// The rows of a run are those of one image, and so have one scale.
void ScaledTermsMicroKernel::Run(const TileRun& run) const {
  const auto& step = steps_[run.tile];
  TermTile tile{.a = run.left,
                .rows = left_.rows(),
                .pieces = left_.pieces().data(),
                .piece_count = static_cast<int64_t>(left_.pieces().size()),
                .b = reinterpret_cast<const float*>(run.panel),
                .scales = tail_->scales.data() + run.channel,
                .scale = reinterpret_cast<const RowScale*>(run.row_values)->scale,
                .bias = nullptr,
                .min = tail_->tail.min,
                .max = tail_->tail.max,
                .c = reinterpret_cast<float*>(run.out),
                .c_pitch = out_step_ / kFloat,
                .columns = step.columns};
  if (tail_->bias >= 0) {
    tile.bias = static_cast<const float*>(run.inputs[tail_->bias]) + run.channel;
  }
  for (int64_t i = 0; i < run.tiles; ++i) {
    step.part[0].function(tile);
    tile.a += step.left;
    tile.b += step.panel / kFloat;
    tile.scales += step.channel;
    if (tile.bias != nullptr) tile.bias += step.channel;
    tile.c += step.out / kFloat;
  }
}

}  // namespace

Result<KernelPlan> PlanScaledTerms(const OpDescription& op, const ProductDescription& description,
                                   const PlanContext& context) {
  const TermSums* const sums = FindTermSums(context.isa);
  if (sums == nullptr) return NoVectorTarget(context.isa);
  const auto tail = std::make_shared<const HybridTail>(description.hybrid->tail);
  ProductKernelSpec spec;
  spec.source = std::make_unique<QuantizedSource>(op.op->product_inputs->x,
                                                  HybridLayout(description, false), context.isa);
  spec.value_bytes = sizeof(int16_t);
  spec.row_value_bytes = sizeof(RowScale);
  spec.row_values_per_image = true;
  spec.takes_empty_sums = true;
  spec.tail_is_linear = true;  // tiles have no operands but channels' biases
  spec.micro_kernel = [&](const DepthRuns& depth,
                          ProductProblem* problem) -> Result<std::shared_ptr<const MicroKernel>> {
    problem->rest =
        RestBehind(DataType::kFloat32, op.outputs[0].type, tail->tail.rest, context.isa);
    return std::shared_ptr<const MicroKernel>(
        std::make_shared<ScaledTermsMicroKernel>(tail, *sums, depth, *problem, context.isa));
  };
  return PlanProductKernel(op, description, spec, context);
}

}  // namespace fuselite::kernels
