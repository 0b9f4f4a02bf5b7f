// Winograd's algorithm in whole numbers (kernels/winograd/integer_algorithm.h), up to the sums of
// the convolution: what becomes of them is a derived class's.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/winograd/integer_algorithm.h"
#include "kernels/winograd/winograd_kernel.h"

namespace fuselite::kernels {

// What the vectorized tail takes to bring a tile's four vectors of sums to bytes, measured in
// layers of 16 and 32 channels.
inline constexpr WinogradTile kIntegerTiles[] = {{2, 1}};
inline constexpr WinogradNumbers kWinogradIntegers = {
    .bytes = sizeof(int16_t), .tiles = kIntegerTiles, .tail_cycles = 95};

// Refuses where a plain product, whose micro-kernel `plain` makes, is estimated to take less time.
Status CheckIntegerWinogradPays(const ProductDescription& conv,
                                const MakeWinogradMicroKernel& micro_kernel,
                                const MakeWinogradMicroKernel& plain);

// Whether four times the largest sum of 9 taps for each channel, activations within +-255, has 32
// bits.
Status CheckIntegerSums(int64_t channels, int64_t largest_weight);

class IntegerWinogradKernel : public WinogradKernel {
 protected:
  // Sums of `rows` pixels of the output from pixel `row` on, of `channels` channels from `channel`
  // on: dense, bias added where Bias() has one. They may be written over.
  struct SumRows {
    int32_t* sums;
    int64_t row, rows, channel, channels;
  };

  // The first that a derived class does: values are those of the images that `sides` has, and those
  // of the filters.
  Status PlanIntegers(const PlanContext& context, const WinogradCut& cut, WinogradSides sides,
                      const WinogradValues& images, const WinogradValues& filters,
                      const MakeWinogradMicroKernel& micro_kernel);

  virtual const int32_t* Bias(const KernelArgs& args) const = 0;  // null where there is none
  virtual void StoreRows(const KernelArgs& args, const SumRows& rows) const = 0;

 private:
  // The sums of outputs, row by row of the tiles, and what those beyond the image are written to.
  int64_t row_pixels() const { return cut().block_tiles * 2; }
  size_t finish_bytes() const override;
  void TransformInput(const std::byte* const* pixels, std::byte* to,
                      int64_t term_bytes) const override;
  void TransformFilter(const std::byte* taps, std::byte* to, int64_t filter_bytes) const override;
  void Finish(const KernelArgs& args, const Tiles& tiles, int64_t chunk, const std::byte* sums,
              std::byte* scratch) const override;

  const IntegerWinogradTransforms* transforms_ = nullptr;
  WinogradValues images_, filters_;
};

// The plan of a derived class.
template <class Derived>
Result<KernelPlan> PlanIntegerKernel(const OpDescription& op, const PlanContext& context,
                                     const ProductDescription& conv,
                                     const MakeWinogradMicroKernel& micro_kernel) {
  Derived draft;
  const WinogradCut cut =
      CutForWinograd(conv, kWinogradIntegers, kIntegerTiles[0], context.threads);
  FUSELITE_RETURN_IF_ERROR(draft.Plan(op, context, conv, cut, micro_kernel));
  return KernelPlan::Of(std::move(draft),
                        [](Derived& kernel, const OpDescription& described,
                           const BuildContext& build) { return kernel.Build(described, build); });
}

}  // namespace fuselite::kernels
