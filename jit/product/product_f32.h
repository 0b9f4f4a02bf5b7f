// Matrix products of float32: the micro-kernel that is emitted for one, and what those have in
// common with it that multiply float32 values in another form (jit/product/product_bf16.h).
#pragma once

#include <array>

#include "jit/product/gemm_emitter.h"
#include "kernels/operator.h"
#include "kernels/product/description.h"
#include "kernels/product/micro_kernel.h"
#include "kernels/product/product.h"
#include "kernels/product/source.h"

namespace fuselite::jit {

// Packed panels hold the bias, then for each step of the depth the weights of all the panel's
// channels.
class MicroKernelF32 : public kernels::MicroKernel {
 public:
  // `tail` is emitted wholly (DivideFloatTail); rows of `problem` are apart by problem.out.row in
  // the output, as the tail's operands are addressed. kUnsupported where strides do not fit
  // instructions.
  static Result<std::shared_ptr<const kernels::MicroKernel>> Make(
      const kernels::DepthRuns& depth, const kernels::ProductProblem& problem,
      const kernels::Tail& tail, Isa isa);

  std::string types() const override { return "f32"; }
  std::string target() const override { return std::string(isa_.name()) + " jit"; }
  int lanes() const override { return isa_.lanes(); }
  int max_rows(int vectors) const override { return MaxTileRows(isa_, vectors); }
  double TileCycles(int rows, int vectors) const override;
  int64_t row_bytes() const override {
    return spec_.depth.FreshBytes(spec_.a_step, spec_.bf16 ? 2 : 4);
  }
  int64_t small_block_bytes() const override { return 64 << 10; }
  int64_t large_block_bytes() const override;
  size_t panel_bytes(int vectors) const override {
    return static_cast<size_t>(vectors) * isa_.bytes * (steps_ + 1);
  }
  void PackPanel(const kernels::RightMatrix& right, const kernels::PanelChannels& channels,
                 std::byte* to) const override;
  std::string layout() const override { return internal::Join("f32 k", steps_); }
  Result<std::shared_ptr<const kernels::MicroKernel>> Emit(std::span<const kernels::Tile> tiles,
                                                           const kernels::TileCalls& calls,
                                                           const std::string& name) const override;
  void Run(const kernels::TileRun& run) const override;

 protected:
  explicit MicroKernelF32(Isa isa) : isa_(isa) {}
  // What Make does; `bf16` as in GemmSpec.
  Status Plan(const kernels::DepthRuns& depth, const kernels::ProductProblem& problem,
              const kernels::Tail& tail, bool bf16);
  // The code of a copy, for Emit.
  virtual Result<SharedCode> EmitCode(std::span<const kernels::Tile> tiles,
                                      const kernels::TileCalls& /*calls*/,
                                      const std::string& name) {
    return EmitGemm(spec_, tiles, name);
  }
  virtual std::shared_ptr<MicroKernelF32> Copy() const {
    return std::make_shared<MicroKernelF32>(*this);
  }
  // Starts a panel: the biases, and zeros wherever no channel is. Returns the place of the weights.
  float* PackBias(const kernels::RightMatrix& right, const kernels::PanelChannels& channels,
                  std::byte* to) const;

  GemmSpec& spec() { return spec_; }
  const GemmSpec& spec() const { return spec_; }
  const VectorIsa& isa() const { return isa_; }
  const kernels::DepthRuns& depth() const { return spec_.depth; }
  int64_t steps() const { return steps_; }

 private:
  std::array<GemmFunction*, 4> entries_{};  // into code_
  kernels::Tail tail_;                      // addressed by rows of the output
  VectorIsa isa_;
  GemmSpec spec_;
  int64_t steps_ = 0;  // of the depth
  SharedCode code_;
};

// The form in which values are multiplied.
struct FloatProductForm {
  int64_t value_bytes = 0;  // of those that the source leaves
  std::unique_ptr<kernels::Source> (*source)(int input, const kernels::ProductDescription&,
                                             Isa isa);
  decltype(&MicroKernelF32::Make) micro_kernel;
  // Has the left rows brought into the form that the micro-kernel reads; null: the source does.
  void (*form_left)(const kernels::DepthRuns& depth, kernels::ProductProblem* problem) = nullptr;
};
// Whether rows are brought into another form a block at a time, right before they are multiplied,
// rather than in a pass over all of them: they are pixels of the input, and there are several.
bool HasPixelRows(const kernels::ProductDescription& description);
// What such rows of so many bytes take each: whole cache lines, and no multiple of 512 bytes, as
// they would then share a few lines of L1.
int64_t FormedRowBytes(int64_t bytes);

// Products of float32 operands in some form, as PlanProductF32 describes them.
Result<kernels::KernelPlan> PlanFloatProduct(const kernels::OpDescription&,
                                             const kernels::PlanContext&,
                                             const FloatProductForm& form);

// CONV_2D, FULLY_CONNECTED, BATCH_MATMUL, TRANSPOSE_CONV and DEPTHWISE_CONV_2D of one channel, all
// of float32. Weights that are known only at run time are packed at each run, where there are rows
// enough to repay it.
Result<kernels::KernelPlan> PlanProductF32(const kernels::OpDescription&,
                                           const kernels::PlanContext&);

}  // namespace fuselite::jit
