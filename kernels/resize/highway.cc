// Bilinear interpolation in float with the reference's products and sums, in its order.
#include "kernels/make_kernel.h"
#include "kernels/resize/column_pieces.h"
#include "kernels/resize/resize.h"
#include "runtime/memory/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/in_range-inl.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_RESIZE_ROW_H_
#define FUSELITE_KERNELS_RESIZE_ROW_H_
namespace fuselite::kernels {

// The pixels left and right of an output pixel, in elements from the first one that its piece of
// the row reads, and their weights.
struct ColumnTap {
  int64_t left, right;
  float left_weight, right_weight;
};

// A piece of a row of output pixels from pieces of two rows of input pixels; pitches count
// elements. The products hold in_w * channels floats and a vector more each; without them they are
// made of each pixel.
struct ResizeRow {
  const void* top;
  const void* bottom;
  void* out;
  float* top_products;
  float* bottom_products;
  int64_t in_w, channels;
  int64_t in_pitch, out_pitch;
  bool whole_rows;  // the products of all pixels come first; columns are those of the products

  int64_t column_pitch() const { return whole_rows ? channels : in_pitch; }
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
  const auto whole = TruncatedInRange(hn::Add(value, hn::Set(d, 0.5f)));
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

// What the reference multiplies first: channels from `c` on of the pixel at `at` of the upper or
// the lower row, times the row's weight. From the products of whole rows ...
template <class D>
struct FromProducts {
  const float *top, *bottom;

  HWY_INLINE hn::Vec<D> operator()(bool lower, int64_t at, int64_t) const {
    return hn::LoadU(D(), (lower ? bottom : top) + at);
  }
};
// ... or from the pixels, of which a smaller image does not take all.
template <class D, class T>
struct FromPixels {
  const T *top, *bottom;
  hn::Vec<D> upper_weight, lower_weight;

  HWY_INLINE hn::Vec<D> operator()(bool lower, int64_t at, int64_t n) const {
    const auto value = LoadFloats(D(), (lower ? bottom : top) + at, n);
    return hn::Mul(value, lower ? lower_weight : upper_weight);
  }
};

// The products and sums of the reference, in its order: the same bits. The vertical products come
// first there, so that a row's pixels can share them.
template <class D, class Weighted>
HWY_INLINE hn::Vec<D> Blend(D, const Weighted& weighted, int64_t left, int64_t right, int64_t n,
                            hn::Vec<D> x0, hn::Vec<D> x1) {
  const auto near_left =
      hn::Add(hn::Mul(weighted(false, left, n), x0), hn::Mul(weighted(true, left, n), x0));
  return hn::Add(hn::Add(near_left, hn::Mul(weighted(false, right, n), x1)),
                 hn::Mul(weighted(true, right, n), x1));
}

// `weighted` and sizes are values: what is stored might be those of the caller.
template <class D, class T, class Weighted>
HWY_INLINE void ResizePixels(D d, const ResizeRow& row, const ColumnTap* HWY_RESTRICT xs,
                             int64_t width, const Weighted weighted) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t channels = row.channels, out_pitch = row.out_pitch;
  T* HWY_RESTRICT out = static_cast<T*>(row.out);
  int64_t x = 0;
  // A whole vector may be stored as long as what lies behind it is still to come.
  if (out_pitch == channels && channels <= lanes) {
    for (; (width - x) * channels >= lanes; ++x, out += channels) {
      const auto x0 = hn::Set(d, xs[x].left_weight), x1 = hn::Set(d, xs[x].right_weight);
      StoreResult(d, Blend(d, weighted, xs[x].left, xs[x].right, channels, x0, x1), out, lanes);
    }
  }
  for (; x < width; ++x, out += out_pitch) {
    const auto x0 = hn::Set(d, xs[x].left_weight), x1 = hn::Set(d, xs[x].right_weight);
    const int64_t left = xs[x].left, right = xs[x].right;
    const int64_t room = out_pitch == channels ? (width - x) * channels : channels;
    const auto whole = [&](int64_t c) FUSELITE_INLINED {
      StoreResult(d, Blend(d, weighted, left + c, right + c, lanes, x0, x1), out + c, lanes);
    };
    int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) whole(c);
    if (c == channels) continue;
    if (c > 0) {
      // Computes some channels again: a part of a vector of bytes takes longer than a whole one.
      whole(channels - lanes);
    } else {
      StoreResult(d, Blend(d, weighted, left, right, channels, x0, x1), out, room);
    }
  }
}

template <class T, class D>
void ResizeRowBy(D d, const ResizeRow& row, const Tap& y, const ColumnTap* xs, int64_t width) {
  if (!row.whole_rows) {
    const FromPixels<D, T> weighted{static_cast<const T*>(row.top),
                                    static_cast<const T*>(row.bottom), hn::Set(d, 1 - y.t),
                                    hn::Set(d, y.t)};
    return ResizePixels<D, T>(d, row, xs, width, weighted);
  }
  RowProducts(static_cast<const T*>(row.top), row, 1 - y.t, row.top_products);
  RowProducts(static_cast<const T*>(row.bottom), row, y.t, row.bottom_products);
  ResizePixels<D, T>(d, row, xs, width, FromProducts<D>{row.top_products, row.bottom_products});
}

// Wide vectors of few channels would cross from one cache line to the next at nearly every load.
template <class T>
void ResizeRowOf(const ResizeRow& row, const Tap& y, const ColumnTap* xs, int64_t width) {
  if (row.channels <= 4) return ResizeRowBy<T>(hn::FixedTag<float, 4>(), row, y, xs, width);
  if (row.channels <= 8) return ResizeRowBy<T>(hn::CappedTag<float, 8>(), row, y, xs, width);
  ResizeRowBy<T>(hn::ScalableTag<float>(), row, y, xs, width);
}

void ResizeFloatRow(const ResizeRow& row, const Tap& y, const ColumnTap* xs, int64_t width) {
  ResizeRowOf<float>(row, y, xs, width);
}
void ResizeUInt8Row(const ResizeRow& row, const Tap& y, const ColumnTap* xs, int64_t width) {
  ResizeRowOf<uint8_t>(row, y, xs, width);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Whether what the rows' weights make of all pixels of two rows, in whole vectors, takes less than
// what they make of four pixels for each output pixel. That depends on how many of the pixels a
// smaller image leaves out, on how much of a vector the channels of one fill, and on whether they
// become floats first: the limits are those of images of 256 x 256 on a Zen 5.
bool TakesWholeRows(int64_t in_w, int64_t out_w, int64_t channels, bool floats) {
  return channels <= 8 ? in_w * channels <= (floats ? 6 : 12) * out_w : in_w < out_w;
}

// Two rows of products stay in L2, beside what is read and written. Longer ones are cut into pieces
// that stay in L1; of a few columns at least, as neighbours read a column of each other's.
constexpr int64_t kWholeRowBytes = 64 << 10, kPieceBytes = 16 << 10, kLeastColumns = 4;

std::vector<ColumnPiece> CutRows(const std::vector<Tap>& taps, int64_t in_w, int64_t channels) {
  const int64_t pixel = channels * int64_t{sizeof(float)};
  const bool whole = in_w * pixel <= kWholeRowBytes;
  const int64_t piece = std::max(kPieceBytes, kLeastColumns * pixel);
  return ColumnPieces(taps, pixel, whole ? kWholeRowBytes : piece);
}

std::vector<ColumnTap> ColumnTaps(const std::vector<Tap>& taps,
                                  const std::vector<ColumnPiece>& pieces, int64_t pitch) {
  std::vector<ColumnTap> columns;
  for (const ColumnPiece& piece : pieces) {
    for (int64_t x = piece.first; x < piece.end; ++x) {
      columns.push_back({.left = (taps[x].low - piece.in_first) * pitch,
                         .right = (taps[x].high - piece.in_first) * pitch,
                         .left_weight = 1 - taps[x].t,
                         .right_weight = taps[x].t});
    }
  }
  return columns;
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildResizeBilinearHighway(const OpDescription& op,
                                                           const BuildContext& context) {
  constexpr auto kFloat = FUSELITE_SIMD_TABLE(ResizeFloatRow);
  constexpr auto kUInt8 = FUSELITE_SIMD_TABLE(ResizeUInt8Row);
  if (!op.tail.empty()) return Unsupported("RESIZE_BILINEAR takes no fused tail");
  const TensorInfo& in = op.inputs[0];
  const TensorInfo& out = op.outputs[0];
  if (in.type != DataType::kFloat32 && in.type != DataType::kUInt8) {
    return Unsupported("takes float32 and uint8, not ", DataTypeName(in.type));
  }
  FUSELITE_ASSIGN_OR_RETURN(auto* const function,
                            (in.type == DataType::kFloat32 ? kFloat : kUInt8).Require(context.isa));
  const auto& params = op.params.as<ResizeParams>();
  const int64_t element = BitWidth(in.type) / 8;
  const int64_t in_row = in.shape[2] * in.pitch() * element;
  const int64_t out_row = out.shape[2] * out.pitch() * element;
  const int64_t channels = out.shape[3];
  const std::vector<Tap> taps = BilinearTaps(in.shape[2], out.shape[2], params);
  const std::vector<ColumnPiece> pieces = CutRows(taps, in.shape[2], channels);
  int64_t most_columns = 0, most_read = 0;
  for (const ColumnPiece& piece : pieces) {
    most_columns = std::max(most_columns, piece.columns());
    most_read = std::max(most_read, piece.in_columns());
  }
  const size_t products = AlignUp(most_read * channels * sizeof(float) + kAlignment);
  const ResizeRow row{.top = nullptr,
                      .bottom = nullptr,
                      .out = nullptr,
                      .top_products = nullptr,
                      .bottom_products = nullptr,
                      .in_w = 0,
                      .channels = channels,
                      .in_pitch = in.pitch(),
                      .out_pitch = out.pitch(),
                      .whole_rows = TakesWholeRows(in.shape[2], out.shape[2], channels,
                                                   in.type == DataType::kFloat32)};
  return MakeKernel(
      "resize_bilinear " + std::string(DataTypeName(in.type)) + " " + SimdName(context.isa),
      {.units = channels ? out.shape[0] * int64_t{out.shape[1]} * std::ssize(pieces) : 0,
       .grain = GrainFor(most_columns * channels),
       .scratch_bytes = 2 * products},
      [=, in_h = in.shape[1], out_h = out.shape[1],
       ys = BilinearTaps(in.shape[1], out.shape[1], params),
       xs = ColumnTaps(taps, pieces, row.column_pitch())](const KernelArgs& args, int64_t begin,
                                                          int64_t end) {
        const auto* from = static_cast<const std::byte*>(args.inputs[0]);
        ResizeRow r = row;
        r.top_products = reinterpret_cast<float*>(args.scratch);
        r.bottom_products = reinterpret_cast<float*>(args.scratch + products);
        const int64_t of_row = std::ssize(pieces);
        int64_t i = begin / of_row, p = begin % of_row;  // a row of the output, a piece of it
        int64_t image = i / out_h, y_out = i % out_h;
        for (int64_t unit = begin; unit < end; ++unit) {
          const ColumnPiece& piece = pieces[p];
          const Tap& y = ys[y_out];
          const std::byte* first =
              from + image * in_h * in_row + piece.in_first * r.in_pitch * element;
          r.top = first + y.low * in_row;
          r.bottom = first + y.high * in_row;
          r.in_w = piece.in_columns();
          r.out = static_cast<std::byte*>(args.outputs[0]) + i * out_row +
                  piece.first * r.out_pitch * element;
          function(r, y, xs.data() + piece.first, piece.columns());
          if (++p < of_row) continue;
          p = 0;
          ++i;
          if (++y_out < out_h) continue;
          y_out = 0;
          ++image;
        }
      });
}

}  // namespace fuselite::kernels
#endif
