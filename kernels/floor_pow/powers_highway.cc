// Powers with one whole exponent by repeated squaring, in double precision: products of float32 and
// of int32 have the result's bits there, or are beyond its range. Square roots by a plain loop, of
// which the compiler makes vectors of each target (this file is compiled with -O3); those with
// other exponents by logarithms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/broadcast.h"
#include "kernels/floor_pow/floor_pow.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/floor_pow/powers_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/floor_pow/pow_block-inl.h"
#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_FLOOR_POW_POWERS_ONCE_
#define FUSELITE_KERNELS_FLOOR_POW_POWERS_ONCE_
namespace fuselite::kernels {

using PowerRow = void(const void* in, int64_t from, double exponent, void* out, int64_t to,
                      int64_t n);
// n powers of x[i * x_stride] by y[i * y_stride].
using PowRow = void(const float* x, int64_t x_stride, const float* y, int64_t y_stride, float* out,
                    int64_t n);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

using Doubles = hn::ScalableTag<double>;
constexpr size_t kVectorsOfPowers = 4;  // in flight: a product depends on the one before

// The powers of kVectorsOfPowers vectors of doubles. Precondition: exponent != 0.
template <class T>
HWY_INLINE void PowersOfVectors(const T* x, int64_t exponent, T* y) {
  const Doubles dd;
  const hn::Rebind<T, Doubles> dt;
  const size_t lanes = hn::Lanes(dd);
  hn::Vec<Doubles> square[kVectorsOfPowers], power[kVectorsOfPowers];
  const auto square_all = [&]() HWY_ATTR {
    HWY_UNROLL(4)
    for (auto& s : square) s = hn::Mul(s, s);
  };
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectorsOfPowers; ++v) {
    square[v] = hn::PromoteTo(dd, hn::LoadU(dt, x + v * lanes));
  }
  int64_t left = std::abs(exponent);
  for (; (left & 1) == 0; left >>= 1) square_all();
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectorsOfPowers; ++v) power[v] = square[v];
  for (left >>= 1; left > 0; left >>= 1) {
    square_all();
    if ((left & 1) == 0) continue;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectorsOfPowers; ++v) {
      power[v] = hn::Mul(power[v], square[v]);
    }
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectorsOfPowers; ++v) {
    if (exponent < 0) power[v] = hn::Div(hn::Set(dd, 1.0), power[v]);
    hn::StoreU(hn::DemoteTo(dt, power[v]), dt, y + v * lanes);  // integers are bounded
  }
}

// n powers. Precondition: exponent != 0.
template <class T>
HWY_INLINE void WholePowers(const T* x, int64_t exponent, T* y, int64_t n) {
  constexpr auto kMost = static_cast<int64_t>(kVectorsOfPowers * hn::MaxLanes(Doubles()));
  const auto step = static_cast<int64_t>(kVectorsOfPowers * hn::Lanes(Doubles()));
  int64_t i = 0;
  for (; i + step <= n; i += step) PowersOfVectors(x + i, exponent, y + i);
  if (i == n) return;
  T last[kMost] = {};
  std::copy_n(x + i, n - i, last);
  PowersOfVectors(last, exponent, last);
  std::copy_n(last, n - i, y + i);
}

void PowRowOf(const float* x, int64_t x_stride, const float* y, int64_t y_stride, float* out,
              int64_t n) {
  for (int64_t i = 0; i < n; i += kPowBlock) {
    PowBlock(x + i * x_stride, x_stride, y + i * y_stride, y_stride, out + i,
             std::min(kPowBlock, n - i));
  }
}

template <class T>
void Powers(const void* in, int64_t from, double exponent, void* out, int64_t to, int64_t n) {
  const T* x = static_cast<const T*>(in) + from;
  T* y = static_cast<T*>(out) + to;
  if (exponent == 0) {
    std::fill_n(y, n, T{1});  // those of infinities and NaN, too
  } else if (exponent == 1) {
    std::copy_n(x, n, y);
  } else if (exponent == std::floor(exponent) && std::abs(exponent) < 0x1p31) {
    WholePowers(x, static_cast<int64_t>(exponent), y, n);
  } else if (std::is_floating_point_v<T> && exponent == 0.5) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) {
      // Zero of either sign gives the positive one, and minus infinity has a power.
      const double base = static_cast<double>(x[i]);
      y[i] = static_cast<T>(base == -kInfinity ? kInfinity : std::sqrt(base + 0.0));
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    const T same = static_cast<T>(exponent);
    PowRowOf(x, 1, &same, 0, y, n);
  }
}

PowerRow* PowerRowFor(DataType type) {
  return type == DataType::kFloat32 ? Powers<float> : Powers<int32_t>;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// A block of short rows: many are computed as one, and the powers then go to their places.
void PowShortRows(PowRow* row, const BroadcastPlan& plan, const BroadcastPlan::Block& block,
                  const float* x, const float* y, float* out) {
  constexpr int64_t kGathered = 256;
  float bases[kGathered], exponents[kGathered], powers[kGathered];
  const int64_t together = kGathered / block.count;
  for (int64_t first = 0; first < block.rows; first += together) {
    const int64_t end = std::min(first + together, block.rows);
    int64_t n = 0;
    for (int64_t r = first; r < end; ++r) {
      for (int64_t i = 0; i < block.count; ++i, ++n) {
        bases[n] = x[r * plan.row_stride(0) + i * plan.stride(0)];
        exponents[n] = y[r * plan.row_stride(1) + i * plan.stride(1)];
      }
    }
    row(bases, 1, exponents, 1, powers, n);
    for (int64_t r = first; r < end; ++r) {
      std::copy_n(powers + (r - first) * block.count, block.count, out + r * plan.row_stride(2));
    }
  }
}

Result<std::unique_ptr<Kernel>> BuildPow(const OpDescription& op, const BuildContext& context) {
  // From here on a row repays a call of its own.
  constexpr int64_t kLongRow = 64;
  constexpr auto kPowRow = FUSELITE_SIMD_TABLE(PowRowOf);
  if (op.inputs[0].type != DataType::kFloat32) return Unsupported("integers' exponents differ");
  FUSELITE_ASSIGN_OR_RETURN(auto* const row, kPowRow.Require(context.isa));
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      std::string("POW float32 ") + SimdName(context.isa),
      {.units = plan.units(), .grain = GrainFor(8 * plan.unit_elements())},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEachBlock(begin, end, [&](const BroadcastPlan::Block& block) {
          const auto* x = static_cast<const float*>(args.inputs[0]) + block.offsets[0];
          const auto* y = static_cast<const float*>(args.inputs[1]) + block.offsets[1];
          auto* out = static_cast<float*>(args.outputs[0]) + block.offsets[2];
          if (block.count < kLongRow) {
            return PowShortRows(row, plan, block, x, y, out);
          }
          for (int64_t r = 0; r < block.rows; ++r) {
            row(x + r * plan.row_stride(0), plan.stride(0), y + r * plan.row_stride(1),
                plan.stride(1), out + r * plan.row_stride(2), block.count);
          }
        });
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildPowers(const OpDescription& op, const BuildContext& context) {
  constexpr auto kPowerRow = FUSELITE_SIMD_TABLE(PowerRowFor);
  if (op.inputs[1].elements() != 1) return BuildPow(op, context);
  FUSELITE_ASSIGN_OR_RETURN(auto* const row_for, kPowerRow.Require(context.isa));
  const DataType type = op.inputs[0].type;
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      "POW " + std::string(DataTypeName(type)) + " " + SimdName(context.isa),
      {.units = plan.units(), .grain = GrainFor(4 * plan.unit_elements())},
      [=, row = row_for(type)](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
        const bool real = type == DataType::kFloat32;
        const double exponent = real ? *static_cast<const float*>(args.inputs[1])
                                     : *static_cast<const int32_t*>(args.inputs[1]);
        if (!real && exponent < 0) return InvalidArgument("an integer has a negative exponent");
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          row(args.inputs[0], piece.offsets[0], exponent, args.outputs[0], piece.offsets[1],
              piece.count);
        });
        return Status();
      });
}

}  // namespace fuselite::kernels
#endif
