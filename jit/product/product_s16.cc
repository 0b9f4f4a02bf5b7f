#include "jit/product/product_s16.h"

#include <algorithm>
#include <cstring>

namespace fuselite::jit {

using kernels::DepthRuns;
using kernels::PanelChannels;
using kernels::RightMatrix;

namespace {

// Pairs of a depth end where its runs do.
constexpr int64_t kPair = 2;

Isa WithoutDotProducts(Isa isa) {
  return isa.without(Feature::kAvxVnni).without(Feature::kAvx512Vnni).without(Feature::kAmxInt8);
}

}  // namespace

Result<std::shared_ptr<const kernels::MicroKernel>> MicroKernelS16::Make(
    const DepthRuns& depth, const kernels::ProductProblem& problem, Isa isa) {
  std::shared_ptr<MicroKernelS16> kernel(new MicroKernelS16(WithoutDotProducts(isa)));
  GemmS8Spec& spec = kernel->spec_;
  spec.isa = kernel->isa_.features;
  spec.depth = depth;
  spec.a_step = problem.left.row;
  spec.a_runs = problem.left_runs;
  spec.out_step = problem.out.row * problem.out_row_bytes;
  FUSELITE_RETURN_IF_ERROR(CheckGemmS8(spec));
  return std::shared_ptr<const kernels::MicroKernel>(std::move(kernel));
}

void MicroKernelS16::PackPanel(const RightMatrix& right, const PanelChannels& panel,
                               std::byte* to) const {
  std::memset(to, 0, panel_bytes(panel.vectors));
  const int64_t width = int64_t{panel.vectors} * isa_.lanes();
  auto* const pairs = reinterpret_cast<int16_t*>(to) + width * kPair;  // behind the biases
  for (int64_t channel = panel.first; channel < panel.last; ++channel) {
    const auto* w = static_cast<const int16_t*>(right.values) + channel * right.n_step;
    int16_t* pair = pairs + (channel - panel.first) * kPair;
    for (int64_t outer = 0; outer < spec_.depth.outer; ++outer) {
      for (const DepthRuns::Run& run : spec_.depth.runs) {
        for (int64_t k = 0; k < run.length; k += kPair, pair += width * kPair) {
          const int64_t count = std::min(kPair, run.length - k);
          for (int64_t i = 0; i < count; ++i, w += right.k_step) pair[i] = *w;
        }
      }
    }
  }
}

std::string MicroKernelS16::layout() const {
  std::string text = internal::Join("s16 k", spec_.depth.outer);
  for (const auto& run : spec_.depth.runs) text += internal::Join('+', run.length);
  return text;
}

Result<std::shared_ptr<const kernels::MicroKernel>> MicroKernelS16::Emit(
    std::span<const kernels::Tile> tiles, const kernels::TileCalls& calls,
    const std::string& name) const {
  std::shared_ptr<MicroKernelS16> kernel(new MicroKernelS16(*this));
  kernel->spec_.across = calls.order == kernels::TileOrder::kAcross;
  FUSELITE_ASSIGN_OR_RETURN(kernel->code_, EmitGemmS8(kernel->spec_, tiles, name));
  for (size_t i = 0; i < tiles.size(); ++i) {
    kernel->entries_[i] = kernel->code_->entry<GemmS8Function>(i);
  }
  return std::shared_ptr<const kernels::MicroKernel>(std::move(kernel));
}

void MicroKernelS16::Run(const kernels::TileRun& run) const {
  GemmS8Args args;  // members that the code does not read are left alone
  args.a = run.left;
  args.panel = run.panel;
  args.out = run.out;
  args.tiles = run.tiles;
  entries_[run.tile](&args);
}

}  // namespace fuselite::jit
