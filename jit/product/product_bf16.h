// Matrix products of float32 whose values are rounded to bfloat16 and multiplied in pairs: twice
// the multiply-adds in the time of float32's on AMD's cores, sixteen times with AMX, and half the
// bytes of weights. For precision=fast.
#pragma once

#include "jit/product/amx.h"
#include "jit/product/product_f32.h"

namespace fuselite::jit {

// MicroKernelF32 over rows of bfloat16: bias, sums, tail and output are float32.
class MicroKernelBf16 final : public MicroKernelF32 {
 public:
  // What MicroKernelF32::Make takes; the left side is bfloat16. `isa` has AVX512-BF16. With
  // kAmxBf16 the value behind a run of odd length is read, and multiplied by zero.
  // kUnsupported also where the core multiplies float32 faster.
  static Result<std::shared_ptr<const kernels::MicroKernel>> Make(
      const kernels::DepthRuns& depth, const kernels::ProductProblem& problem,
      const kernels::Tail& tail, Isa isa);

  std::string types() const override { return "bf16"; }
  std::string target() const override { return in_tiles_ ? "amx jit" : "avx512bf16 jit"; }
  int max_rows(int vectors) const override;
  double TileCycles(int rows, int vectors) const override;
  int rows_above() const override { return in_tiles_ ? AmxShapes::kRows : 0; }
  bool goes_across() const override { return !in_tiles_; }
  void Enter() const override;
  void Leave() const override;
  void PackPanel(const kernels::RightMatrix& right, const kernels::PanelChannels& channels,
                 std::byte* to) const override;
  std::string layout() const override;

 private:
  explicit MicroKernelBf16(Isa isa) : MicroKernelF32(isa) {}
  std::shared_ptr<MicroKernelF32> Copy() const override {
    return std::shared_ptr<MicroKernelF32>(new MicroKernelBf16(*this));
  }
  Result<SharedCode> EmitCode(std::span<const kernels::Tile> tiles, const kernels::TileCalls& calls,
                              const std::string& name) override;
  // Weights whose columns, or whose rows, lie in one piece.
  void PackColumns(const kernels::RightMatrix& right, const kernels::PanelChannels& channels,
                   std::byte* to) const;
  void PackRows(const kernels::RightMatrix& right, const kernels::PanelChannels& channels,
                std::byte* to) const;
  // Column `column` of the right matrix as the pairs of all steps.
  void RoundColumn(const float* column, int64_t k_step, uint16_t* to) const;

  bool in_tiles_ = false;  // of AMX
  AmxShapes shapes_;
};

// What PlanProductF32 takes, with precision=fast and AVX512-BF16.
Result<kernels::KernelPlan> PlanProductBf16(const kernels::OpDescription&,
                                            const kernels::PlanContext&);

}  // namespace fuselite::jit
