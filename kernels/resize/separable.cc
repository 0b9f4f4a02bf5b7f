// Bilinear interpolation of 8-bit and 16-bit pixels in exact integers: each input row is stretched
// once, then two stretched rows are blended into each output row.
#include <cmath>
#include <optional>

#include "kernels/make_kernel.h"
#include "kernels/resize/column_pieces.h"
#include "kernels/resize/resize.h"
#include "runtime/memory/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize/separable.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_RESIZE_SEPARABLE_ONCE_
#define FUSELITE_KERNELS_RESIZE_SEPARABLE_ONCE_
namespace fuselite::kernels {

// The two passes for one type of pixel and one width of lane.
struct SeparablePasses {
  // Pixels of `channels` at `in_pitch` to lanes side by side: `wide` has in_w * channels of them.
  // Up to a vector behind `wide` and `out` is read and written.
  // Then out[x * channels + c] = 2^bits * left + t * (right - left), at most 2^bits times a pixel.
  void (*stretch)(const void* in, int64_t in_w, int64_t in_pitch, int64_t channels, void* wide,
                  const FixedTap* xs, int64_t out_w, void* out);
  // out[i] = (2^bits * top[i] + t * (bottom[i] - top[i])) / 4^bits, half away from zero.
  void (*blend)(const void* top, const void* bottom, int32_t t, int64_t count, void* out);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class Lane, int kBits>
void Stretch(const void* in, int64_t in_w, int64_t in_pitch, int64_t channels, void* wide,
             const FixedTap* xs, int64_t out_w, void* out) {
  const hn::ScalableTag<Lane> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* const lane_row = static_cast<Lane*>(wide);
  const bool dense = in_pitch == channels;
  const int64_t run = dense ? in_w * channels : channels;
  for (int64_t x = 0; x < (dense ? 1 : in_w); ++x) {
    const T* pixel = static_cast<const T*>(in) + x * in_pitch;
    for (int64_t i = 0; i < run; i += lanes) {
      const size_t n = run - i < lanes ? run - i : lanes;
      hn::StoreU(hn::PromoteTo(d, LoadUpTo(narrow, pixel + i, n)), d, lane_row + x * run + i);
    }
  }
  // Whole vectors: what is too much at the end of a pixel is overwritten by the next one.
  for (int64_t x = 0; x < out_w; ++x) {
    const Lane* left = lane_row + xs[x].low * channels;
    const Lane* right = lane_row + xs[x].high * channels;
    Lane* to = static_cast<Lane*>(out) + x * channels;
    const auto t = hn::Set(d, static_cast<Lane>(xs[x].t));
    for (int64_t c = 0; c < channels; c += lanes) {
      const auto l = hn::LoadU(d, left + c), r = hn::LoadU(d, right + c);
      const auto value = hn::Add(hn::ShiftLeft<kBits>(l), hn::Mul(hn::Sub(r, l), t));
      hn::StoreU(value, d, to + c);
    }
  }
}

// (2^kBits a + t (b - a)) / 4^kBits, half away from zero, of lanes that hold the sum.
template <class T, int kBits>
struct Blend {
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> t) {
    using Lane = hn::TFromD<D>;
    const auto half = hn::Set(d, static_cast<Lane>(1) << (2 * kBits - 1));
    const auto sum = hn::Add(hn::ShiftLeft<kBits>(a), hn::Mul(hn::Sub(b, a), t));
    auto rounded = hn::Add(sum, half);
    // Away from zero: one less before negative sums are rounded down.
    if constexpr (std::is_signed_v<Lane>) {
      rounded = hn::Add(rounded, hn::ShiftRight<8 * sizeof(Lane) - 1>(sum));
    }
    return hn::ShiftRight<2 * kBits>(rounded);
  }
};

// Sums of 36 bits, as 2^kBits high + low with 0 <= low < 2^kBits: `low` counts only where it is all
// that keeps a negative sum from the middle between two results.
template <int kBits>
struct Blend<int16_t, kBits> {
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> t) {
    const auto mask = hn::Set(d, (1 << kBits) - 1), half = hn::Set(d, 1 << (kBits - 1));
    const auto step = hn::Sub(b, a);
    const auto fraction = hn::Mul(hn::And(step, mask), t);
    const auto high = hn::Add(hn::Add(a, hn::Mul(hn::ShiftRight<kBits>(step), t)),
                              hn::ShiftRight<kBits>(fraction));
    const auto whole = hn::Eq(hn::And(fraction, mask), hn::Zero(d));
    const auto less = hn::IfThenElseZero(whole, hn::ShiftRight<31>(high));
    return hn::ShiftRight<kBits>(hn::Add(hn::Add(high, half), less));
  }
};

template <class T, class Lane, int kBits>
void BlendRows(const void* top, const void* bottom, int32_t t, int64_t count, void* out) {
  const hn::ScalableTag<Lane> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto weight = hn::Set(d, static_cast<Lane>(t));
  for (int64_t i = 0; i < count; i += lanes) {
    const auto a = hn::LoadU(d, static_cast<const Lane*>(top) + i);
    const auto b = hn::LoadU(d, static_cast<const Lane*>(bottom) + i);
    const auto blended = hn::BitCast(di, Blend<T, kBits>::Of(d, a, b, weight));
    StoreUpTo(hn::DemoteTo(narrow, blended), narrow, static_cast<T*>(out) + i, count - i);
  }
}

template <class T, class Lane, int kBits>
constexpr SeparablePasses PassesOf() {
  return {&Stretch<T, Lane, kBits>, &BlendRows<T, Lane, kBits>};
}

// Weights in units of 2^-4: sums of at most 255 * 2^8 fit into 16 bits.
SeparablePasses NarrowPasses(DataType type) {
  return type == DataType::kInt8 ? PassesOf<int8_t, int16_t, 4>()
                                 : PassesOf<uint8_t, uint16_t, 4>();
}
SeparablePasses WidePasses(DataType type) {
  if (type == DataType::kInt16) return PassesOf<int16_t, int32_t, 10>();
  return type == DataType::kInt8 ? PassesOf<int8_t, int32_t, 10>()
                                 : PassesOf<uint8_t, int32_t, 7>();
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// `taps` in units of 2^-bits, where that is exact and no rounding of the reference's intervenes.
std::optional<std::vector<FixedTap>> ExactTaps(const std::vector<Tap>& taps, int bits) {
  std::vector<FixedTap> result;
  for (const Tap& tap : taps) {
    const float t = std::ldexp(tap.t, bits);
    if (t != std::floor(t) || !(tap.t >= -0.5f && tap.t <= 1.0f)) return std::nullopt;
    result.push_back({tap.low, tap.high, tap.low == tap.high ? 0 : static_cast<int32_t>(t)});
  }
  return result;
}
std::optional<std::vector<FixedTap>> ExactTaps(const std::vector<FixedTap>& taps, int bits) {
  std::vector<FixedTap> result;
  const int32_t unit = 1 << (10 - bits);
  for (const FixedTap& tap : taps) {
    const int32_t t = tap.low == tap.high ? 0 : tap.t;
    if (t % unit != 0) return std::nullopt;
    result.push_back({tap.low, tap.high, t / unit});
  }
  return result;
}

// Images of fewer rows have them cut into pieces of so many bytes of lanes, for threads to share.
// Of more rows whole ones are stretched, each of which serves two rows of the output and more.
constexpr int64_t kManyRows = 32, kPieceBytes = 16 << 10;

// An operation as the passes see it. Columns of taps are counted within their piece.
struct Plan : ResizeShape {
  Plan(const OpDescription& op, bool is_narrow, std::vector<FixedTap> y, std::vector<FixedTap> x)
      : ResizeShape(op),
        ys(std::move(y)),
        xs(std::move(x)),
        value_bytes(BitWidth(op.inputs[0].type) / 8),
        lane_bytes(is_narrow ? 2 : 4),
        pieces(
            ColumnPieces(xs, channels * lane_bytes, rows < kManyRows ? kPieceBytes : INT64_MAX)) {
    for (const ColumnPiece& piece : pieces) {
      row_bytes = std::max(row_bytes, LaneBytes(piece.columns()));
      wide_bytes = std::max(wide_bytes, LaneBytes(piece.in_columns()));
      for (int64_t x = piece.first; x < piece.end; ++x) {
        xs[x].low -= static_cast<int32_t>(piece.in_first);
        xs[x].high -= static_cast<int32_t>(piece.in_first);
      }
    }
  }
  size_t LaneBytes(int64_t columns) const {
    return AlignUp(columns * channels * lane_bytes + kAlignment);
  }

  std::vector<FixedTap> ys, xs;
  int64_t value_bytes, lane_bytes;
  std::vector<ColumnPiece> pieces;
  size_t row_bytes = 0, wide_bytes = 0;  // of a stretched row, of an input row in lanes
};

// The stretched rows of a piece of the input, the last even and the last odd one.
class StretchedRows {
 public:
  StretchedRows(const Plan& plan, const ColumnPiece& piece, const SeparablePasses& passes,
                const KernelArgs& args)
      : plan_(plan), piece_(piece), passes_(passes), args_(args) {}

  // Row `row` of all images'.
  const std::byte* Get(int64_t row) {
    const int64_t slot = row % 2;
    std::byte* const to = args_.scratch + slot * plan_.row_bytes;
    if (held_[slot] != row) {
      const auto* in = static_cast<const std::byte*>(args_.inputs[0]);
      const int64_t pixel = row * plan_.in_w + piece_.in_first;
      passes_.stretch(in + pixel * plan_.in_pitch * plan_.value_bytes, piece_.in_columns(),
                      plan_.in_pitch, plan_.channels, args_.scratch + 2 * plan_.row_bytes,
                      plan_.xs.data() + piece_.first, piece_.columns(), to);
      held_[slot] = row;
    }
    return to;
  }

 private:
  const Plan& plan_;
  const ColumnPiece& piece_;
  const SeparablePasses& passes_;
  const KernelArgs& args_;
  int64_t held_[2] = {-1, -1};
};

// Rows [begin, end) of a piece's columns.
void RunRows(const Plan& plan, const ColumnPiece& piece, const SeparablePasses& passes,
             const KernelArgs& args, int64_t begin, int64_t end) {
  StretchedRows rows(plan, piece, passes, args);
  const bool dense = plan.out_pitch == plan.channels;
  const int64_t runs = dense ? 1 : piece.columns();
  const int64_t run = dense ? piece.columns() * plan.channels : plan.channels;
  for (int64_t row = begin; row < end; ++row) {
    const FixedTap& y = plan.ys[row % plan.out_h];
    const int64_t image = row / plan.out_h * plan.in_h;
    const std::byte* top = rows.Get(image + y.low);
    const std::byte* bottom = rows.Get(image + y.high);
    const int64_t pixel_bytes = plan.out_pitch * plan.value_bytes;
    auto* out =
        static_cast<std::byte*>(args.outputs[0]) + (row * plan.out_w + piece.first) * pixel_bytes;
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t at = i * run * plan.lane_bytes;
      passes.blend(top + at, bottom + at, y.t, run, out + i * pixel_bytes);
    }
  }
}

// Units are the rows of the first piece, then those of the next one.
void RunUnits(const Plan& plan, const SeparablePasses& passes, const KernelArgs& args,
              int64_t begin, int64_t end) {
  while (begin < end) {
    const int64_t piece = begin / plan.rows, first = piece * plan.rows;
    const int64_t last = std::min(end, first + plan.rows);
    RunRows(plan, plan.pieces[piece], passes, args, begin - first, last - first);
    begin = last;
  }
}

template <class AnyTap>
std::optional<Plan> MakePlan(const OpDescription& op, const std::vector<AnyTap>& ys,
                             const std::vector<AnyTap>& xs, bool narrow, int bits) {
  std::optional<std::vector<FixedTap>> y = ExactTaps(ys, bits), x = ExactTaps(xs, bits);
  if (!y || !x) return std::nullopt;
  return Plan(op, narrow, *std::move(y), *std::move(x));
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildResizeBilinearSeparable(const OpDescription& op,
                                                             const BuildContext& context) {
  constexpr auto kNarrow = FUSELITE_SIMD_TABLE(NarrowPasses);
  constexpr auto kWide = FUSELITE_SIMD_TABLE(WidePasses);
  if (!op.tail.empty()) return Unsupported("RESIZE_BILINEAR takes no fused tail");
  const DataType type = op.inputs[0].type;
  if (type != DataType::kInt8 && type != DataType::kUInt8 && type != DataType::kInt16) {
    return Unsupported("takes uint8, int8 and int16, not ", DataTypeName(type));
  }
  const Shape& in = op.inputs[0].shape;
  const Shape& out = op.outputs[0].shape;
  const auto& params = op.params.as<ResizeParams>();
  const auto plan_of = [&](bool narrow) {
    if (type != DataType::kUInt8) {
      return MakePlan(op, FixedBilinearTaps(in[1], out[1], params),
                      FixedBilinearTaps(in[2], out[2], params), narrow, narrow ? 4 : 10);
    }
    return MakePlan(op, BilinearTaps(in[1], out[1], params), BilinearTaps(in[2], out[2], params),
                    narrow, narrow ? 4 : 7);
  };
  std::optional<Plan> plan;
  if (type != DataType::kInt16) plan = plan_of(true);
  const bool narrow = plan.has_value();
  if (!plan) plan = plan_of(false);
  if (!plan) return Unsupported("a weight of uint8 pixels is not a multiple of 1/128");
  FUSELITE_ASSIGN_OR_RETURN(auto* const passes_of, (narrow ? kNarrow : kWide).Require(context.isa));
  const auto pieces = std::ssize(plan->pieces);
  const Work work{.units = plan->rows * pieces,
                  .grain = GrainFor(plan->out_w * plan->channels / std::max<int64_t>(1, pieces)),
                  .scratch_bytes = 2 * plan->row_bytes + plan->wide_bytes};
  return MakeKernel("resize_bilinear " + std::string(DataTypeName(type)) +
                        (narrow ? " 16 bits " : " 32 bits ") + SimdName(context.isa),
                    work,
                    [plan = *std::move(plan), passes = passes_of(type)](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      RunUnits(plan, passes, args, begin, end);
                    });
}

}  // namespace fuselite::kernels
#endif
