// Sums of products of neighbouring lanes, which an instruction of some cores adds up by itself.

#ifndef FUSELITE_KERNELS_GEMM_ADD_TERMS_ONCE
#define FUSELITE_KERNELS_GEMM_ADD_TERMS_ONCE
#include <cstdint>

namespace fuselite::kernels {

// What is multiplied at a time, and whether an instruction adds its products up: Debian 12's
// Highway has no word for those.
enum class Terms : uint8_t { kPairs, kDotPairs, kDotQuads };

}  // namespace fuselite::kernels
#endif

// Per-target include guard.
#if defined(FUSELITE_KERNELS_GEMM_ADD_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELITE_KERNELS_GEMM_ADD_TERMS_INL_H_
#undef FUSELITE_KERNELS_GEMM_ADD_TERMS_INL_H_
#else
#define FUSELITE_KERNELS_GEMM_ADD_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How the target's dot products are encoded.
#undef FUSELITE_DOT
#if HWY_TARGET == HWY_AVX2
#define FUSELITE_DOT "%{vex%} "
#else
#define FUSELITE_DOT ""
#endif

// even + odd grows by the products of x and w, which are vectors of int16, or of bytes where they
// are quads: uint8 by int8, on cores that have their instruction. D: int32.
template <Terms kTerms, class D, class V = hn::Vec<D>,
          class V16 = hn::Vec<hn::Repartition<int16_t, D>>>
HWY_INLINE V AddTerms([[maybe_unused]] D d, V16 x, V16 w, V even, [[maybe_unused]] V& odd) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  // Of pairs, too: GCC 12 otherwise keeps a sum and what it was a step before in two registers, and
  // some of them in memory (1.3 of the time on AVX2).
  if constexpr (kTerms == Terms::kDotPairs) {
    asm(FUSELITE_DOT "vpdpwssd %2, %1, %0" : "+v"(even.raw) : "v"(x.raw), "v"(w.raw));
  } else if constexpr (kTerms == Terms::kDotQuads) {
    asm(FUSELITE_DOT "vpdpbusd %2, %1, %0" : "+v"(even.raw) : "v"(x.raw), "v"(w.raw));
  } else {
    V products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
        : "+v"(even.raw), "=&v"(products.raw)
        : "v"(x.raw), "v"(w.raw));
  }
  return even;
#else
  return hn::ReorderWidenMulAccumulate(d, x, w, even, odd);
#endif
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
