// QUANTIZE between integer types: a map of bytes, 32-bit arithmetic for wider ones.
#include "kernels/convert/convert.h"
#include "kernels/elementwise/bytes/byte_map.h"
#include "kernels/make_kernel.h"
#include "kernels/numbers/quantization.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/requantize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/tail/integer_stages-inl.h"

#ifndef FUSELITE_KERNELS_CONVERT_REQUANTIZE_ONCE_
#define FUSELITE_KERNELS_CONVERT_REQUANTIZE_ONCE_
namespace fuselite::kernels {

// `count` values, from elements `from` of `in` on to elements `to` of `out` on.
using RequantizeFunction = void(const Requantizer& r, const void* in, int64_t from, void* out,
                                int64_t to, int64_t count);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class In, class Out>
void RequantizeValues(const Requantizer& r, const void* in, int64_t from, void* out, int64_t to,
                      int64_t count) {
  const IntTag d;
  const auto multiplier = hn::Set(d, r.factor.multiplier), shift = hn::Set(d, r.factor.shift);
  ForVectors(count, [&](size_t i, size_t n) FUSELITE_INLINED {
    const auto x = LoadInt(static_cast<const In*>(in) + from + i, n);
    const auto scaled =
        MultiplyByQuantizedMultiplierVec(hn::Sub(x, hn::Set(d, r.in_zero)), multiplier, shift);
    StoreInt(ClampInt(hn::Add(scaled, hn::Set(d, r.out_zero)), r.min, r.max),
             static_cast<Out*>(out) + to + i, n);
  });
}

RequantizeFunction* RequantizeFor(DataType in, DataType out) {
  if (in == DataType::kInt32) {
    return out == DataType::kInt8 ? RequantizeValues<int32_t, int8_t>
                                  : RequantizeValues<int32_t, int16_t>;
  }
  if (out == DataType::kInt8) return RequantizeValues<int16_t, int8_t>;
  return out == DataType::kInt16 ? RequantizeValues<int16_t, int16_t>
                                 : RequantizeValues<int16_t, int32_t>;
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

std::vector<uint8_t> TableOf(DataType in, const Requantizer& requantize) {
  std::vector<uint8_t> table;
  for (int x = 0; x < 256; ++x) {
    const int32_t value = in == DataType::kInt8 ? static_cast<int8_t>(x) : x;
    table.push_back(static_cast<uint8_t>(requantize(value)));
  }
  return table;
}

}  // namespace

Requantizer::Requantizer(const OpDescription& op)
    : factor(ToFixedPoint(static_cast<double>(op.inputs[0].quantization.scale()) /
                          static_cast<double>(op.outputs[0].quantization.scale()))),
      in_zero(op.inputs[0].quantization.zero_point()),
      out_zero(op.outputs[0].quantization.zero_point()) {
  QuantizedTypeRange(op.outputs[0].type, &min, &max);
}

Result<std::unique_ptr<Kernel>> BuildRequantizeHighway(const OpDescription& op,
                                                       const BuildContext& context) {
  constexpr auto kRequantize = FUSELITE_SIMD_TABLE(RequantizeFor);
  if (!op.tail.empty()) return Unsupported("QUANTIZE takes no fused tail");
  const DataType in = op.inputs[0].type, out = op.outputs[0].type;
  if (in == DataType::kFloat32) return Unsupported("the input is not quantized");
  if (BitWidth(in) == 8 && BitWidth(out) != 8)
    return Unsupported("does not take bytes to ", DataTypeName(out));
  FUSELITE_ASSIGN_OR_RETURN(auto* const function_for, kRequantize.Require(context.isa));
  const std::string name =
      "requantize " + std::string(DataTypeName(in)) + " " + std::string(DataTypeName(out));
  const Requantizer requantize(op);
  if (BitWidth(in) == 8) {
    return MakeByteMap(op, name, TableOf(in, requantize), requantize.in_zero, context.isa);
  }
  const Pieces pieces(op.inputs[0], op.outputs[0]);
  return MakeKernel(
      name + " " + SimdName(context.isa), {.units = pieces.units, .grain = 1},
      [=, function = function_for(in, out)](const KernelArgs& args, int64_t begin, int64_t end) {
        pieces.ForEach(begin, end, [&](int64_t i, int64_t o, int64_t, int64_t n) {
          function(requantize, args.inputs[0], i, args.outputs[0], o, n);
        });
      });
}

}  // namespace fuselite::kernels
#endif
