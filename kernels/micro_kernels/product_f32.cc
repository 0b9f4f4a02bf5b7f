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

constexpr int64_t kFloat = sizeof(float);

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
        min_(min),
        max_(max) {}

  std::string types() const override { return "f32"; }
  std::string target() const override { return SimdName(isa_); }
  int lanes() const override { return gemm_.lanes(); }
  int max_rows(int vectors) const override { return gemm_.max_rows(vectors); }
  double TileCycles(int rows, int vectors) const override;
  int64_t row_bytes() const override { return left_.fresh_bytes(); }
  int64_t small_block_bytes() const override { return 64 << 10; }
  size_t panel_bytes(int vectors) const override {
    return static_cast<size_t>(vectors * lanes() * (terms_ + 1) * kFloat);
  }
  void PackPanel(const RightMatrix& right, const PanelChannels& channels,
                 std::byte* to) const override;
  std::string layout() const override { return internal::Join("f32 highway k", terms_); }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles, TileOrder order,
                                                  const std::string& name) const override;
  void Run(const TileRun& run) const override;

 private:
  const GemmF32& gemm_;
  Isa isa_;
  LeftRows left_;
  int64_t terms_;
  int64_t out_step_;
  bool waits_;
  float min_, max_;
  std::array<TileSteps, 4> steps_{};
};

// Of a core with two loads and two arithmetic instructions a cycle, each addition 4 cycles behind
// the one that it continues. What comes on top, a part of each load, lets larger tiles win.
double HighwayMicroKernelF32::TileCycles(int rows, int vectors) const {
  const bool fuses = isa_.has(Feature::kAvx2) || isa_.has(Feature::kNeon);
  const double multiplies = rows * vectors / (fuses ? 2.0 : 1.0);
  const double loads = (rows + vectors) / 2.0;
  const double step = std::max({multiplies, loads, 4.0}) + 0.25 * vectors + 0.1 * rows;
  constexpr double kPieceCycles = 6, kStartCycles = 20;
  return static_cast<double>(terms_) * step +
         kPieceCycles * static_cast<double>(left_.pieces().size()) + 2.0 * rows * vectors +
         kStartCycles;
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
  PackPanelsF32({.base = static_cast<const float*>(right.values) + channels.first * right.n_step,
                 .k_stride = right.k_step,
                 .n_stride = right.n_step,
                 .depth = terms_,
                 .columns = used},
                width, 0, 1, packed + width);
}

Result<std::shared_ptr<const MicroKernel>> HighwayMicroKernelF32::Emit(
    std::span<const Tile> tiles, TileOrder order, const std::string& /*name*/) const {
  auto kernel = std::make_shared<HighwayMicroKernelF32>(*this);
  const int64_t panel_lanes = int64_t{tiles.front().vectors} * lanes();
  if (waits_) kernel->out_step_ = panel_lanes * kFloat;
  for (size_t i = 0; i < tiles.size(); ++i) {
    kernel->steps_[i] = TileSteps(*this, left_, tiles[i], order, kernel->out_step_, kFloat);
  }
  return std::shared_ptr<const MicroKernel>(std::move(kernel));
}

void HighwayMicroKernelF32::Run(const TileRun& run) const {
  const TileSteps& step = steps_[run.tile];
  TileF32Function* const function = gemm_.tile(step.rows, step.vectors);
  const std::byte *left = run.left, *panel = run.panel;
  std::byte* out = run.out;
  for (int64_t i = 0; i < run.tiles; ++i) {
    const auto* weights = reinterpret_cast<const float*>(panel);
    function({.a = reinterpret_cast<const float*>(left),
              .rows = left_.rows(),
              .pieces = left_.pieces().data(),
              .piece_count = static_cast<int64_t>(left_.pieces().size()),
              .b = weights + step.width,
              .step = step.width,
              .pair_step = int64_t{2} * lanes(),
              .bias = weights,
              .min = min_,
              .max = max_,
              .c = reinterpret_cast<float*>(out),
              .c_pitch = out_step_ / kFloat,
              .columns = step.columns});
    left += step.left;
    panel += step.panel;
    out += step.out;
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
    if (op.inputs[i].type != DataType::kFloat32) {
      return Unsupported(DataTypeName(op.inputs[i].type), " is not float32");
    }
  }
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail, MakeFloatTail(op, d.activation));
  const DataType output = op.outputs[0].type;
  const bool waits = output != DataType::kFloat32;
  ProductKernelSpec spec;
  spec.source = FloatSource(inputs.x, d);
  spec.value_bytes = kFloat;
  spec.takes_empty_sums = true;
  spec.tail_is_linear = true;  // what is emitted has no operands
  spec.micro_kernel = [&](const DepthRuns& depth, ProductProblem* problem) {
    problem->rest = {.apply = waits || !tail.rest.empty() ? ApplyTail(context.isa) : nullptr,
                     .in_scratch = waits ? DataType::kFloat32 : DataType::kNone,
                     .output = output,
                     .tail = tail.rest};
    return MakeHighwayMicroKernelF32(depth, *problem, tail.min, tail.max, context.isa);
  };
  return PlanProductKernel(op, d, spec, context);
}

}  // namespace fuselite::kernels
