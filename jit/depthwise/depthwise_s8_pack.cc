// How the filters of 8-bit depthwise convolutions lie in memory (DepthwiseS8Args).
#include <emmintrin.h>

#include <cstring>

#include "jit/depthwise/depthwise_s8.h"
#include "jit/depthwise/folded_pixels.h"

namespace fuselite::jit {

namespace {

// How many places of a block's vectors hold channels, or may between parts.
int CoveredChannels(const DepthwiseS8Blocks& block) {
  return block.rows > 1 ? block.rows * block.part_channels() : block.channels;
}

// Each of the rows that are computed together has the same weights.
void RepeatInParts(const DepthwiseS8Blocks& block, auto* rows) {
  for (auto& row : *rows) {
    for (int part = 1; part < block.rows; ++part) {
      std::memcpy(row.data() + part * block.part_channels(), row.data(), block.part_channels());
    }
  }
}

}  // namespace

size_t DepthwiseS8::packed_bytes() const {
  int64_t bytes = 0;
  for (const DepthwiseS8Blocks& b : blocks_) bytes += b.count * spec_.block_bytes(b.width);
  if (joined_) bytes += spec_.block_bytes(joined_->width);
  return static_cast<size_t>(bytes);
}

std::string DepthwiseS8::layout() const {
  const DepthwiseS8Problem& p = problem_;
  std::string text = internal::Join(
      "depthwise s8 ", p.window.y.filter, 'x', p.window.x.filter, " c", p.channels, " g",
      spec_.group(), '.', spec_.group_channels, " t", static_cast<int>(p.type), '.',
      static_cast<int>(p.weights_type), " z", p.zero_point, '.', p.weights_zero_point);
  for (const int32_t ky : filter_rows_) text += internal::Join(" y", ky);
  if (spec_.pairs_columns()) text += " pairs";
  for (const int step : spec_.again) text += internal::Join(" again", step);
  for (const auto& b : blocks_) text += internal::Join(" b", b.width, '.', b.channels);
  if (joined_) text += internal::Join(" joined", joined_->rows);
  return text + tail_.constants_key();
}

void DepthwiseS8::Pack(const void* filter, const void* bias, std::byte* packed) const {
  const auto* weights = static_cast<const std::byte*>(filter);
  const auto* sums = static_cast<const int32_t*>(bias);
  const int32_t pixels = problem_.folded_pixels;
  if (pixels == 1) return PackChannels(weights, sums, packed);
  const int64_t channels = problem_.channels / pixels;
  const auto filters = RepeatRows(weights, window().taps(), channels, pixels);
  const auto biases = RepeatRows(sums, 1, channels, pixels);
  PackChannels(filters.data(), bias == nullptr ? nullptr : biases.data(), packed);
}

void DepthwiseS8::PackChannels(const std::byte* filter, const int32_t* bias,
                               std::byte* packed) const {
  std::memset(packed, 0, packed_bytes());
  int64_t channel = 0;
  for (const DepthwiseS8Blocks& block : blocks_) {
    for (int64_t i = 0; i < block.count; ++i) {
      PackBlock(filter, bias, block, channel, packed);
      packed += spec_.block_bytes(block.width);
      channel += block.channels;
    }
  }
  if (joined_) PackBlock(filter, bias, *joined_, channel - joined_->channels, packed);
}

// Channels 4 i to 4 i + 3 are side by side in a lane group of 16 bytes (ChannelOfLane).
std::byte* DepthwiseS8::LanesOf(const DepthwiseS8Blocks& block, int channel, std::byte* to) const {
  const int quad = channel / 4;
  return to + quad % spec_.group() * block.width + quad / spec_.group() * 16;
}

// Weights are w - their zero point; the bias takes off what the activations' zero point (that of
// flipped ones is 128 more) adds to every sum, padding included.
void DepthwiseS8::PackBlock(const std::byte* filter, const int32_t* bias,
                            const DepthwiseS8Blocks& block, int64_t channel, std::byte* to) const {
  const int64_t u0 = problem_.zero_point + (spec_.flips() ? 128 : 0);
  const int64_t group_bytes = int64_t{spec_.group()} * block.width;
  BlockSums sums{};
  std::byte* vectors = to + group_bytes;
  for (int32_t kx = 0; kx < window().x.filter; ++kx) {
    for (int32_t step = 0; step < spec_.column_steps(); ++step, vectors += group_bytes) {
      TapRows rows = RowsOf(filter, channel, block.channels, kx, step);
      RepeatInParts(block, &rows);
      spec_.dot ? PackQuads(rows, block, vectors, &sums) : PackPairs(rows, block, vectors, &sums);
    }
  }
  for (const int at : spec_.again) {
    TapRows rows = RowsAgain(filter, channel, block.channels, at);
    RepeatInParts(block, &rows);
    PackQuads(rows, block, vectors, &sums);
    vectors += group_bytes;
  }
  for (int c = 0; c < CoveredChannels(block); ++c) {
    const int in_part = c % block.part_channels();
    if (in_part >= block.channels) continue;
    const int64_t b = bias != nullptr ? bias[channel + in_part] : 0;
    reinterpret_cast<int32_t*>(LanesOf(block, c, to))[c % 4] =
        static_cast<int32_t>(b - u0 * sums[c]);
  }
  PackConstants(bias, block, channel, reinterpret_cast<int32_t*>(to), vectors);
}

// The weights that share a lane. Where there is none, they are their zero point, which is 0.
DepthwiseS8::TapRows DepthwiseS8::RowsOf(const std::byte* filter, int64_t channel, int channels,
                                         int32_t kx, int32_t step) const {
  TapRows rows;
  std::memset(&rows, problem_.weights_zero_point, sizeof(rows));
  if (spec_.group_channels > 1) {
    TakeGroups(filter, channel, channels, kx, step, &rows);
  } else {
    TakeRows(filter, channel, channels, kx, step, &rows);
    if (!problem_.outlier_taps.empty() && spec_.dot) DivideOutliers(step, channels, &rows);
  }
  return rows;
}

// Weights and what they exceed int8 by both stand as if their zero point were to be taken off.
void DepthwiseS8::DivideOutliers(int32_t step, int channels, TapRows* rows) const {
  const Centering centering(problem_.weights_type, problem_.weights_zero_point);
  const auto zero_point = static_cast<uint8_t>(problem_.weights_zero_point);
  TapRow rest;
  for (int row = 0; row < RowsOfStep(step); ++row) {
    TapRow& weights = (*rows)[row];
    const int excess = PlaceOfExcess(step, row);
    TapRow& more = excess >= 0 ? (*rows)[excess] : rest;
    centering.Divide(weights.data(), channels, weights.data(), more.data());
    for (int c = 0; c < channels; ++c) weights[c] += zero_point;
    for (int c = 0; c < channels; ++c) more[c] += zero_point;
  }
}

DepthwiseS8::TapRows DepthwiseS8::RowsAgain(const std::byte* filter, int64_t channel, int channels,
                                            int32_t at) const {
  const int32_t kx = at / spec_.column_steps(), step = at % spec_.column_steps();
  const Centering centering(problem_.weights_type, problem_.weights_zero_point);
  const auto zero_point = static_cast<uint8_t>(problem_.weights_zero_point);
  TapRows rows;
  std::memset(&rows, zero_point, sizeof(rows));
  TakeRows(filter, channel, channels, kx, step, &rows);
  TapRow nearest;
  for (int row = 0; row < RowsOfStep(step); ++row) {
    TapRow& weights = rows[row];
    if (PlaceOfExcess(step, row) >= 0) {  // there it was multiplied beside them
      weights.fill(zero_point);
      continue;
    }
    centering.Divide(weights.data(), channels, nearest.data(), weights.data());
    for (int c = 0; c < channels; ++c) weights[c] += zero_point;
  }
  return rows;
}

void DepthwiseS8::TakeRows(const std::byte* filter, int64_t channel, int channels, int32_t kx,
                           int32_t step, TapRows* rows) const {
  if (spec_.pairs_columns() && step + 1 == spec_.column_steps()) {
    return TakePair(filter, channel, channels, kx, rows);
  }
  for (int row = 0; row < spec_.lane_rows(); ++row) {
    const int32_t place = step * spec_.lane_rows() + row;
    if (place >= window().y.filter) break;
    const int64_t tap = int64_t{filter_rows_[place]} * window().x.filter + kx;
    std::memcpy((*rows)[row].data(), filter + tap * problem_.channels + channel,
                static_cast<size_t>(channels));
  }
}

// Of the last row.
void DepthwiseS8::TakePair(const std::byte* filter, int64_t channel, int channels, int32_t kx,
                           TapRows* rows) const {
  if (!spec_.BeginsPair(kx)) return;
  const int64_t first = int64_t{filter_rows_.back()} * window().x.filter + kx;
  for (int i = DepthwiseS8Spec::WeighsFirst(kx) ? 0 : 1; i < 2; ++i) {
    std::memcpy((*rows)[i].data(), filter + (first + i) * problem_.channels + channel,
                static_cast<size_t>(channels));
  }
}

void DepthwiseS8::TakeGroups(const std::byte* filter, int64_t channel, int channels, int32_t kx,
                             int32_t step, TapRows* rows) const {
  const int group = spec_.group_channels, shuffled = 4 * spec_.lane_values();
  const int64_t ky = step / spec_.row_steps(), tap = ky * window().x.filter + kx;
  for (int c = 0; c < channels; ++c) {
    // Blocks begin with whole 16 bytes.
    const int first = c / shuffled * shuffled;
    const int input = first + spec_.LaneInput(c - first, step % spec_.row_steps());
    const std::byte* const weights = filter + ((channel + c) * window().taps() + tap) * group;
    for (int i = 0; i < spec_.lane_values(); ++i) {
      const int of_group = input + i - c / group * group;
      if (of_group < 0 || of_group >= group) continue;
      (*rows)[i][c] = static_cast<uint8_t>(weights[of_group]);
    }
  }
}

// Four taps in each lane.
void DepthwiseS8::PackQuads(const TapRows& rows, const DepthwiseS8Blocks& block, std::byte* to,
                            BlockSums* sums) const {
  const bool is_signed = problem_.weights_type == DataType::kInt8;
  const __m128i zero = _mm_set1_epi8(static_cast<char>(problem_.weights_zero_point));
  const __m128i flip = _mm_set1_epi8(static_cast<char>(is_signed ? 0x80 : 0));
  const __m128i even = _mm_set1_epi16(0xFF), ones = _mm_set1_epi16(1);
  // What the sum of four has too much.
  const __m128i excess = _mm_set1_epi32(4 * (problem_.weights_zero_point + (is_signed ? 128 : 0)));
  const auto pack = [&](__m128i quads, int channel) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(LanesOf(block, channel, to)),
                     _mm_sub_epi8(quads, zero));
    const __m128i bytes = _mm_xor_si128(quads, flip);
    const __m128i pairs = _mm_add_epi16(_mm_and_si128(bytes, even), _mm_srli_epi16(bytes, 8));
    auto* const sum = reinterpret_cast<__m128i*>(sums->data() + channel);
    const __m128i four = _mm_sub_epi32(_mm_madd_epi16(pairs, ones), excess);
    _mm_storeu_si128(sum, _mm_add_epi32(_mm_loadu_si128(sum), four));
  };
  const int covered = CoveredChannels(block);
  for (int channel = 0; channel < covered; channel += 16) {
    const auto row = [&](int i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i].data() + channel));
    };
    const __m128i low01 = _mm_unpacklo_epi8(row(0), row(1));
    const __m128i low23 = _mm_unpacklo_epi8(row(2), row(3));
    const __m128i high01 = _mm_unpackhi_epi8(row(0), row(1));
    const __m128i high23 = _mm_unpackhi_epi8(row(2), row(3));
    const __m128i quads[] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                             _mm_unpacklo_epi16(high01, high23),
                             _mm_unpackhi_epi16(high01, high23)};
    for (int i = 0; i < 4 && channel + 4 * i < covered; ++i) pack(quads[i], channel + 4 * i);
  }
}

// Two taps of 16 bits in each lane. Behind the channels are zero points, which pack to zeros.
void DepthwiseS8::PackPairs(const TapRows& rows, const DepthwiseS8Blocks& block, std::byte* to,
                            BlockSums* sums) const {
  const bool is_signed = problem_.weights_type == DataType::kInt8;
  const __m128i zero_point = _mm_set1_epi16(static_cast<int16_t>(problem_.weights_zero_point));
  const __m128i none = _mm_setzero_si128(), ones = _mm_set1_epi16(1);
  const auto pack = [&](__m128i pairs, int channel) {
    const __m128i weights = _mm_sub_epi16(pairs, zero_point);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(LanesOf(block, channel, to)), weights);
    auto* const sum = reinterpret_cast<__m128i*>(sums->data() + channel);
    _mm_storeu_si128(sum, _mm_add_epi32(_mm_loadu_si128(sum), _mm_madd_epi16(weights, ones)));
  };
  // The bytes in the low halves of 16 bits, or in the high ones to be shifted down with their sign.
  const auto widen_low = [&](__m128i x) {
    return is_signed ? _mm_srai_epi16(_mm_unpacklo_epi8(none, x), 8) : _mm_unpacklo_epi8(x, none);
  };
  const auto widen_high = [&](__m128i x) {
    return is_signed ? _mm_srai_epi16(_mm_unpackhi_epi8(none, x), 8) : _mm_unpackhi_epi8(x, none);
  };
  for (int channel = 0; channel < block.channels; channel += 8) {
    const auto row = [&](int i) {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows[i].data() + channel));
    };
    const __m128i pairs = _mm_unpacklo_epi8(row(0), row(1));
    pack(widen_low(pairs), channel);
    if (channel + 4 < block.channels) pack(widen_high(pairs), channel + 4);
  }
}

void DepthwiseS8::PackConstants(const int32_t* bias, const DepthwiseS8Blocks& block,
                                int64_t channel, int32_t* first_sums, std::byte* to) const {
  const int lanes = block.width / 4;
  std::vector<int64_t> channels(static_cast<size_t>(lanes));
  for (int v = 0; v < spec_.group(); ++v, to += int64_t{spec_.tail.constants()} * block.width) {
    for (int lane = 0; lane < lanes; ++lane) {
      const int at =
          spec_.tail.dequantization ? v * lanes + lane : ChannelOfLane(spec_.group(), v, lane);
      const int in_part = block.rows > 1 ? at % block.part_channels() : at;
      channels[static_cast<size_t>(lane)] = in_part < block.channels ? channel + in_part : -1;
    }
    tail_.PackConstants(channels, bias, first_sums + v * lanes, to);
  }
}

}  // namespace fuselite::jit
