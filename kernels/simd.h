// The Highway targets that kernels are compiled for, and how one is chosen.
//
// A kernel file is compiled once per target (hwy/foreach_target.h) and registers each target's
// function in a SimdTable; the choice takes the ISA as an argument, so that any test can ask for
// any target. A file looks like this:
//
//   #include "kernels/softmax/softmax.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/softmax/highway.cc"
//   #include <hwy/foreach_target.h>   // must come before highway.h
//   #include <hwy/highway.h>
//   #include "kernels/simd.h"
//
//   #if FUSELITE_SIMD_TARGET
//   HWY_BEFORE_NAMESPACE();
//   namespace fuselite::kernels::HWY_NAMESPACE {
//   namespace hn = hwy::HWY_NAMESPACE;
//   void SoftmaxRow(const float* in, float* out, size_t n) { ... }
//   }  // namespace fuselite::kernels::HWY_NAMESPACE
//   HWY_AFTER_NAMESPACE();
//   #endif
//
//   #if HWY_ONCE
//   namespace fuselite::kernels {
//   constexpr auto kSoftmaxRow = FUSELITE_SIMD_TABLE(SoftmaxRow);
//   ... kSoftmaxRow.For(context.isa) is the function, or null below SSSE3 ...
//   FUSELITE_ASSIGN_OR_RETURN(auto* const row, kSoftmaxRow.Require(context.isa));
//   }
//   #endif
//
// File-local functions inside the target's namespace go into it directly, not into an anonymous
// namespace (GCC warns of the unused copies).

// The part for each target is re-evaluated at each inclusion by foreach_target.
#undef FUSELITE_SIMD_TARGET
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
// Below the vector levels the reference runs: Highway's emulation is slower than plain loops.
#define FUSELITE_SIMD_TARGET 0
#else
#define FUSELITE_SIMD_TARGET 1
#endif

#ifndef FUSELITE_KERNELS_SIMD_H_
#define FUSELITE_KERNELS_SIMD_H_

#include <type_traits>

#include "runtime/cpu/isa.h"
#include "runtime/support/status.h"

// The attributes of a lambda that a loop calls for each vector, and once more for what is left of
// the row: as a function, which compilers make of what has two callers, it would read its constants
// anew for each vector (ADD of int8 takes 1.3 times as long so, PRELU 1.5 times).
#define FUSELITE_INLINED HWY_ATTR __attribute__((always_inline))

namespace fuselite::kernels {

// The refusal of a fast kernel below the vector levels.
inline Status NoVectorTarget(Isa isa) {
  return Unsupported("no vector target at isa=", IsaName(isa));
}

template <class Function>
struct SimdTable {
#if defined(__x86_64__)
  Function* ssse3;
  Function* avx2;
  Function* avx512;

  Function* For(Isa isa) const {
    if (isa.has(Feature::kAvx512)) return avx512;
    if (isa.has(Feature::kAvx2)) return avx2;
    return isa.has(Feature::kSsse3) ? ssse3 : nullptr;
  }
#elif defined(__aarch64__)
  Function* neon;

  Function* For(Isa isa) const { return isa.has(Feature::kNeon) ? neon : nullptr; }
#endif

  // For(isa), or the refusal where it is null.
  Result<Function*> Require(Isa isa) const {
    if (Function* const function = For(isa); function != nullptr) return function;
    return NoVectorTarget(isa);
  }
};

// The name of the target that For(isa) gives: "avx512", "avx2", "ssse3", "neon". Precondition:
// isa.has_vectors().
inline const char* SimdName(Isa isa) {
  if (isa.has(Feature::kNeon)) return "neon";
  if (isa.has(Feature::kAvx512)) return "avx512";
  return isa.has(Feature::kAvx2) ? "avx2" : "ssse3";
}

}  // namespace fuselite::kernels

#if defined(__x86_64__)
#define FUSELITE_SIMD_TABLE(name)                                                  \
  ::fuselite::kernels::SimdTable<std::remove_pointer_t<decltype(&N_AVX2::name)>> { \
    &N_SSSE3::name, &N_AVX2::name, &N_AVX3::name                                   \
  }
#elif defined(__aarch64__)
#define FUSELITE_SIMD_TABLE(name) \
  ::fuselite::kernels::SimdTable<std::remove_pointer_t<decltype(&N_NEON::name)>> { &N_NEON::name }
#endif

#endif  // FUSELITE_KERNELS_SIMD_H_
