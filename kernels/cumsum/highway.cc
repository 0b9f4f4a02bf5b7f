// Running sums of many lines at once: of neighbouring lines where the axis is not the innermost,
// else of four, whose additions overlap.
//
// The loops are plain ones that the compiler turns into vectors of each target (this file is
// compiled with -O3). Every sum is made in the reference's order.
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

// Lines of a unit: their sums stay in the first-level cache.
constexpr int64_t kCumsumLines = 256;

// `count` <= kCumsumLines lines of `size` elements, from `in` to `out`, which may be one: element i
// of line l is at l * line + i * step. One of the two steps is 1 or -1.
struct CumsumBlock {
  int64_t count, size, line, step;
  bool exclusive;
};
using CumsumFunction = void(const void* in, void* out, const CumsumBlock& block);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

// One element of each of `count` neighbouring lines.
template <bool kExclusive, class T>
HWY_INLINE void AddRow(const T* in, T* out, T* sums, int64_t count) {
  for (int64_t l = 0; l < count; ++l) {
    const T before = sums[l], after = before + in[l];
    sums[l] = after;
    out[l] = kExclusive ? before : after;
  }
}

template <bool kExclusive, class T>
void SumNeighbours(const T* in, T* out, const CumsumBlock& block) {
  alignas(64) T sums[kCumsumLines];
  std::fill_n(sums, block.count, T{0});
  for (int64_t i = 0; i < block.size; ++i) {
    AddRow<kExclusive>(in + i * block.step, out + i * block.step, sums, block.count);
  }
}

template <bool kExclusive, int kLines, bool kNeighbours, class T>
HWY_INLINE void SumLines(const T* in, T* out, const CumsumBlock& block) {
  const int64_t line = kNeighbours ? 1 : block.line;
  T sums[kLines] = {};
  for (int64_t i = 0; i < block.size; ++i) {
#pragma GCC unroll 8
    for (int l = 0; l < kLines; ++l) {
      const int64_t at = l * line + i * block.step;
      const T before = sums[l], after = before + in[at];
      sums[l] = after;
      out[at] = kExclusive ? before : after;
    }
  }
}

// Four at a time, of neighbours eight.
template <bool kExclusive, bool kNeighbours, class T>
void SumFewLines(const T* in, T* out, const CumsumBlock& block) {
  int64_t l = 0;
  const auto sum = [&]<int kLines>(std::integral_constant<int, kLines>) HWY_ATTR {
    for (; l + kLines <= block.count; l += kLines) {
      const int64_t first = kNeighbours ? l : l * block.line;
      SumLines<kExclusive, kLines, kNeighbours>(in + first, out + first, block);
    }
  };
  if constexpr (kNeighbours) sum(std::integral_constant<int, 8>());
  sum(std::integral_constant<int, 4>());
  sum(std::integral_constant<int, 2>());
  sum(std::integral_constant<int, 1>());
}

template <class T>
void Cumsum(const void* in, void* out, const CumsumBlock& block) {
  // Sums of so few neighbours stay in registers, where a row of vectors would have to be begun anew
  // for every element.
  constexpr int64_t kFewLines = 16;
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  if (block.line == 1 && block.count >= kFewLines) {
    return block.exclusive ? SumNeighbours<true>(from, to, block)
                           : SumNeighbours<false>(from, to, block);
  }
  if (block.line == 1) {
    return block.exclusive ? SumFewLines<true, true>(from, to, block)
                           : SumFewLines<false, true>(from, to, block);
  }
  return block.exclusive ? SumFewLines<true, false>(from, to, block)
                         : SumFewLines<false, false>(from, to, block);
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
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t outer = unit / blocks, first = unit % blocks * kCumsumLines;
          const CumsumBlock block{std::min(kCumsumLines, together - first), size,
                                  stride == 1 ? size : 1, params.reverse ? -stride : stride,
                                  params.exclusive};
          const int64_t start = outer * size * together + first * block.line +
                                (params.reverse ? (size - 1) * stride : 0);
          function(static_cast<const std::byte*>(args.inputs[0]) + start * bytes,
                   static_cast<std::byte*>(args.outputs[0]) + start * bytes, block);
        }
      });
}

}  // namespace fuselite::kernels
#endif
