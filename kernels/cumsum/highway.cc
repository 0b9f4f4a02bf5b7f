// Running sums of many lines at once: vectors of neighbouring lines where the axis is not the
// innermost, else four lines, whose additions overlap. Every sum is made in the reference's order.
#include <algorithm>
#include <type_traits>

#include "kernels/cumsum/cumsum.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cumsum/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_CUMSUM_ONCE_
#define FUSELITE_KERNELS_CUMSUM_ONCE_
namespace fuselite::kernels {

// Lines of a unit.
constexpr int64_t kCumsumLines = 256;

// `count` <= kCumsumLines lines of `size` elements, from `in` to `out`, which may be one: element i
// of line l is at l * line + i * step. One of the two steps is 1 or -1.
struct CumsumBlock {
  int64_t count, size, line, step;
  int64_t repeats, distance;  // so many such blocks, so many elements apart
  bool exclusive;
};
using CumsumFunction = void(const void* in, void* out, const CumsumBlock& block);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `kVectors` vectors of neighbouring lines, whose sums stay in registers.
template <bool kExclusive, int kVectors, class D, class T>
HWY_INLINE void SumColumns(D d, const T* in, T* out, const CumsumBlock& block) {
  hn::Vec<D> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t i = 0; i < block.size; ++i, in += block.step, out += block.step) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = v * static_cast<int64_t>(hn::Lanes(d));
      const auto before = sums[v];
      sums[v] = hn::Add(before, hn::LoadU(d, in + at));
      hn::StoreU(kExclusive ? before : sums[v], d, out + at);
    }
  }
}

template <bool kExclusive, class T>
HWY_INLINE void SumNeighbours(const T* in, T* out, const CumsumBlock& block) {
  int64_t l = 0;
  const auto sum = [&]<int kVectors>(auto d, std::integral_constant<int, kVectors>) HWY_ATTR {
    const auto lines = kVectors * static_cast<int64_t>(hn::Lanes(d));
    for (; l + lines <= block.count; l += lines) {
      SumColumns<kExclusive, kVectors>(d, in + l, out + l, block);
    }
  };
  constexpr std::integral_constant<int, 1> kOne;
  sum(hn::ScalableTag<T>(), std::integral_constant<int, 4>());
  sum(hn::ScalableTag<T>(), kOne);
  sum(hn::CappedTag<T, 8>(), kOne);
  sum(hn::CappedTag<T, 4>(), kOne);
  sum(hn::CappedTag<T, 2>(), kOne);
  sum(hn::CappedTag<T, 1>(), kOne);
}

template <bool kExclusive, int kLines, class T>
HWY_INLINE void SumLines(const T* in, T* out, const CumsumBlock& block) {
  T sums[kLines] = {};
  for (int64_t i = 0; i < block.size; ++i) {
#pragma GCC unroll 4
    for (int l = 0; l < kLines; ++l) {
      const int64_t at = l * block.line + i * block.step;
      const T before = sums[l], after = before + in[at];
      sums[l] = after;
      out[at] = kExclusive ? before : after;
    }
  }
}

// Four at a time.
template <bool kExclusive, class T>
HWY_INLINE void SumApart(const T* in, T* out, const CumsumBlock& block) {
  int64_t l = 0;
  const auto sum = [&]<int kLines>(std::integral_constant<int, kLines>) HWY_ATTR {
    for (; l + kLines <= block.count; l += kLines) {
      SumLines<kExclusive, kLines>(in + l * block.line, out + l * block.line, block);
    }
  };
  sum(std::integral_constant<int, 4>());
  sum(std::integral_constant<int, 2>());
  sum(std::integral_constant<int, 1>());
}

template <bool kExclusive, class T>
void SumBlocks(const T* in, T* out, const CumsumBlock& block) {
  for (int64_t i = 0; i < block.repeats; ++i, in += block.distance, out += block.distance) {
    block.line == 1 ? SumNeighbours<kExclusive>(in, out, block)
                    : SumApart<kExclusive>(in, out, block);
  }
}

template <class T>
void Cumsum(const void* in, void* out, const CumsumBlock& block) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  block.exclusive ? SumBlocks<true>(from, to, block) : SumBlocks<false>(from, to, block);
}

CumsumFunction* CumsumFor(DataType type) {
  switch (type) {
    case DataType::kFloat32: return Cumsum<float>;
    case DataType::kInt32: return Cumsum<uint32_t>;
    default: return Cumsum<uint64_t>;
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildCumsumHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  constexpr auto kCumsum = FUSELITE_SIMD_TABLE(CumsumFor);
  if (!op.tail.empty()) return Unsupported("CUMSUM takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_ASSIGN_OR_RETURN(auto* const function_for, kCumsum.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const int axis, CumsumAxis(op));
  const DataType type = op.inputs[0].type;
  const Shape& shape = op.inputs[0].shape;
  const int64_t size = shape[axis], stride = shape.elements(axis + 1, shape.rank());
  const int64_t lines = size ? shape.elements() / size : 0;
  // Neighbouring lines, `stride` of them, or all where each is by itself.
  const int64_t together = stride == 1 ? lines : stride;
  const int64_t blocks = (together + kCumsumLines - 1) / kCumsumLines;
  return MakeKernel(
      "cumsum " + std::string(DataTypeName(type)) + " " + SimdName(context.isa),
      {.units = lines ? lines / together * blocks : 0,
       .grain = GrainFor(size * std::min(together, kCumsumLines))},
      [=, function = function_for(type), params = op.params.as<CumsumParams>(),
       bytes = BitWidth(type) / 8](const KernelArgs& args, int64_t begin, int64_t end) {
        const int64_t repeats = blocks == 1 ? end - begin : 1;
        for (int64_t unit = begin; unit < end; unit += repeats) {
          const int64_t outer = unit / blocks, first = unit % blocks * kCumsumLines;
          const CumsumBlock block{.count = std::min(kCumsumLines, together - first),
                                  .size = size,
                                  .line = stride == 1 ? size : 1,
                                  .step = params.reverse ? -stride : stride,
                                  .repeats = repeats,
                                  .distance = size * together,
                                  .exclusive = params.exclusive};
          const int64_t start = outer * size * together + first * block.line +
                                (params.reverse ? (size - 1) * stride : 0);
          function(static_cast<const std::byte*>(args.inputs[0]) + start * bytes,
                   static_cast<std::byte*>(args.outputs[0]) + start * bytes, block);
        }
      });
}

}  // namespace fuselite::kernels
#endif
