// The candidates of operators that transform.
#pragma once

#include <string_view>

#include "kernels/operator.h"
#include "kernels/rfft2d/fourier.h"
#include "kernels/simd.h"

namespace fuselite::kernels {

// What makes the kernel of an operator from these functions, named after their target.
using BuildFourier = Result<std::unique_ptr<Kernel>>(const OpDescription& op,
                                                     std::string_view target,
                                                     const FourierFunctions& functions);

template <BuildFourier* kBuild>
Result<std::unique_ptr<Kernel>> BuildPlainFourier(const OpDescription& op, const BuildContext&) {
  return kBuild(op, "reference", kPlainFourier);
}

template <BuildFourier* kBuild>
Result<std::unique_ptr<Kernel>> BuildVectorFourier(const OpDescription& op,
                                                   const BuildContext& context) {
  const FourierFunctions* const functions = FindFourier(context.isa);
  if (functions == nullptr) return NoVectorTarget(context.isa);
  return kBuild(op, SimdName(context.isa), *functions);
}

template <BuildFourier* kBuild>
inline constexpr Candidate kFourierCandidates[] = {{"highway", BuildVectorFourier<kBuild>},
                                                   {"reference", BuildPlainFourier<kBuild>}};

}  // namespace fuselite::kernels
