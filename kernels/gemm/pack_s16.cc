#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/quantized_operands.h"

namespace fuselite::kernels {
namespace {

template <class Value>
void PackPanel(const GemmS16Source& s, const Value& value, int64_t n0, int panel, int16_t* to) {
  const int64_t columns = std::min<int64_t>(panel, s.columns - n0);
  const int64_t last = columns * 2;
  for (int64_t k = 0; k < s.depth; k += 2, to += 2 * panel) {
    const int64_t at = s.first + n0 * s.n_stride + k * s.k_stride;
    for (int64_t n = 0; n < columns; ++n) to[2 * n] = value(at + n * s.n_stride);
    for (int64_t n = 0; n < columns; ++n) {
      const int64_t second = at + n * s.n_stride + s.k_stride;
      to[2 * n + 1] = k + 1 < s.depth ? value(second) : int16_t{0};
    }
    std::fill(to + last, to + 2 * panel, int16_t{0});
  }
}

// Calls pack(value): value(i) is element i with the offset, or the byte of it that is asked for.
template <class Weights, class Pack>
void WithValues(const GemmS16Source& s, const Weights& weights, Pack pack) {
  using Bytes = GemmS16Source::Bytes;
  const auto low = [&](int64_t i) { return static_cast<int8_t>(weights[i] + s.offset); };
  if (s.bytes == Bytes::kLow) {
    pack([&](int64_t i) -> int16_t { return low(i); });
  } else if (s.bytes == Bytes::kHigh) {
    pack([&](int64_t i) { return static_cast<int16_t>((weights[i] + s.offset - low(i)) / 256); });
  } else {
    pack([&](int64_t i) { return static_cast<int16_t>(weights[i] + s.offset); });
  }
}

}  // namespace

void PackPanelsS16(const GemmS16Source& source, int panel, int64_t begin, int64_t end,
                   int16_t* packed) {
  // The activations' type is only there to pick the weights'.
  const DataType x = source.type == DataType::kUInt8 ? DataType::kUInt8 : DataType::kInt8;
  const int64_t panel_values = panel * ((source.depth + 1) & ~int64_t{1});
  const auto pack = [&](const auto& value) {
    for (int64_t p = begin; p < end; ++p) {
      PackPanel(source, value, p * panel, panel, packed + p * panel_values);
    }
  };
  WithQuantizedOperands(
      x, nullptr, source.type, source.data,
      [&](const auto*, const auto& weights) { WithValues(source, weights, pack); });
}

void PackQuads(const GemmS16Source& source, int panel, int8_t* packed) {
  const auto* const values = static_cast<const int8_t*>(source.data) + source.first;
  for (int64_t n0 = 0; n0 < source.columns; n0 += panel) {
    for (int64_t k = 0; k < source.depth; k += 4) {
      const auto terms = std::min<int64_t>(4, source.depth - k);
      for (int64_t n = n0; n < n0 + panel; ++n, packed += 4) {
        std::fill_n(packed, 4, int8_t{0});
        if (n < source.columns) std::copy_n(values + n * source.n_stride + k, terms, packed);
      }
    }
  }
}

}  // namespace fuselite::kernels
