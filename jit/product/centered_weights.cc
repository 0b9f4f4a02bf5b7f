#include "jit/product/centered_weights.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>

namespace fuselite::jit {
namespace {

using kernels::DepthRuns;

int Signed(int byte) { return static_cast<int8_t>(byte); }
__m128i Bytes(int value) { return _mm_set1_epi8(static_cast<char>(value)); }
__m128i Load(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
void Store(__m128i value, uint8_t* to) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }

// The greater of each two int8, which SSE2 has for int16 alone.
__m128i Max(__m128i x, __m128i y) {
  const __m128i greater = _mm_cmpgt_epi8(x, y);
  return _mm_or_si128(_mm_and_si128(greater, x), _mm_andnot_si128(greater, y));
}

// Sixteen weights, as int8, less the zero point.
struct Divided {
  __m128i nearest, excess;

  Divided(__m128i weights, __m128i zero_point, __m128i least)
      : nearest(Max(_mm_subs_epi8(weights, zero_point), least)),
        excess(_mm_sub_epi8(_mm_sub_epi8(weights, zero_point), nearest)) {}
};

bool HasBytes(const TensorInfo& weights) {
  return weights.type == DataType::kUInt8 || weights.type == DataType::kInt8;
}

}  // namespace

Centering::Centering(DataType type, int32_t zero_point, int8_t least)
    : flip_(type == DataType::kUInt8 ? 0x80 : 0),
      zero_point_(static_cast<uint8_t>(zero_point) ^ flip_),
      least_(least) {}

uint8_t Centering::Nearest(uint8_t weight) const {
  const int difference = Signed(weight ^ flip_) - Signed(zero_point_);
  return static_cast<uint8_t>(std::clamp<int>(difference, least_, INT8_MAX));
}

uint8_t Centering::Excess(uint8_t weight) const {
  return static_cast<uint8_t>((weight ^ flip_) - zero_point_ - Nearest(weight));
}

void Centering::Divide(const uint8_t* weights, int64_t count, uint8_t* nearest,
                       uint8_t* excess) const {
  const __m128i flip = Bytes(flip_), zero_point = Bytes(zero_point_), least = Bytes(least_);
  int64_t k = 0;
  for (; k + 16 <= count; k += 16) {
    const Divided divided(_mm_xor_si128(Load(weights + k), flip), zero_point, least);
    Store(divided.nearest, nearest + k);
    Store(divided.excess, excess + k);
  }
  for (; k < count; ++k) {
    const uint8_t weight = weights[k];
    nearest[k] = Nearest(weight);
    excess[k] = Excess(weight);
  }
}

void Centering::MarkExcess(const uint8_t* weights, std::span<uint8_t> marks) const {
  const __m128i flip = Bytes(flip_), zero_point = Bytes(zero_point_), least = Bytes(least_);
  size_t k = 0;
  for (; k + 16 <= marks.size(); k += 16) {
    const Divided divided(_mm_xor_si128(Load(weights + k), flip), zero_point, least);
    Store(_mm_or_si128(Load(marks.data() + k), divided.excess), marks.data() + k);
  }
  for (; k < marks.size(); ++k) marks[k] |= Excess(weights[k]);
}

bool Centering::HasExcess(const uint8_t* weights, int64_t count) const {
  std::array<uint8_t, 64> marks{};
  for (int64_t i = 0; i < count; i += std::ssize(marks)) {
    const auto some = static_cast<size_t>(std::min<int64_t>(count - i, std::ssize(marks)));
    MarkExcess(weights + i, std::span(marks).first(some));
  }
  return std::ranges::any_of(marks, [](uint8_t mark) { return mark != 0; });
}

std::optional<std::vector<int64_t>> TermsOfOutliers(const kernels::ProductDescription& description,
                                                    const TensorInfo& weights, int8_t least) {
  const bool taps =
      std::ranges::any_of(description.parts, [](const auto& part) { return !part.taps.empty(); });
  const int64_t channels = description.channels_out, depth = description.n_step;
  const bool dense = description.k_step == 1 && description.right_matrices == 1 &&
                     channels * depth == weights.elements();
  const int32_t zero_point = weights.quantization.zero_point();
  if (!weights.constant() || !HasBytes(weights) || taps || !dense ||
      !Centering::Divides(weights.type, zero_point)) {
    return std::nullopt;
  }
  // Asked of every layer each time that it is planned: looking at all weights took EfficientNet-B0
  // int8 1.8 of 16 ms.
  if (least == INT8_MIN && Centering::IsNone(weights.type, zero_point)) {
    return std::vector<int64_t>();
  }
  std::vector<uint8_t> marks(static_cast<size_t>(depth));
  const auto* values = static_cast<const uint8_t*>(weights.data);
  const Centering centering(weights.type, zero_point, least);
  for (int64_t n = 0; n < channels; ++n) centering.MarkExcess(values + n * depth, marks);
  std::vector<int64_t> terms;
  for (int64_t k = 0; k < depth; ++k) {
    if (marks[k] != 0) terms.push_back(k);
  }
  return terms;
}

std::vector<TermGroup> GroupsOfTerms(const DepthRuns& depth, int64_t values, int64_t value_bytes,
                                     std::span<const int64_t> terms) {
  std::vector<TermGroup> groups;
  auto term = terms.begin();
  int64_t first = 0;  // of the run's terms
  for (int64_t i = 0; i < depth.outer; ++i) {
    for (const DepthRuns::Run& run : depth.runs) {
      for (int64_t at = 0; at < run.length; at += values) {
        const int64_t length = std::min(values, run.length - at), end = first + at + length;
        if (term == terms.end() || *term >= end) continue;
        const int64_t origin = i * depth.outer_step + run.offset;
        groups.push_back({first + at, origin + at * value_bytes, length});
        while (term != terms.end() && *term < end) ++term;
      }
      first += run.length;
    }
  }
  return groups;
}

CenteredRows::CenteredRows(std::span<const uint8_t* const> rows, int64_t depth,
                           const Centering& centering)
    : depth_(depth), copies_(2 * rows.size() * static_cast<size_t>(depth)) {
  uint8_t* to = copies_.data();
  const int64_t excess = std::ssize(rows) * depth;
  for (const uint8_t* row : rows) {
    centering.Divide(row, depth, to, to + excess);
    nearest_.push_back(to);
    to += depth;
  }
}

}  // namespace fuselite::jit
