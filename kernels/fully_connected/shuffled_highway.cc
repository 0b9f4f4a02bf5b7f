#include "kernels/fully_connected/shuffled.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fully_connected/shuffled_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_FULLY_CONNECTED_SHUFFLED_HIGHWAY_ONCE_
#define FUSELITE_KERNELS_FULLY_CONNECTED_SHUFFLED_HIGHWAY_ONCE_
namespace fuselite::kernels {

// The most that WidenShuffled makes of a byte.
inline constexpr int64_t kMostWidened = 4;

// Functions of a target.
struct ShuffledProduct {
  // The bytes of a row without their zero point as 16 bits, each sixteen of them as often one after
  // the other as a vector has room for.
  void (*widen)(const uint8_t* x, int64_t depth, int16_t* to);
  // Sums of four units by a row that was widened so, to sums[0, 4).
  void (*sums)(const int16_t* x, const int8_t* weights, int64_t depth, int32_t* sums);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<int16_t, 2 * kShuffledDepth>;
inline constexpr int64_t kWords = hn::MaxLanes(Words());
inline constexpr int64_t kWidened = kWords > kShuffledDepth ? kWords : kShuffledDepth;
static_assert(kWidened * sizeof(int16_t) <= kMostWidened * kShuffledDepth);

void WidenShuffled(const uint8_t* x, int64_t depth, int16_t* to) {
  const hn::CappedTag<int16_t, kShuffledDepth> d;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto sign = hn::Set(d, int16_t{kShuffledSign});
  for (int64_t at = 0; at < depth; at += kShuffledDepth, to += kWidened) {
    for (int64_t i = 0; i < kWidened; i += lanes) {
      const auto values = hn::PromoteTo(d, hn::LoadU(bytes, x + at + i % kShuffledDepth));
      hn::StoreU(hn::Sub(values, sign), d, to + i);
    }
  }
}

// Each vector of words holds weights of two units, of one or of half a one, and so do its sums.
void ShuffledSums(const int16_t* x, const int8_t* weights, int64_t depth, int32_t* sums) {
  constexpr int64_t kBlock = kShuffledUnits * kShuffledDepth, kVectors = kBlock / kWords;
  const Words d;
  const hn::RepartitionToWide<Words> wide;
  const hn::Rebind<int8_t, Words> bytes;
  hn::Vec<decltype(wide)> even[kVectors], odd[kVectors];
#pragma GCC unroll 8
  for (int64_t v = 0; v < kVectors; ++v) even[v] = odd[v] = hn::Zero(wide);
  for (int64_t at = 0; at < depth; at += kShuffledDepth, x += kWidened, weights += kBlock) {
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto w = hn::PromoteTo(d, hn::LoadU(bytes, weights + v * kWords));
      const auto inputs = hn::LoadU(d, x + v * kWords % kWidened);
      even[v] = hn::ReorderWidenMulAccumulate(wide, w, inputs, even[v], odd[v]);
    }
  }
  alignas(64) int32_t parts[kBlock / 2];
#pragma GCC unroll 8
  for (int64_t v = 0; v < kVectors; ++v) {
    hn::Store(hn::Add(even[v], odd[v]), wide, parts + v * kWords / 2);
  }
  for (int64_t u = 0; u < kShuffledUnits; ++u) {
    const int32_t* const own = parts + u * kShuffledDepth / 2;
    sums[u] = std::accumulate(own, own + kShuffledDepth / 2, int32_t{0});
  }
}

ShuffledProduct Product() { return {WidenShuffled, ShuffledSums}; }

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

class ShuffledRows {
 public:
  ShuffledRows(const FullyConnectedShape& shape, QuantizedTail tail, Isa isa,
               const ShuffledProduct& product)
      : shape_(shape), tail_(std::move(tail)), apply_(ApplyTail(isa)), product_(product) {}

  Work work() const {
    return {.units = shape_.units / kShuffledUnits,
            .grain = GrainFor(shape_.rows * shape_.depth * kShuffledUnits / 16),
            .scratch_bytes = sums_bytes() + shape_.rows * row_bytes()};
  }

  void Run(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* const x = static_cast<const uint8_t*>(args.inputs[0]);
    for (int64_t row = 0; row < shape_.rows; ++row) {
      product_.widen(x + row * shape_.depth, shape_.depth, Widened(args, row));
    }
    for (int64_t first = begin; first < end; first += kTogether) {
      RunSome(args, first, std::min(kTogether, end - first));
    }
    if (begin == 0) ShuffleInput(shape_, x, static_cast<uint8_t*>(args.outputs[1]));
  }

 private:
  // Blocks of units whose sums go through the tail at once.
  static constexpr int64_t kTogether = 64, kChannels = kTogether * kShuffledUnits;

  size_t sums_bytes() const { return shape_.rows * kChannels * sizeof(int32_t); }
  size_t row_bytes() const { return kMostWidened * shape_.depth; }
  int16_t* Widened(const KernelArgs& args, int64_t row) const {
    return reinterpret_cast<int16_t*>(args.scratch + sums_bytes() + row * row_bytes());
  }

  void RunSome(const KernelArgs& args, int64_t first, int64_t blocks) const {
    const int64_t channel = first * kShuffledUnits, channels = blocks * kShuffledUnits;
    auto* const sums = reinterpret_cast<int32_t*>(args.scratch);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t unit = block * kShuffledUnits;
      const auto* const weights =
          static_cast<const int8_t*>(args.inputs[1]) + (channel + unit) * shape_.depth;
      for (int64_t row = 0; row < shape_.rows; ++row) {
        product_.sums(Widened(args, row), weights, shape_.depth, sums + row * kChannels + unit);
      }
    }
    for (int64_t row = 0; row < shape_.rows; ++row) {
      for (int64_t c = 0; c < channels; ++c) {
        // Wraps around.
        int32_t& sum = sums[row * kChannels + c];
        sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                                   static_cast<uint32_t>(tail_.Bias(args, channel + c)));
      }
    }
    const int64_t element = BitWidth(tail_.output.type) / 8;
    apply_(tail_.tail, args.inputs,
           {.source = sums,
            .source_pitch = kChannels,
            .source_type = tail_.source_type,
            .destination = static_cast<std::byte*>(args.outputs[0]) + channel * element,
            .destination_pitch = tail_.output.pitch(),
            .destination_type = tail_.output.type,
            .row = 0,
            .rows = shape_.rows,
            .channel = channel,
            .channels = channels});
  }

  FullyConnectedShape shape_;
  QuantizedTail tail_;
  ApplyTailFunction* apply_;
  ShuffledProduct product_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildShuffledHighway(const OpDescription& op,
                                                     const BuildContext& context) {
  constexpr auto kProduct = FUSELITE_SIMD_TABLE(Product);
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_ASSIGN_OR_RETURN(auto* const product, kProduct.Require(context.isa));
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveRows(op));
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape.units));
  ShuffledRows rows(shape, std::move(tail), context.isa, product());
  const Work work = rows.work();
  return MakeKernel(std::string("fully_connected shuffled ") + SimdName(context.isa), work,
                    [rows = std::move(rows)](const KernelArgs& args, int64_t begin, int64_t end) {
                      if (begin < end) rows.Run(args, begin, end);
                    });
}

}  // namespace fuselite::kernels
#endif
