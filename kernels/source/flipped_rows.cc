#include "kernels/source/flipped_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/source/flipped_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/movement/copy_words-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of at least one vector of D, of which the last one overlaps the one before.
template <class D>
void FlipRowsBy(D d, const std::byte* in, std::byte* out, CopyDim rows, int64_t row_bytes) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), last = row_bytes - lanes;
  const auto sign = hn::Set(d, uint8_t{0x80});
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    const auto flip = [&](int64_t at) HWY_ATTR {
      hn::StoreU(hn::Xor(hn::LoadU(d, As<uint8_t>(in + at)), sign), d, As<uint8_t>(out + at));
    };
    for (int64_t at = 0; at < last; at += lanes) flip(at);
    flip(last);
  }
}

void FlipRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t row_bytes) {
  const hn::ScalableTag<uint8_t> whole;
  const hn::CappedTag<uint8_t, 32> half;
  const hn::CappedTag<uint8_t, 16> quarter;
  const auto fills = [&](auto d) { return row_bytes >= static_cast<int64_t>(hn::Lanes(d)); };
  if (fills(whole)) return FlipRowsBy(whole, in, out, rows, row_bytes);
  if (fills(half)) return FlipRowsBy(half, in, out, rows, row_bytes);
  if (fills(quarter)) return FlipRowsBy(quarter, in, out, rows, row_bytes);
  FlipRowsByBytes(in, out, rows, row_bytes);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kFlipRows = FUSELITE_SIMD_TABLE(FlipRows);

}  // namespace

void FlipRowsByBytes(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t row_bytes) {
  for (int64_t i = 0; i < rows.size; ++i) {
    const std::byte* const from = in + i * rows.in_stride;
    std::byte* const to = out + i * rows.out_stride;
    for (int64_t at = 0; at < row_bytes; ++at) to[at] = from[at] ^ std::byte{0x80};
  }
}

FlipRowsFunction* FlipRowsFor(Isa isa) {
  auto* const function = kFlipRows.For(isa);
  return function == nullptr ? FlipRowsByBytes : function;
}

}  // namespace fuselite::kernels
#endif
