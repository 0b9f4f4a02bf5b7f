#include "kernels/make_kernel.h"
#include "kernels/resize/resize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_RESIZE_ROW_H_
#define FUSELITE_KERNELS_RESIZE_ROW_H_
namespace fuselite::kernels {

// One row of output pixels from two rows of input pixels; pitches count elements.
struct ResizeRow {
  const void* top;
  const void* bottom;
  void* out;
  int64_t channels;
  int64_t in_pitch, out_pitch;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The products and sums of the reference, in its order: the same bits.
template <class D, class V>
V Blend(D d, V a, V b, V c, V e, const Tap& y, const Tap& x) {
  const V y1 = hn::Set(d, y.t), y0 = hn::Set(d, 1 - y.t);
  const V x1 = hn::Set(d, x.t), x0 = hn::Set(d, 1 - x.t);
  const V left = hn::Add(hn::Mul(hn::Mul(a, y0), x0), hn::Mul(hn::Mul(b, y1), x0));
  return hn::Add(hn::Add(left, hn::Mul(hn::Mul(c, y0), x1)), hn::Mul(hn::Mul(e, y1), x1));
}

// Calls block(c, n) for the channels in steps of `lanes`, the last ones as n < lanes.
template <class Block>
void ForChannels(int64_t channels, int64_t lanes, Block block) {
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) block(c, lanes);
  if (c < channels) block(c, channels - c);
}

void ResizeFloatRow(const ResizeRow& row, const Tap& y, const Tap* xs, int64_t width) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t x = 0; x < width; ++x) {
    const int64_t left = xs[x].low * row.in_pitch, right = xs[x].high * row.in_pitch;
    const auto* top = static_cast<const float*>(row.top);
    const auto* bottom = static_cast<const float*>(row.bottom);
    float* out = static_cast<float*>(row.out) + x * row.out_pitch;
    ForChannels(row.channels, lanes, [&](int64_t c, int64_t n) HWY_ATTR {
      if (n == lanes) {
        hn::StoreU(Blend(d, hn::LoadU(d, top + left + c), hn::LoadU(d, bottom + left + c),
                         hn::LoadU(d, top + right + c), hn::LoadU(d, bottom + right + c), y, xs[x]),
                   d, out + c);
        return;
      }
      // SSSE3 has no masked loads: the remainder goes one by one.
      const hn::CappedTag<float, 1> one;
      for (const int64_t last = c + n; c < last; ++c) {
        hn::StoreU(
            Blend(one, hn::LoadU(one, top + left + c), hn::LoadU(one, bottom + left + c),
                  hn::LoadU(one, top + right + c), hn::LoadU(one, bottom + right + c), y, xs[x]),
            one, out + c);
      }
    });
  }
}

// Up to Lanes(d32) bytes of the input as int32.
template <class D32, class T>
hn::Vec<D32> LoadWide(D32 d32, const T* from, int64_t n) {
  const hn::Rebind<T, D32> d8;
  if (n == static_cast<int64_t>(hn::Lanes(d32))) return hn::PromoteTo(d32, hn::LoadU(d8, from));
  T padded[HWY_MAX_BYTES / sizeof(int32_t)] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = from[i];
  return hn::PromoteTo(d32, hn::LoadU(d8, padded));
}

template <class D32, class T>
void StoreNarrow(D32 d32, hn::Vec<D32> value, T* to, int64_t n) {
  const hn::Rebind<T, D32> d8;
  if (n == static_cast<int64_t>(hn::Lanes(d32))) {
    hn::StoreU(hn::DemoteTo(d8, value), d8, to);
    return;
  }
  T padded[HWY_MAX_BYTES / sizeof(int32_t)];
  hn::StoreU(hn::DemoteTo(d8, value), d8, padded);
  for (int64_t i = 0; i < n; ++i) to[i] = padded[i];
}

void ResizeUInt8Row(const ResizeRow& row, const Tap& y, const Tap* xs, int64_t width) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const auto* top = static_cast<const uint8_t*>(row.top);
  const auto* bottom = static_cast<const uint8_t*>(row.bottom);
  const auto load = [&](const uint8_t* from, int64_t n)
                        HWY_ATTR { return hn::ConvertTo(d, LoadWide(d32, from, n)); };
  for (int64_t x = 0; x < width; ++x) {
    const int64_t left = xs[x].low * row.in_pitch, right = xs[x].high * row.in_pitch;
    uint8_t* out = static_cast<uint8_t*>(row.out) + x * row.out_pitch;
    ForChannels(row.channels, hn::Lanes(d), [&](int64_t c, int64_t n) HWY_ATTR {
      const auto value = Blend(d, load(top + left + c, n), load(bottom + left + c, n),
                               load(top + right + c, n), load(bottom + right + c, n), y, xs[x]);
      // Truncates, then saturates.
      StoreNarrow(d32, hn::ConvertTo(d32, hn::Add(value, hn::Set(d, 0.5f))), out + c, n);
    });
  }
}

void ResizeInt8Row(const ResizeRow& row, const FixedTap& y, const FixedTap* xs, int64_t width) {
  // |weights| add up to less than 2^22 and values to 2^7: the sums fit in 31 bits.
  const hn::ScalableTag<int32_t> d;
  const auto* top = static_cast<const int8_t*>(row.top);
  const auto* bottom = static_cast<const int8_t*>(row.bottom);
  constexpr int32_t kOne = 1 << 10;
  const auto half = hn::Set(d, 1 << 19);
  for (int64_t x = 0; x < width; ++x) {
    const int64_t left = xs[x].low * row.in_pitch, right = xs[x].high * row.in_pitch;
    int8_t* out = static_cast<int8_t*>(row.out) + x * row.out_pitch;
    const auto w_tl = hn::Set(d, (kOne - y.t) * (kOne - xs[x].t));
    const auto w_bl = hn::Set(d, y.t * (kOne - xs[x].t));
    const auto w_tr = hn::Set(d, (kOne - y.t) * xs[x].t);
    const auto w_br = hn::Set(d, y.t * xs[x].t);
    ForChannels(row.channels, hn::Lanes(d), [&](int64_t c, int64_t n) HWY_ATTR {
      const auto sum = hn::Add(hn::Add(hn::Mul(LoadWide(d, top + left + c, n), w_tl),
                                       hn::Mul(LoadWide(d, bottom + left + c, n), w_bl)),
                               hn::Add(hn::Mul(LoadWide(d, top + right + c, n), w_tr),
                                       hn::Mul(LoadWide(d, bottom + right + c, n), w_br)));
      // Half away from zero: on the magnitude.
      const auto rounded = hn::ShiftRight<20>(hn::Add(hn::Abs(sum), half));
      const auto negative = hn::Lt(sum, hn::Zero(d));
      StoreNarrow(d, hn::IfThenElse(negative, hn::Neg(rounded), rounded), out + c, n);
    });
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

template <class AnyTap, class Function>
std::unique_ptr<Kernel> MakeRows(const OpDescription& op, std::string name, Function* function,
                                 std::vector<AnyTap> ys, std::vector<AnyTap> xs) {
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& out = op.outputs[0];
  const int64_t element = BitWidth(in.type) / 8;
  const int64_t in_row = in.shape[2] * in.pitch() * element;
  const int64_t out_row = out.shape[2] * out.pitch() * element;
  ResizeRow row{nullptr, nullptr, nullptr, out.shape[3], in.pitch(), out.pitch()};
  return MakeKernel(std::move(name),
                    {.units = out.shape[3] ? int64_t{out.shape[0]} * out.shape[1] : 0,
                     .grain = GrainFor(int64_t{out.shape[2]} * out.shape[3])},
                    [=, in_h = in.shape[1], out_h = out.shape[1], ys = std::move(ys),
                     xs = std::move(xs)](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* from = static_cast<const std::byte*>(args.inputs[0]);
                      auto* to = static_cast<std::byte*>(args.outputs[0]);
                      ResizeRow r = row;
                      for (int64_t i = begin; i < end; ++i) {
                        const AnyTap& y = ys[i % out_h];
                        const std::byte* image = from + i / out_h * in_h * in_row;
                        r.top = image + y.low * in_row;
                        r.bottom = image + y.high * in_row;
                        r.out = to + i * out_row;
                        function(r, y, xs.data(), static_cast<int64_t>(xs.size()));
                      }
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildResizeBilinearHighway(const OpDescription& op,
                                                           const BuildContext& context) {
  constexpr auto kFloat = FUSELITE_SIMD_TABLE(ResizeFloatRow);
  constexpr auto kUInt8 = FUSELITE_SIMD_TABLE(ResizeUInt8Row);
  constexpr auto kInt8 = FUSELITE_SIMD_TABLE(ResizeInt8Row);
  if (kFloat.For(context.isa) == nullptr) {
    return Unsupported("no vector target at isa=", IsaName(context.isa));
  }
  if (!op.tail.empty()) return Unsupported("RESIZE_BILINEAR takes no fused tail");
  const Shape& in = op.inputs[0].shape;
  const Shape& out = op.outputs[0].shape;
  const auto& params = op.params.as<ResizeParams>();
  const DataType type = op.inputs[0].type;
  const std::string name =
      "resize_bilinear " + std::string(DataTypeName(type)) + " " + SimdName(context.isa);
  if (type == DataType::kInt8) {
    return MakeRows(op, name, kInt8.For(context.isa), FixedBilinearTaps(in[1], out[1], params),
                    FixedBilinearTaps(in[2], out[2], params));
  }
  if (type != DataType::kFloat32 && type != DataType::kUInt8) {
    return Unsupported(DataTypeName(type), " is not float32, uint8 or int8");
  }
  auto* const function = (type == DataType::kFloat32 ? kFloat : kUInt8).For(context.isa);
  return MakeRows(op, name, function, BilinearTaps(in[1], out[1], params),
                  BilinearTaps(in[2], out[2], params));
}

}  // namespace fuselite::kernels
#endif
