#include "jit/product/product_f32.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

#include "jit/product/bf16.h"
#include "jit/product/float_operands.h"
#include "kernels/filter_operands.h"
#include "kernels/product/product_kernel.h"
#include "kernels/source/image_source.h"
#include "kernels/widened.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::jit {

using kernels::OpDescription;
using kernels::PanelChannels;
using kernels::ProductDescription;
using kernels::ProductProblem;
using kernels::Tile;
using kernels::TileRun;

namespace {

constexpr int64_t kFloat = sizeof(float), kBf16 = sizeof(uint16_t);
// Weights of many rows beyond this come from further away than L2 and are fetched ahead.
constexpr int64_t kWeightsThatStay = 256 << 10;
// Packing the weights at each run takes about as long as the products of so many rows.
constexpr int64_t kRowsWorthPacking = 4;

// to[k * width + n] = from[n * n_step + k * k_step].
void CopyTransposed(const float* from, int64_t n_step, int64_t count, int64_t k_step, int64_t depth,
                    float* to, int64_t width) {
  int64_t k = 0;
  for (; k_step == 1 && k + 4 <= depth; k += 4) {
    int64_t n = 0;
    for (; n + 4 <= count; n += 4) {
      const float* corner = from + n * n_step + k;
      __m128 r0 = _mm_loadu_ps(corner), r1 = _mm_loadu_ps(corner + n_step);
      __m128 r2 = _mm_loadu_ps(corner + 2 * n_step), r3 = _mm_loadu_ps(corner + 3 * n_step);
      _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
      float* place = to + k * width + n;
      _mm_storeu_ps(place, r0);
      _mm_storeu_ps(place + width, r1);
      _mm_storeu_ps(place + 2 * width, r2);
      _mm_storeu_ps(place + 3 * width, r3);
    }
    for (; n < count; ++n) {
      for (int64_t i = 0; i < 4; ++i) to[(k + i) * width + n] = from[n * n_step + k + i];
    }
  }
  for (; k < depth; ++k) {
    for (int64_t n = 0; n < count; ++n) to[k * width + n] = from[n * n_step + k * k_step];
  }
}

// Channels that fill half of a vector of 64 bytes take vectors of 32: two of these are multiplied
// in the time of one on cores that halve the larger ones (Zen 4), and elsewhere in no more.
Isa IsaFor(int64_t channels, Isa isa) {
  const bool half = channels * 2 <= VectorIsa(isa).lanes() && isa.has(Feature::kAvx512);
  return half ? Isa::kAvx2 : isa;
}

void WidenRows(const kernels::DepthRuns& depth, ProductProblem* problem) {
  problem->FormLeft(WidenRowsOfBf16, depth.depth() * kBf16, FormedRowBytes(depth.depth() * kFloat));
}

// The product in float32 of values that are, in part, bfloat16 in memory.
Result<kernels::KernelPlan> PlanOfBFloat16(const OpDescription& op,
                                           const kernels::PlanContext& context) {
  if (op.inputs[op.op->product_inputs->x].type != DataType::kBFloat16) {
    return PlanFloatProduct(op, context, {kFloat, kernels::FloatSource, MicroKernelF32::Make});
  }
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription d, op.op->product(op));
  if (!HasPixelRows(d)) return Unsupported("windows over bfloat16 are not widened to float32");
  return PlanFloatProduct(op, context,
                          {kBf16, kernels::BFloat16Source, MicroKernelF32::Make, WidenRows});
}

}  // namespace

int64_t FormedRowBytes(int64_t bytes) {
  constexpr int64_t kLine = 64;
  const int64_t lines = CeilDiv(bytes, kLine) * kLine;
  return lines % 512 == 0 ? lines + kLine : lines;
}

bool HasPixelRows(const ProductDescription& d) {
  if (d.left_transposed || d.volume || d.groups != 1 || d.parts.size() != 1) return false;
  const kernels::Window& window = d.parts.front().window;
  return window.y.filter == 1 && window.x.filter == 1 &&
         d.images * window.y.output * window.x.output > 1;
}

Result<std::shared_ptr<const kernels::MicroKernel>> MicroKernelF32::Make(
    const kernels::DepthRuns& depth, const ProductProblem& problem, const kernels::Tail& tail,
    Isa isa) {
  std::shared_ptr<MicroKernelF32> kernel(new MicroKernelF32(isa));
  FUSELITE_RETURN_IF_ERROR(kernel->Plan(depth, problem, tail, false));
  return std::shared_ptr<const kernels::MicroKernel>(std::move(kernel));
}

Status MicroKernelF32::Plan(const kernels::DepthRuns& depth, const ProductProblem& problem,
                            const kernels::Tail& tail, bool bf16) {
  tail_ = tail;
  spec_.isa = isa_.features;
  spec_.bf16 = bf16;
  spec_.depth = depth;
  spec_.a_step = problem.left.row;
  spec_.a_runs = problem.left_runs;
  spec_.out_step = problem.out.row * problem.out_row_bytes;
  spec_.bf16_out = problem.out_value_bytes == kBf16;
  steps_ = spec_.steps();
  const int64_t weights_bytes =
      problem.rights * problem.channels * (steps_ + 1) * DepthWalker::kStepBytes;
  const bool one_row = problem.grid.line_rows == 1;
  spec_.rolled = RollsLoops(problem.grid.line_rows, weights_bytes);
  spec_.prefetch_weights = one_row ? problem.fetches_right_ahead : weights_bytes > kWeightsThatStay;
  spec_.tail = tail;
  for (kernels::TailStage& stage : spec_.tail.stages) stage.operand.row_stride *= problem.out.row;
  return CheckGemm(spec_);
}

// For each step, on a core with two multiply-adds and two loads a cycle, each multiply-add 4 cycles
// behind the one that it continues. What comes on top, a part of each load, lets larger tiles win:
// they fetch weights and rows less often. Then a tile's start and end: bias, addresses, stores.
double MicroKernelF32::TileCycles(int rows, int vectors) const {
  const double multiplies = rows * vectors / 2.0;
  const double loads = (rows + vectors) / 2.0;
  const double step = std::max({multiplies, loads, 4.0}) + 0.25 * vectors + 0.1 * rows;
  return static_cast<double>(steps_) * step + rows * vectors + 12;
}

// Deep rows of which kLargeBlock holds few take more of L2 where it has 2 MiB: for each block all
// panels come from L3, at 27 GB/s. Of 512 rows by 4096 x 1024 weights a Xeon computes 157 GFLOP/s
// instead of 131.
int64_t MicroKernelF32::large_block_bytes() const {
  constexpr int64_t kRows = 64, kMost = 1200 << 10;
  if (!isa_.features.has(Trait::kLargeL2)) return kernels::kLargeBlock;
  return std::clamp(kRows * row_bytes(), kernels::kLargeBlock, kMost);
}

float* MicroKernelF32::PackBias(const kernels::RightMatrix& right, const PanelChannels& channels,
                                std::byte* to) const {
  auto* packed = reinterpret_cast<float*>(to);
  const auto* bias = static_cast<const float*>(right.bias);
  const int64_t width = int64_t{channels.vectors} * isa_.lanes();
  const int64_t used = channels.last - channels.first;
  if (used < width) {
    std::memset(packed, 0, width * (steps_ + 1) * kFloat);
  } else if (bias == nullptr) {
    std::memset(packed, 0, width * kFloat);
  }
  if (bias != nullptr) std::memcpy(packed, bias + channels.first, used * kFloat);
  return packed + width;
}

void MicroKernelF32::PackPanel(const kernels::RightMatrix& right, const PanelChannels& channels,
                               std::byte* to) const {
  float* packed = PackBias(right, channels, to);
  const int64_t width = int64_t{channels.vectors} * isa_.lanes();
  const int64_t used = channels.last - channels.first;
  const float* from = static_cast<const float*>(right.values) + channels.first * right.n_step;
  if (right.n_step != 1) {
    return CopyTransposed(from, right.n_step, used, right.k_step, steps_, packed, width);
  }
  for (int64_t k = 0; k < steps_; ++k) {
    std::memcpy(packed + k * width, from + k * right.k_step, used * kFloat);
  }
}

Result<std::shared_ptr<const kernels::MicroKernel>> MicroKernelF32::Emit(
    std::span<const Tile> tiles, const kernels::TileCalls& calls, const std::string& name) const {
  std::shared_ptr<MicroKernelF32> kernel = Copy();
  kernel->spec_.across = calls.order == kernels::TileOrder::kAcross;
  FUSELITE_ASSIGN_OR_RETURN(kernel->code_, kernel->EmitCode(tiles, calls, name));
  for (size_t i = 0; i < tiles.size(); ++i) {
    kernel->entries_[i] = kernel->code_->entry<GemmFunction>(i);
  }
  return std::shared_ptr<const kernels::MicroKernel>(std::move(kernel));
}

void MicroKernelF32::Run(const TileRun& run) const {
  GemmArgs args;  // operands that the tail does not have are left alone
  args.a = run.left;
  args.panel = run.panel;
  args.out = run.out;
  args.tiles = run.tiles;
  kernels::BindTailOperands(tail_, run.inputs, run.row, run.channel, &args.operands);
  entries_[run.tile](&args);
}

Result<kernels::KernelPlan> PlanProductF32(const OpDescription& op,
                                           const kernels::PlanContext& context) {
  if (kernels::HasBFloat16Values(op)) return PlanOfBFloat16(op, context);
  const auto make = [](const kernels::DepthRuns& depth, const ProductProblem& problem,
                       const kernels::Tail& tail, Isa isa) {
    return MicroKernelF32::Make(depth, problem, tail, IsaFor(problem.group_channels(), isa));
  };
  return PlanFloatProduct(op, context, {kFloat, kernels::FloatSource, make});
}

Result<kernels::KernelPlan> PlanFloatProduct(const OpDescription& op,
                                             const kernels::PlanContext& context,
                                             const FloatProductForm& form) {
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription d, op.op->product(op));
  const kernels::ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  FUSELITE_RETURN_IF_ERROR(CheckFloats(op, in, context));
  if (weights.type != DataType::kFloat32) {
    return Unsupported("takes weights of float32, not ", DataTypeName(weights.type));
  }
  const int64_t rows = d.images * d.parts.front().window.y.output * d.parts.front().window.x.output;
  const bool constant = kernels::HasConstants(op, inputs.weights, inputs.bias);
  if (!constant && rows < kRowsWorthPacking) {
    return Unsupported(rows, " rows do not repay packing weights at each run");
  }
  if (kernels::ReadsUnpacked(op)) {
    return Unsupported("so few units would fill few of a vector's lanes");
  }
  FUSELITE_ASSIGN_OR_RETURN(const DividedTail tail,
                            DivideFloatTail(op, d.activation, RowsOfLine(d)));
  kernels::ProductKernelSpec spec;
  spec.source = form.source(inputs.x, d, context.isa);
  spec.value_bytes = form.value_bytes;
  spec.tail_is_linear = kernels::TailIsLinear(tail.emitted);
  spec.micro_kernel = [&](const kernels::DepthRuns& depth, ProductProblem* problem) {
    problem->rest = tail.RestOnFloats(context.isa);
    if (form.form_left != nullptr) form.form_left(depth, problem);
    return form.micro_kernel(depth, *problem, tail.emitted, context.isa);
  };
  return PlanProductKernel(op, d, spec, context);
}

}  // namespace fuselite::jit
