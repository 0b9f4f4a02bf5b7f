#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/convert/convert.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/join_bytes-inl.h"
#include "kernels/simd_math/partial-inl.h"
#include "kernels/simd_math/std_max-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// round(x / scale) + zero_point in [low, high] as int32; D has any number of lanes. The bounds are
// those that leave the rounded quotient in range, the lower one also for a NaN.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> QuantizeVector(D d, hn::Vec<D> x, float scale,
                                                         int32_t zero_point, int32_t low,
                                                         int32_t high) {
  const hn::RebindToSigned<D> di;
  const auto least = hn::Set(d, static_cast<float>(low - zero_point));
  const auto most = hn::Set(d, static_cast<float>(high - zero_point));
  const auto quotient = hn::Div(x, hn::Set(d, scale));
  const auto bounded = hn::Min(hn::IfThenElse(hn::Gt(quotient, least), quotient, least), most);
  // Half away from zero: 0.49999997, the largest float below 1/2, carries exactly the halves over,
  // up to the 2^17 that bounds of 16 bits allow.
  const auto half = hn::CopySign(hn::Set(d, 0.49999997f), bounded);
  return hn::Add(hn::ConvertTo(di, hn::Add(bounded, half)), hn::Set(di, zero_point));
}

// `n` values, n at most a vector's lanes.
template <class T>
HWY_INLINE void QuantizeSome(const float* in, T* out, size_t n, float scale, int32_t zero_point) {
  constexpr int32_t kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto v = QuantizeVector(d, LoadUpTo(d, in, n), scale, zero_point, kLow, kHigh);
  StoreUpTo(hn::DemoteTo(narrow, v), narrow, out, n);
}

template <class T>
void QuantizeRun(const float* in, T* out, size_t count, float scale, int32_t zero_point) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  for (size_t i = 0; i < count; i += lanes) {
    QuantizeSome(in + i, out + i, std::min(lanes, count - i), scale, zero_point);
  }
}

// The same for bytes, four vectors at a time by the scale's reciprocal, where a product takes a
// tenth of a quotient's time. Its error is below 3 2^-24 of a value that counts up to 511 steps
// from zero: only what lies within kDoubt of the middle of two steps may round differently, and the
// whole block is divided then, one block in a hundred.
template <class T>
class QuantizeBytes {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr float kDoubt = 0x1p-13f;
  // Adding 1.5 2^23 rounds to an integer, which is in the low bits then.
  static constexpr float kRounding = 12582912.0f;
  static constexpr int32_t kLow = std::numeric_limits<T>::min(),
                           kHigh = std::numeric_limits<T>::max();

 public:
  // Whether the reciprocal has its full precision, and steps are as few as kDoubt supposes.
  static bool Takes(float scale, int32_t zero_point) {
    return scale > 0x1p-100f && scale < 0x1p100f && kLow <= zero_point && zero_point <= kHigh;
  }

  HWY_INLINE QuantizeBytes(float scale, int32_t zero_point)
      : scale_(scale),
        zero_point_(zero_point),
        inverse_(hn::Set(D(), 1 / scale)),
        least_(hn::Set(D(), static_cast<float>(kLow - zero_point))),
        most_(hn::Set(D(), static_cast<float>(kHigh - zero_point))),
        rounding_(hn::Set(D(), kRounding)),
        join_(std::bit_cast<uint32_t>(kRounding) + static_cast<uint32_t>(kLow - zero_point),
              kLow < 0) {}

  HWY_INLINE void operator()(const float* in, T* out, size_t count) const {
    const size_t block = 4 * hn::Lanes(D());
    if (count < block) return QuantizeRun(in, out, count, scale_, zero_point_);
    for (size_t i = 0; i + block <= count; i += block) Block(in + i, out + i);
    // What is left over is computed with some of what comes before it.
    if (count % block != 0) Block(in + count - block, out + count - block);
  }

 private:
  // Sums whose low bits are the steps from zero; `doubt` has the largest distance from a step.
  HWY_INLINE V Rounded(const float* in, V* doubt) const {
    const auto quotient = hn::Mul(hn::LoadU(D(), in), inverse_);
    const auto bounded = hn::Min(StdMax(least_, quotient), most_);
    const auto rounded = hn::Add(bounded, rounding_);
    *doubt = hn::Max(*doubt, hn::Abs(hn::Sub(bounded, hn::Sub(rounded, rounding_))));
    return rounded;
  }

  HWY_INLINE void Block(const float* in, T* out) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    V doubt = hn::Zero(d);
    const auto a = Rounded(in, &doubt), b = Rounded(in + lanes, &doubt),
               c = Rounded(in + 2 * lanes, &doubt), e = Rounded(in + 3 * lanes, &doubt);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(doubt, hn::Set(d, 0.5f - kDoubt))))) {
      return QuantizeRun(in, out, 4 * lanes, scale_, zero_point_);
    }
    hn::StoreU(join_(a, b, c, e), hn::ScalableTag<uint8_t>(), reinterpret_cast<uint8_t*>(out));
  }

  float scale_;
  int32_t zero_point_;
  V inverse_, least_, most_, rounding_;
  JoinBytes join_;
};

template <class T>
void QuantizeToBytes(const float* in, T* out, int64_t n, float scale, int32_t zero_point) {
  if (QuantizeBytes<T>::Takes(scale, zero_point)) {
    return QuantizeBytes<T>(scale, zero_point)(in, out, n);
  }
  QuantizeRun(in, out, n, scale, zero_point);
}

void QuantizeInt8(const float* in, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeToBytes(in, static_cast<int8_t*>(out), n, scale, zero_point);
}
void QuantizeUInt8(const float* in, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeToBytes(in, static_cast<uint8_t*>(out), n, scale, zero_point);
}
void QuantizeInt16(const float* in, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeRun(in, static_cast<int16_t*>(out), n, scale, zero_point);
}

// x - zero_point is exact in float, so that the product is the one rounding, as in the reference.
template <class T>
void DequantizeRun(const T* in, float* out, int64_t count, float scale, int32_t zero_point) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto zero = hn::Set(di, zero_point);
  const auto factor = hn::Set(d, scale);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto wide = hn::PromoteTo(di, hn::LoadU(narrow, in + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::Sub(wide, zero)), factor), d, out + i);
  }
  for (; i < count; ++i) out[i] = static_cast<float>(in[i] - zero_point) * scale;
}

void DequantizeInt8(const void* in, float* out, int64_t n, float scale, int32_t zero_point) {
  DequantizeRun(static_cast<const int8_t*>(in), out, n, scale, zero_point);
}
void DequantizeUInt8(const void* in, float* out, int64_t n, float scale, int32_t zero_point) {
  DequantizeRun(static_cast<const uint8_t*>(in), out, n, scale, zero_point);
}
void DequantizeInt16(const void* in, float* out, int64_t n, float scale, int32_t zero_point) {
  DequantizeRun(static_cast<const int16_t*>(in), out, n, scale, zero_point);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Whether scale and zero point are one, and the latter within 16 bits.
Status CheckVectorizable(const OpDescription& op, const TensorInfo& quantized) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  if (quantized.quantization.per_channel()) return Unsupported("scales per channel");
  const int32_t zero = quantized.quantization.zero_point();
  if (zero < -65536 || zero > 65536) return Unsupported("a zero point of ", zero);
  return Status();
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildQuantizeHighway(const OpDescription& op,
                                                     const BuildContext& context) {
  constexpr auto kInt8 = FUSELITE_SIMD_TABLE(QuantizeInt8);
  constexpr auto kUInt8 = FUSELITE_SIMD_TABLE(QuantizeUInt8);
  constexpr auto kInt16 = FUSELITE_SIMD_TABLE(QuantizeInt16);
  const TensorInfo& out = op.outputs[0];
  if (op.inputs[0].type != DataType::kFloat32) return BuildRequantizeHighway(op, context);
  if (BitWidth(out.type) < 8) return Unsupported("packed integers have scalar code alone");
  FUSELITE_RETURN_IF_ERROR(CheckVectorizable(op, out));
  const auto& table = out.type == DataType::kInt8    ? kInt8
                      : out.type == DataType::kUInt8 ? kUInt8
                                                     : kInt16;
  FUSELITE_ASSIGN_OR_RETURN(auto* const function, table.Require(context.isa));
  const Pieces pieces(op.inputs[0], out);
  return MakeKernel(
      "quantize " + std::string(DataTypeName(out.type)) + " " + SimdName(context.isa),
      {.units = pieces.units, .grain = 1},
      [=, scale = out.quantization.scale(), zero = out.quantization.zero_point(),
       bytes = BitWidth(out.type) / 8](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const float*>(args.inputs[0]);
        auto* to = static_cast<std::byte*>(args.outputs[0]);
        pieces.ForEach(begin, end, [&](int64_t i, int64_t o, int64_t, int64_t count) {
          function(in + i, to + o * bytes, count, scale, zero);
        });
      });
}

Result<std::unique_ptr<Kernel>> BuildDequantizeHighway(const OpDescription& op,
                                                       const BuildContext& context) {
  constexpr auto kInt8 = FUSELITE_SIMD_TABLE(DequantizeInt8);
  constexpr auto kUInt8 = FUSELITE_SIMD_TABLE(DequantizeUInt8);
  constexpr auto kInt16 = FUSELITE_SIMD_TABLE(DequantizeInt16);
  const TensorInfo& in = op.inputs[0];
  if (in.type == DataType::kFloat16) return BuildCastHighway(op, context);
  if (in.type != DataType::kInt8 && in.type != DataType::kUInt8 && in.type != DataType::kInt16) {
    return Unsupported(DataTypeName(in.type), " is not int8, uint8, int16 or float16");
  }
  FUSELITE_RETURN_IF_ERROR(CheckVectorizable(op, in));
  const auto& table = in.type == DataType::kInt8    ? kInt8
                      : in.type == DataType::kUInt8 ? kUInt8
                                                    : kInt16;
  FUSELITE_ASSIGN_OR_RETURN(auto* const function, table.Require(context.isa));
  const Pieces pieces(in, op.outputs[0]);
  return MakeKernel(
      "dequantize " + std::string(DataTypeName(in.type)) + " " + SimdName(context.isa),
      {.units = pieces.units, .grain = 1},
      [=, scale = in.quantization.scale(), zero = in.quantization.zero_point(),
       bytes = BitWidth(in.type) / 8](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* from = static_cast<const std::byte*>(args.inputs[0]);
        auto* to = static_cast<float*>(args.outputs[0]);
        pieces.ForEach(begin, end, [&](int64_t i, int64_t o, int64_t, int64_t count) {
          function(from + i * bytes, to + o, count, scale, zero);
        });
      });
}

}  // namespace fuselite::kernels
#endif
