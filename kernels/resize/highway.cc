// Bilinear interpolation in float with the reference's products and sums, in its order.
#include "kernels/make_kernel.h"
#include "kernels/resize/resize.h"
#include "runtime/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_RESIZE_ROW_H_
#define FUSELITE_KERNELS_RESIZE_ROW_H_
namespace fuselite::kernels {

// One row of output pixels from two rows of input pixels; pitches count elements. The products
// hold in_w * channels floats and a vector more each.
struct ResizeRow {
  const void* top;
  const void* bottom;
  void* out;
  float* top_products;
  float* bottom_products;
  int64_t in_w, channels;
  int64_t in_pitch, out_pitch;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const float* p, size_t n) {
  return LoadUpTo(d, p, n);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const uint8_t* p, size_t n) {
  const hn::Rebind<uint8_t, D> narrow;
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(d, hn::PromoteTo(di, LoadUpTo(narrow, p, n)));
}

template <class D>
HWY_INLINE void StoreResult(D d, hn::Vec<D> value, float* p, size_t n) {
  StoreUpTo(value, d, p, n);
}
// Rounds half up; truncates, then saturates.
template <class D>
HWY_INLINE void StoreResult(D d, hn::Vec<D> value, uint8_t* p, size_t n) {
  const hn::Rebind<uint8_t, D> narrow;
  const hn::RebindToSigned<D> di;
  const auto whole = hn::ConvertTo(di, hn::Add(value, hn::Set(d, 0.5f)));
  StoreUpTo(hn::DemoteTo(narrow, whole), narrow, p, n);
}

// A row's pixels side by side, each times `weight`.
template <class T>
void RowProducts(const T* in, const ResizeRow& row, float weight, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool dense = row.in_pitch == row.channels;
  const int64_t run = dense ? row.in_w * row.channels : row.channels;
  for (int64_t x = 0; x < (dense ? 1 : row.in_w); ++x) {
    for (int64_t i = 0; i < run; i += lanes) {
      const auto value = LoadFloats(d, in + x * row.in_pitch + i, run - i);
      hn::StoreU(hn::Mul(value, hn::Set(d, weight)), d, out + x * run + i);
    }
  }
}

// What the reference multiplies first: channels from `c` on of pixel `x` of the upper or the lower
// row, times the row's weight. From the products of whole rows ...
template <class D>
struct FromProducts {
  const ResizeRow& row;

  HWY_INLINE hn::Vec<D> operator()(bool lower, int64_t x, int64_t c) const {
    return hn::LoadU(D(), (lower ? row.bottom_products : row.top_products) + x * row.channels + c);
  }
};
// ... or from the pixels, of which a smaller image does not take all.
template <class D, class T>
struct FromPixels {
  const ResizeRow& row;
  hn::Vec<D> upper_weight, lower_weight;

  HWY_INLINE hn::Vec<D> operator()(bool lower, int64_t x, int64_t c) const {
    const auto* pixels = static_cast<const T*>(lower ? row.bottom : row.top);
    const auto value = LoadFloats(D(), pixels + x * row.in_pitch + c, row.channels - c);
    return hn::Mul(value, lower ? lower_weight : upper_weight);
  }
};

// The products and sums of the reference, in its order: the same bits. The vertical products come
// first there, so that a row's pixels can share them.
template <class D, class T, class Weighted>
HWY_INLINE void ResizePixels(D d, const ResizeRow& row, const Tap* xs, int64_t width,
                             const Weighted& weighted) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // A whole vector may be stored as long as what lies behind it is still to come.
  const bool dense = row.out_pitch == row.channels;
  for (int64_t x = 0; x < width; ++x) {
    const auto x0 = hn::Set(d, 1 - xs[x].t), x1 = hn::Set(d, xs[x].t);
    const int64_t left = xs[x].low, right = xs[x].high;
    T* out = static_cast<T*>(row.out) + x * row.out_pitch;
    const int64_t room = dense ? (width - x) * row.channels : row.channels;
    for (int64_t c = 0; c < row.channels; c += lanes) {
      const auto near_left =
          hn::Add(hn::Mul(weighted(false, left, c), x0), hn::Mul(weighted(true, left, c), x0));
      const auto sum = hn::Add(hn::Add(near_left, hn::Mul(weighted(false, right, c), x1)),
                               hn::Mul(weighted(true, right, c), x1));
      StoreResult(d, sum, out + c, room - c);
    }
  }
}

template <class T, class D>
void ResizeRowBy(D d, const ResizeRow& row, const Tap& y, const Tap* xs, int64_t width) {
  if (width <= row.in_w) {
    const FromPixels<D, T> weighted{row, hn::Set(d, 1 - y.t), hn::Set(d, y.t)};
    return ResizePixels<D, T>(d, row, xs, width, weighted);
  }
  RowProducts(static_cast<const T*>(row.top), row, 1 - y.t, row.top_products);
  RowProducts(static_cast<const T*>(row.bottom), row, y.t, row.bottom_products);
  ResizePixels<D, T>(d, row, xs, width, FromProducts<D>{row});
}

// Wide vectors of few channels would cross from one cache line to the next at nearly every load.
template <class T>
void ResizeRowOf(const ResizeRow& row, const Tap& y, const Tap* xs, int64_t width) {
  if (row.channels <= 4) return ResizeRowBy<T>(hn::FixedTag<float, 4>(), row, y, xs, width);
  if (row.channels <= 8) return ResizeRowBy<T>(hn::CappedTag<float, 8>(), row, y, xs, width);
  ResizeRowBy<T>(hn::ScalableTag<float>(), row, y, xs, width);
}

void ResizeFloatRow(const ResizeRow& row, const Tap& y, const Tap* xs, int64_t width) {
  ResizeRowOf<float>(row, y, xs, width);
}
void ResizeUInt8Row(const ResizeRow& row, const Tap& y, const Tap* xs, int64_t width) {
  ResizeRowOf<uint8_t>(row, y, xs, width);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

Result<std::unique_ptr<Kernel>> BuildResizeBilinearHighway(const OpDescription& op,
                                                           const BuildContext& context) {
  constexpr auto kFloat = FUSELITE_SIMD_TABLE(ResizeFloatRow);
  constexpr auto kUInt8 = FUSELITE_SIMD_TABLE(ResizeUInt8Row);
  if (!op.tail.empty()) return Unsupported("RESIZE_BILINEAR takes no fused tail");
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& out = op.outputs[0];
  if (in.type != DataType::kFloat32 && in.type != DataType::kUInt8) {
    return Unsupported(DataTypeName(in.type), " is not float32 or uint8");
  }
  FUSELITE_ASSIGN_OR_RETURN(auto* const function,
                            (in.type == DataType::kFloat32 ? kFloat : kUInt8).Require(context.isa));
  const auto& params = op.params.as<ResizeParams>();
  const int64_t element = BitWidth(in.type) / 8;
  const int64_t in_row = in.shape[2] * in.pitch() * element;
  const int64_t out_row = out.shape[2] * out.pitch() * element;
  const int64_t channels = out.shape[3];
  const size_t products = AlignUp(in.shape[2] * channels * sizeof(float) + kAlignment);
  const ResizeRow row{nullptr,     nullptr,  nullptr,    nullptr,    nullptr,
                      in.shape[2], channels, in.pitch(), out.pitch()};
  return MakeKernel(
      "resize_bilinear " + std::string(DataTypeName(in.type)) + " " + SimdName(context.isa),
      {.units = channels ? int64_t{out.shape[0]} * out.shape[1] : 0,
       .grain = GrainFor(int64_t{out.shape[2]} * channels),
       .scratch_bytes = 2 * products},
      [=, in_h = in.shape[1], out_h = out.shape[1],
       ys = BilinearTaps(in.shape[1], out.shape[1], params),
       xs = BilinearTaps(in.shape[2], out.shape[2], params)](const KernelArgs& args, int64_t begin,
                                                             int64_t end) {
        const auto* from = static_cast<const std::byte*>(args.inputs[0]);
        ResizeRow r = row;
        r.top_products = reinterpret_cast<float*>(args.scratch);
        r.bottom_products = reinterpret_cast<float*>(args.scratch + products);
        for (int64_t i = begin; i < end; ++i) {
          const Tap& y = ys[i % out_h];
          const std::byte* image = from + i / out_h * in_h * in_row;
          r.top = image + y.low * in_row;
          r.bottom = image + y.high * in_row;
          r.out = static_cast<std::byte*>(args.outputs[0]) + i * out_row;
          function(r, y, xs.data(), static_cast<int64_t>(xs.size()));
        }
      });
}

}  // namespace fuselite::kernels
#endif
