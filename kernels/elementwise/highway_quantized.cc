#include "kernels/elementwise/quantized_binary.h"
#include "kernels/elementwise/quantized_functions.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/highway_quantized.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/uniform_scale-inl.h"
#include "kernels/tail/integer_stages-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A stride of 0 repeats the first value.
template <class T, class F>
HWY_INLINE void MapRows(const void* x, int x_stride, const void* y, int y_stride, void* out,
                        size_t n, F function) {
  const IntTag d;
  const auto* a = static_cast<const T*>(x);
  const auto* b = static_cast<const T*>(y);
  auto* c = static_cast<T*>(out);
  const auto first_a = hn::Set(d, static_cast<int32_t>(*a));
  const auto first_b = hn::Set(d, static_cast<int32_t>(*b));
  ForVectors(n, [&](size_t i, size_t count) HWY_ATTR {
    const auto va = x_stride == 0 ? first_a : LoadInt(a + i, count);
    const auto vb = y_stride == 0 ? first_b : LoadInt(b + i, count);
    StoreInt(function(va, vb), c + i, count);
  });
}

template <class T>
HWY_INLINE void MulRowsOf(const QuantizedProduct& p, const void* x, int x_stride, const void* y,
                          int y_stride, void* out, size_t n) {
  const IntTag d;
  const UniformScale scale(p.scale.multiplier, p.scale.shift);
  const auto x_zero = hn::Set(d, p.x_zero), y_zero = hn::Set(d, p.y_zero),
             zero = hn::Set(d, p.zero);
  MapRows<T>(x, x_stride, y, y_stride, out, n, [&](IntVec a, IntVec b) HWY_ATTR {
    const auto product = hn::Mul(hn::Sub(a, x_zero), hn::Sub(b, y_zero));
    return ClampInt(hn::Add(scale(product), zero), p.min, p.max);
  });
}

template <class T>
HWY_INLINE void SumRowsOf(const QuantizedSum& sum, const void* x, int x_stride, const void* y,
                          int y_stride, void* out, size_t n) {
  const IntTag d;
  const QuantizedAdd& q = sum.q;
  const UniformScale x_scale(q.x_multiplier, q.x_shift), y_scale(q.y_multiplier, q.y_shift),
      scale(q.output_multiplier, q.output_shift);
  const auto x_offset = hn::Set(d, q.x_offset), y_offset = hn::Set(d, q.y_offset),
             offset = hn::Set(d, q.output_offset);
  MapRows<T>(x, x_stride, y, y_stride, out, n, [&](IntVec a, IntVec b) HWY_ATTR {
    const auto u = x_scale(hn::ShiftLeftSame(hn::Add(a, x_offset), q.left_shift));
    const auto v = y_scale(hn::ShiftLeftSame(hn::Add(b, y_offset), q.left_shift));
    const auto total = sum.subtract ? hn::Sub(u, v) : hn::Add(u, v);
    return ClampInt(hn::Add(scale(total), offset), q.min, q.max);
  });
}

#define FUSELITE_ROWS(Name, Function) \
  void Name(const Function& f, const void* x, int xs, const void* y, int ys, void* o, size_t n)
FUSELITE_ROWS(MulS8, QuantizedProduct) { MulRowsOf<int8_t>(f, x, xs, y, ys, o, n); }
FUSELITE_ROWS(MulU8, QuantizedProduct) { MulRowsOf<uint8_t>(f, x, xs, y, ys, o, n); }
FUSELITE_ROWS(MulS16, QuantizedProduct) { MulRowsOf<int16_t>(f, x, xs, y, ys, o, n); }
FUSELITE_ROWS(SumS8, QuantizedSum) { SumRowsOf<int8_t>(f, x, xs, y, ys, o, n); }
FUSELITE_ROWS(SumU8, QuantizedSum) { SumRowsOf<uint8_t>(f, x, xs, y, ys, o, n); }
FUSELITE_ROWS(SumS16, QuantizedSum) { SumRowsOf<int16_t>(f, x, xs, y, ys, o, n); }
#undef FUSELITE_ROWS

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

template <class Function>
using Rows = void(const Function&, const void* x, int x_stride, const void* y, int y_stride,
                  void* out, size_t n);

Rows<QuantizedProduct>* RowsOf(const QuantizedProduct&, DataType type, Isa isa) {
  constexpr auto kS8 = FUSELITE_SIMD_TABLE(MulS8);
  constexpr auto kU8 = FUSELITE_SIMD_TABLE(MulU8);
  constexpr auto kS16 = FUSELITE_SIMD_TABLE(MulS16);
  if (type == DataType::kInt16) return kS16.For(isa);
  return type == DataType::kInt8 ? kS8.For(isa) : kU8.For(isa);
}

Rows<QuantizedSum>* RowsOf(const QuantizedSum&, DataType type, Isa isa) {
  constexpr auto kS8 = FUSELITE_SIMD_TABLE(SumS8);
  constexpr auto kU8 = FUSELITE_SIMD_TABLE(SumU8);
  constexpr auto kS16 = FUSELITE_SIMD_TABLE(SumS16);
  if (type == DataType::kInt16) return kS16.For(isa);
  return type == DataType::kInt8 ? kS8.For(isa) : kU8.For(isa);
}

template <class Function>
Result<std::unique_ptr<Kernel>> BuildRows(BinaryKind kind, const OpDescription& op, Isa isa,
                                          const Function& function) {
  const DataType type = op.inputs[0].type;
  Rows<Function>* const rows = RowsOf(function, type, isa);
  if (rows == nullptr) return Unsupported("no vector target at isa=", IsaName(isa));
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  const int64_t size = BitWidth(type) / 8;
  return MakeKernel(
      std::string(BinaryName(kind)) + ' ' + std::string(DataTypeName(type)) + ' ' + SimdName(isa),
      {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          rows(function, static_cast<const std::byte*>(args.inputs[0]) + piece.offsets[0] * size,
               plan.stride(0),
               static_cast<const std::byte*>(args.inputs[1]) + piece.offsets[1] * size,
               plan.stride(1), static_cast<std::byte*>(args.outputs[0]) + piece.offsets[2] * size,
               piece.count);
        });
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildQuantizedRows(BinaryKind kind, const OpDescription& op,
                                                   const BuildContext& context) {
  if (kind == BinaryKind::kMul) {
    FUSELITE_ASSIGN_OR_RETURN(const QuantizedProduct product, MakeQuantizedProduct(op));
    return BuildRows(kind, op, context.isa, product);
  }
  if (kind == BinaryKind::kAdd || kind == BinaryKind::kSub) {
    FUSELITE_ASSIGN_OR_RETURN(const QuantizedSum sum, MakeQuantizedSum(kind, op));
    return BuildRows(kind, op, context.isa, sum);
  }
  return Unsupported("quantized ", BinaryName(kind), " has no vector version");
}

}  // namespace fuselite::kernels
#endif
