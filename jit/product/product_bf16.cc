#include "jit/product/product_bf16.h"

#include <algorithm>

#include "jit/product/bf16.h"
#include "jit/product/float_operands.h"
#include "jit/product/gemm_amx_bf16_emitter.h"
#include "kernels/product/byte_groups.h"
#include "kernels/source/bf16_image.h"
#include "kernels/source/image_source.h"

namespace fuselite::jit {

using kernels::DepthRuns;
using kernels::PanelChannels;
using kernels::ProductProblem;
using kernels::RightMatrix;

namespace {

constexpr int64_t kBf16 = sizeof(uint16_t);
constexpr int64_t kLanes = 16;
// The next panel comes from beyond L2 at the pace of so many tiles. On Granite Rapids the layers of
// ResNet-50 with more than 1 MB of weights take 8 to 17% longer where the first tile fetches all of
// it: the other tiles then leave the memory idle.
constexpr int kFetchingTiles = 4;

// Calls `run(first, length)` for each of the depth's runs of consecutive terms, in order.
template <class Run>
void ForEachRun(const DepthRuns& depth, Run run) {
  int64_t first = 0;
  for (int64_t i = 0; i < depth.outer; ++i) {
    for (const DepthRuns::Run& each : depth.runs) {
      run(first, each.length);
      first += each.length;
    }
  }
}

}  // namespace

Result<std::shared_ptr<const kernels::MicroKernel>> MicroKernelBf16::Make(
    const DepthRuns& depth, const ProductProblem& problem, const kernels::Tail& tail, Isa isa) {
  std::shared_ptr<MicroKernelBf16> kernel(new MicroKernelBf16(isa));
  FUSELITE_RETURN_IF_ERROR(kernel->Plan(depth, problem, tail, true));
  const bool one_row = problem.grid.line_rows == 1;
  if (!one_row && isa.has(Feature::kAmxBf16)) {
    std::shared_ptr<MicroKernelBf16> in_tiles(new MicroKernelBf16(*kernel));
    in_tiles->in_tiles_ = true;
    if (CheckAmxGemm(kernel->spec()).ok() &&
        CyclesOfTiles(problem, *in_tiles) < CyclesOfTiles(problem, *kernel)) {
      return std::shared_ptr<const kernels::MicroKernel>(std::move(in_tiles));
    }
  }
  // Granite Rapids takes two cycles for 32 products of bfloat16 and one for those of float32; a
  // single row waits for its weights.
  if (!one_row && isa.has(Trait::kTwoVectorPorts)) {
    return Unsupported("this core multiplies float32 faster than bfloat16 without tiles");
  }
  return std::shared_ptr<const kernels::MicroKernel>(std::move(kernel));
}

int MicroKernelBf16::max_rows(int vectors) const {
  return in_tiles_ ? MaxAmxTileRows(spec().a_runs, vectors) : MicroKernelF32::max_rows(vectors);
}

double MicroKernelBf16::TileCycles(int rows, int vectors) const {
  return in_tiles_ ? AmxTileCycles(spec(), rows, vectors)
                   : MicroKernelF32::TileCycles(rows, vectors);
}

Result<SharedCode> MicroKernelBf16::EmitCode(std::span<const kernels::Tile> tiles,
                                             const kernels::TileCalls& calls,
                                             const std::string& name) {
  if (!in_tiles_) return MicroKernelF32::EmitCode(tiles, calls, name);
  spec().amx_rows = AmxBlockRows(spec().a_runs, tiles.front().rows);
  spec().fetched_parts = calls.tiles >= kFetchingTiles ? kFetchingTiles : calls.tiles >= 2 ? 2 : 1;
  shapes_ = ShapesOf(AmxProductOf(spec()));
  return EmitAmxGemm(spec(), tiles, name);
}

void MicroKernelBf16::Enter() const {
  if (in_tiles_) EnterAmx(shapes_);
}

void MicroKernelBf16::Leave() const {
  if (in_tiles_) LeaveAmx();
}

std::string MicroKernelBf16::layout() const {
  std::string layout = internal::Join("bf16 k", depth().outer);
  for (const DepthRuns::Run& run : depth().runs) layout += internal::Join('*', run.length);
  return layout;
}

void MicroKernelBf16::PackPanel(const RightMatrix& right, const PanelChannels& channels,
                                std::byte* to) const {
  auto* const weights = reinterpret_cast<std::byte*>(PackBias(right, channels, to));
  right.n_step == 1 ? PackRows(right, channels, weights) : PackColumns(right, channels, weights);
}

void MicroKernelBf16::PackRows(const RightMatrix& right, const PanelChannels& channels,
                               std::byte* to) const {
  const auto* const values = static_cast<const float*>(right.values) + channels.first;
  const int64_t used = channels.last - channels.first, step = isa().bytes * channels.vectors;
  ForEachRun(depth(), [&](int64_t first, int64_t length) {
    for (int64_t k = first; k < first + length; k += 2, to += step) {
      const float* const even = values + k * right.k_step;
      RoundToBf16Pairs(even, k + 1 < first + length ? even + right.k_step : nullptr, used,
                       reinterpret_cast<uint32_t*>(to));
    }
  });
}

// A vector's columns at a time, each of which becomes a row of pairs.
void MicroKernelBf16::PackColumns(const RightMatrix& right, const PanelChannels& channels,
                                  std::byte* to) const {
  const int64_t pairs = 2 * steps(), step = isa().bytes * channels.vectors;
  std::vector<uint16_t> rounded(static_cast<size_t>(kLanes * pairs));
  std::array<const uint8_t*, kLanes> rows;
  for (int64_t i = 0; i < kLanes; ++i) {
    rows[i] = reinterpret_cast<const uint8_t*>(rounded.data() + i * pairs);
  }
  const auto* const values = static_cast<const float*>(right.values);
  for (int64_t first = channels.first; first < channels.last; first += kLanes, to += isa().bytes) {
    const int64_t used = std::min(kLanes, channels.last - first);
    for (int64_t i = 0; i < used; ++i) {
      RoundColumn(values + (first + i) * right.n_step, right.k_step, rounded.data() + i * pairs);
    }
    std::fill(rounded.begin() + used * pairs, rounded.end(), uint16_t{0});
    kernels::PackGroups(isa().features, {}, rows, pairs * kBf16, to, step);
  }
}

void MicroKernelBf16::RoundColumn(const float* column, int64_t k_step, uint16_t* to) const {
  ForEachRun(depth(), [&](int64_t first, int64_t length) {
    if (k_step == 1) {
      RoundToBf16(column + first, length, to);
    } else {
      for (int64_t k = 0; k < length; ++k) RoundToBf16(column + (first + k) * k_step, 1, to + k);
    }
    if (length % 2 != 0) to[length] = 0;
    to += (length + 1) / 2 * 2;
  });
}

namespace {

void RoundRows(const DepthRuns& depth, ProductProblem* problem) {
  problem->FormLeft(RoundRowsToBf16, depth.depth() * int64_t{sizeof(float)},
                    FormedRowBytes(depth.depth() * kBf16));
}

// Behind the last of an odd number of values there is another row, or nothing.
Result<std::shared_ptr<const kernels::MicroKernel>> MakeOfTransposed(const DepthRuns& depth,
                                                                     const ProductProblem& problem,
                                                                     const kernels::Tail& tail,
                                                                     Isa isa) {
  const bool odd = depth.depth() % 2 != 0;
  return MicroKernelBf16::Make(depth, problem, tail, odd ? isa.without(Feature::kAmxBf16) : isa);
}

// The product of values that are bfloat16 in memory. Tiles read whole pairs, and behind the last of
// an odd number of channels something else may lie, which is no number.
Result<kernels::KernelPlan> PlanOfRounded(const kernels::OpDescription& op,
                                          const kernels::ProductDescription& product,
                                          const kernels::PlanContext& context) {
  if (product.left_transposed) return Unsupported("transposed rows of bfloat16 are not read");
  if (product.group_in() % 2 != 0)
    return Unsupported("odd numbers of channels of bfloat16 are not read");
  return PlanFloatProduct(op, context, {kBf16, kernels::BFloat16Source, MicroKernelBf16::Make});
}

}  // namespace

Result<kernels::KernelPlan> PlanProductBf16(const kernels::OpDescription& op,
                                            const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckBf16(context));
  FUSELITE_ASSIGN_OR_RETURN(const kernels::ProductDescription product, op.op->product(op));
  if (product.volume) return Unsupported("volumes are not converted to bfloat16");
  if (op.inputs[op.op->product_inputs->x].type == DataType::kBFloat16) {
    return PlanOfRounded(op, product, context);
  }
  if (HasPixelRows(product)) {
    return PlanFloatProduct(
        op, context, {sizeof(float), kernels::FloatSource, MicroKernelBf16::Make, RoundRows});
  }
  const auto source = [](int input, const kernels::ProductDescription& d, Isa) {
    return kernels::Bf16Source(input, d, RoundToBf16);
  };
  return PlanFloatProduct(
      op, context,
      {kBf16, source, product.left_transposed ? MakeOfTransposed : MicroKernelBf16::Make});
}

}  // namespace fuselite::jit
