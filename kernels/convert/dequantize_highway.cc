// DEQUANTIZE with vectors: runs of values with one scale; values of less than a byte are unpacked
// to bytes, a block at a time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/convert/convert.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/dequantize_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/convert/dequantize_lanes-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_CONVERT_DEQUANTIZE_FUNCTIONS_
#define FUSELITE_KERNELS_CONVERT_DEQUANTIZE_FUNCTIONS_
namespace fuselite::kernels {

struct DequantizeFunctions {
  // out[i] = scale (in[i] - zero_point), for i < n.
  using Run = void(const void* in, float* out, int64_t n, float scale, int32_t zero_point);
  Run *int8, *uint8, *int16;
  // The same with a scale and a zero point for each value.
  using Channels = void(const void* in, float* out, int64_t n, const float* scales,
                        const int32_t* zero_points);
  Channels *int8_channels, *uint8_channels, *int16_channels;
  // `n` values as bytes. Writes whole vectors of values: up to kMostUnpacked behind them.
  static constexpr int64_t kMostUnpacked = 4 * 64;
  using Unpack = void(const uint8_t* in, int8_t* out, int64_t n);
  Unpack *int4, *uint4, *int2;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void Dequantize(const void* in, float* out, int64_t n, float scale, int32_t zero_point) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const DequantizeLanes real(scale, zero_point);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const x = static_cast<const T*>(in);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(real(hn::LoadU(narrow, x + i)), d, out + i);
  for (; i < n; ++i) out[i] = static_cast<float>(x[i] - zero_point) * scale;
}

template <class T>
void DequantizeChannels(const void* in, float* out, int64_t n, const float* scales,
                        const int32_t* zero_points) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> wide;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const x = static_cast<const T*>(in);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::PromoteTo(wide, hn::LoadU(narrow, x + i));
    const auto difference = hn::Sub(value, hn::LoadU(wide, zero_points + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, difference), hn::LoadU(d, scales + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = static_cast<float>(x[i] - zero_points[i]) * scales[i];
}

using Bytes = hn::ScalableTag<uint8_t>;

// The lowest kBits bits of each lane, with their sign where kSigned.
template <int kBits, bool kSigned>
HWY_INLINE hn::Vec<Bytes> LowBits(hn::Vec<Bytes> x) {
  const Bytes d;
  if constexpr (!kSigned) return hn::And(x, hn::Set(d, (1 << kBits) - 1));
  // x ^ s - s extends the sign bit s.
  const auto sign = hn::Set(d, 1 << (kBits - 1));
  return hn::Sub(hn::Xor(hn::And(x, hn::Set(d, (1 << kBits) - 1)), sign), sign);
}

template <bool kSigned>
void UnpackNibbles(const uint8_t* in, int8_t* out, int64_t n) {
  const Bytes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t bytes = (n + 1) / 2;
  for (int64_t i = 0; i < bytes; i += lanes) {
    const auto x = LoadUpTo(d, in + i, static_cast<size_t>(bytes - i));
    hn::StoreInterleaved2(LowBits<4, kSigned>(x), LowBits<4, kSigned>(hn::ShiftRight<4>(x)), d,
                          reinterpret_cast<uint8_t*>(out) + 2 * i);
  }
}

void UnpackInt2(const uint8_t* in, int8_t* out, int64_t n) {
  const Bytes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t bytes = (n + 3) / 4;
  for (int64_t i = 0; i < bytes; i += lanes) {
    const auto x = LoadUpTo(d, in + i, static_cast<size_t>(bytes - i));
    hn::StoreInterleaved4(LowBits<2, true>(x), LowBits<2, true>(hn::ShiftRight<2>(x)),
                          LowBits<2, true>(hn::ShiftRight<4>(x)),
                          LowBits<2, true>(hn::ShiftRight<6>(x)), d,
                          reinterpret_cast<uint8_t*>(out) + 4 * i);
  }
}

constexpr DequantizeFunctions kDequantize = {
    Dequantize<int8_t>,         Dequantize<uint8_t>,         Dequantize<int16_t>,
    DequantizeChannels<int8_t>, DequantizeChannels<uint8_t>, DequantizeChannels<int16_t>,
    UnpackNibbles<true>,        UnpackNibbles<false>,        UnpackInt2,
};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// How a run of values becomes floats.
struct Conversion {
  DequantizeFunctions::Run* run = nullptr;
  DequantizeFunctions::Channels* channels = nullptr;
  DequantizeFunctions::Unpack* unpack = nullptr;  // before, where values have less than a byte
};

Result<Conversion> ConversionOf(DataType type, const DequantizeFunctions& f) {
  switch (type) {
    case DataType::kInt8: return Conversion{f.int8, f.int8_channels};
    case DataType::kUInt8: return Conversion{f.uint8, f.uint8_channels};
    case DataType::kInt16: return Conversion{f.int16, f.int16_channels};
    case DataType::kInt4: return Conversion{f.int8, f.int8_channels, f.int4};
    case DataType::kUInt4: return Conversion{f.int8, f.int8_channels, f.uint4};
    case DataType::kInt2: return Conversion{f.int8, f.int8_channels, f.int2};
    default: return Unsupported("does not take ", DataTypeName(type));
  }
}

class Dequantizer {
 public:
  Dequantizer(const TensorInfo& in, const TensorInfo& out, const Conversion& conversion)
      : pieces_(in, out),
        channel_(in),
        scales_(in.quantization.scales),
        zeros_(in.quantization.zero_points),
        conversion_(conversion),
        bits_(BitWidth(in.type)) {}

  int64_t units() const { return pieces_.units; }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* const in = static_cast<const std::byte*>(args.inputs[0]);
    auto* const out = static_cast<float*>(args.outputs[0]);
    pieces_.ForEach(begin, end, [&](int64_t from, int64_t to, int64_t first, int64_t count) {
      const std::byte* const values = in + from * bits_ / 8;
      if (conversion_.unpack == nullptr) return Convert(values, bits_ / 8, out + to, first, count);
      Unpack(reinterpret_cast<const uint8_t*>(values), out + to, first, count);
    });
  }

 private:
  static constexpr int64_t kBlock = 4096;

  void Unpack(const uint8_t* values, float* out, int64_t first, int64_t count) const {
    alignas(64) int8_t bytes[kBlock + DequantizeFunctions::kMostUnpacked];
    for (int64_t done = 0; done < count; done += kBlock) {
      const int64_t n = std::min(kBlock, count - done);
      conversion_.unpack(values + done * bits_ / 8, bytes, n);
      Convert(reinterpret_cast<const std::byte*>(bytes), 1, out + done, first + done, n);
    }
  }

  void Convert(const std::byte* values, int64_t bytes, float* out, int64_t first,
               int64_t count) const {
    if (channel_.channels == 1) return conversion_.run(values, out, count, scales_[0], zeros_[0]);
    for (int64_t i = 0; i < count;) {
      const int64_t c = channel_(first + i);
      const bool each = channel_.inner == 1;
      const int64_t left =
          each ? channel_.channels - c : channel_.inner - (first + i) % channel_.inner;
      const int64_t n = std::min(left, count - i);
      if (each) {
        conversion_.channels(values + i * bytes, out + i, n, &scales_[c], &zeros_[c]);
      } else {
        conversion_.run(values + i * bytes, out + i, n, scales_[c], zeros_[c]);
      }
      i += n;
    }
  }

  Pieces pieces_;
  ChannelOf channel_;
  ChannelValues<float> scales_;
  ChannelValues<int32_t> zeros_;
  Conversion conversion_;
  int64_t bits_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDequantizeHighway(const OpDescription& op,
                                                       const BuildContext& context) {
  constexpr auto kTable = FUSELITE_SIMD_TABLE(kDequantize);
  const TensorInfo& in = op.inputs[0];
  if (in.type == DataType::kFloat16) return BuildCastHighway(op, context);
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  if (BitWidth(in.type) < 8) FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_RETURN_IF_ERROR(CheckZeroPoints(in.quantization));
  FUSELITE_ASSIGN_OR_RETURN(const auto* const functions, kTable.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const Conversion conversion, ConversionOf(in.type, *functions));
  const Dequantizer dequantizer(in, op.outputs[0], conversion);
  return MakeKernel(
      "dequantize " + std::string(DataTypeName(in.type)) + " " + SimdName(context.isa),
      {.units = dequantizer.units(), .grain = 1}, dequantizer);
}

}  // namespace fuselite::kernels
#endif
