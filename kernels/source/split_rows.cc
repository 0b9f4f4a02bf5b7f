#include "kernels/source/split_rows.h"

#include <cstdlib>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/source/split_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/movement/copy_words-inl.h"
#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_SOURCE_SPLIT_ROWS_ONCE_
#define FUSELITE_KERNELS_SOURCE_SPLIT_ROWS_ONCE_
namespace fuselite::kernels {
namespace {

void SplitByte(uint8_t value, bool is_signed, int64_t n, std::byte* to) {
  const auto flipped = static_cast<uint8_t>(value ^ 0x80);
  const uint8_t without_sign = is_signed ? flipped : value;
  const auto with_sign = static_cast<int8_t>(is_signed ? value : flipped);
  to[0] = std::byte{without_sign};
  to[n] = static_cast<std::byte>(with_sign);
  to[2 * n] = static_cast<std::byte>(std::abs(int{with_sign}));
}

template <bool kSigned>
void SplitRowsByBytes(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t row_bytes) {
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    for (int64_t at = 0; at < row_bytes; ++at) {
      SplitByte(static_cast<uint8_t>(in[at]), kSigned, row_bytes, out + at);
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of at least one vector, of which the last one overlaps the one before.
template <bool kSigned>
void SplitRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t row_bytes) {
  const hn::CappedTag<uint8_t, 32> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), last = row_bytes - lanes;
  if (last < 0) return SplitRowsByBytes<kSigned>(in, out, rows, row_bytes);
  const auto sign = hn::Set(d, uint8_t{0x80});
  for (int64_t i = 0; i < rows.size; ++i, in += rows.in_stride, out += rows.out_stride) {
    const auto split = [&](int64_t at) FUSELITE_INLINED {
      const auto value = hn::LoadU(d, As<uint8_t>(in + at)), flipped = hn::Xor(value, sign);
      const auto with_sign = hn::BitCast(di, kSigned ? value : flipped);
      hn::StoreU(kSigned ? flipped : value, d, As<uint8_t>(out + at));
      hn::StoreU(with_sign, di, As<int8_t>(out + row_bytes + at));
      hn::StoreU(hn::Abs(with_sign), di, As<int8_t>(out + 2 * row_bytes + at));
    };
    for (int64_t at = 0; at < last; at += lanes) split(at);
    split(last);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

SplitRowsFunction* SplitRowsFor(Isa isa, bool is_signed) {
  constexpr auto kSigned = FUSELITE_SIMD_TABLE(SplitRows<true>);
  constexpr auto kUnsigned = FUSELITE_SIMD_TABLE(SplitRows<false>);
  if (!isa.has_vectors()) return is_signed ? SplitRowsByBytes<true> : SplitRowsByBytes<false>;
  return is_signed ? kSigned.For(isa) : kUnsigned.For(isa);
}

}  // namespace fuselite::kernels
#endif
