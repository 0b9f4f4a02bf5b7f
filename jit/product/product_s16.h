// Matrix products of pairs of 16-bit integers with constant weights of 16 bits, whose sums are
// stored as they are: those of Winograd's terms.
#pragma once

#include <array>

#include "jit/product/gemm_s8_emitter.h"
#include "kernels/product/micro_kernel.h"
#include "kernels/product/product.h"

namespace fuselite::jit {

// Panels are those of gemm_s8_emitter.h's pair products, without a bias.
class MicroKernelS16 final : public kernels::MicroKernel {
 public:
  // int16 on both sides, int32 in the output; sums wrap around. kUnsupported where strides do not
  // fit instructions. `isa` may have dot products, which are not used.
  static Result<std::shared_ptr<const kernels::MicroKernel>> Make(
      const kernels::DepthRuns& depth, const kernels::ProductProblem& problem, Isa isa);

  std::string types() const override { return "s16"; }
  std::string target() const override { return std::string(isa_.name()) + " jit"; }
  int lanes() const override { return isa_.lanes(); }
  int max_rows(int vectors) const override { return MaxS8TileRows(isa_, vectors); }
  double TileCycles(int rows, int vectors) const override {
    return PairTileCycles(DepthGroups(spec_), rows, vectors);
  }
  int64_t row_bytes() const override { return spec_.depth.FreshBytes(spec_.a_step, 2); }
  int64_t small_block_bytes() const override { return 32 << 10; }
  size_t panel_bytes(int vectors) const override {
    return static_cast<size_t>(PanelBytes(spec_, vectors));
  }
  void PackPanel(const kernels::RightMatrix& right, const kernels::PanelChannels& panel,
                 std::byte* to) const override;
  std::string layout() const override;
  Result<std::shared_ptr<const kernels::MicroKernel>> Emit(std::span<const kernels::Tile> tiles,
                                                           const kernels::TileCalls& calls,
                                                           const std::string& name) const override;
  void Run(const kernels::TileRun& run) const override;

 private:
  explicit MicroKernelS16(Isa isa) : isa_(isa) {}

  std::array<GemmS8Function*, 4> entries_{};  // into code_
  VectorIsa isa_;
  GemmS8Spec spec_;
  SharedCode code_;
};

}  // namespace fuselite::jit
