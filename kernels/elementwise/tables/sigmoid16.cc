#include "kernels/elementwise/tables/sigmoid16.h"

#include <array>
#include <cmath>
#include <cstdlib>

namespace fuselite::kernels {
namespace {

using LogisticTable = std::array<uint32_t, 256>;

double LogisticOf24th(double i) { return 65536 / (1 + std::exp(-i / 24)); }

// Entry i has 16 fraction bits and is lower by half of what the line to the next one is off in
// between.
const LogisticTable& Table() {
  static const LogisticTable kTable = [] {
    LogisticTable table{};
    for (int i = 0; i < 255; ++i) {
      const double value = LogisticOf24th(i);
      const double line = (value + LogisticOf24th(i + 1)) / 2;
      table[i] = static_cast<uint32_t>(std::lround(value - (line - LogisticOf24th(i + 0.5)) / 2));
    }
    table[255] = 65535;
    return table;
  }();
  return kTable;
}

// Whether x is a power of two as TFLite asks: within 0.001 in the exponent.
bool IsPowerOfTwo(float x, int* exponent) {
  const float log2 = std::log(x) * (1.0f / std::log(2.0f));
  *exponent = static_cast<int>(std::round(log2));
  return std::abs(log2 - std::round(log2)) < 1e-3f;
}

}  // namespace

Result<Sigmoid16> Sigmoid16::Logistic(float in_scale) { return Make(in_scale, false); }
Result<Sigmoid16> Sigmoid16::Tanh(float in_scale) { return Make(in_scale, true); }

Result<Sigmoid16> Sigmoid16::Make(float in_scale, bool tanh) {
  Sigmoid16 f;
  f.tanh_ = tanh;
  int exponent;
  const bool power = IsPowerOfTwo(in_scale, &exponent);
  const int left = 12 + exponent;
  if (power && (left == 0 || (tanh && left == 1))) {
    f.multiplier_ = 3 << left;
    return f;
  }
  double multiplier = static_cast<double>(in_scale) * 4096.0 * 3.0;
  while (multiplier <= 32767.0 / 2.0 && f.shift_ <= 30) {
    ++f.shift_;
    multiplier *= 2;
  }
  // Beyond, the products leave 32 bits; below, shifts do.
  if (multiplier >= 65535 || f.shift_ > 30)
    return Unsupported("does not take an input scale of ", in_scale);
  f.multiplier_ = static_cast<int32_t>(multiplier);
  f.round_ = f.shift_ > 0 ? 1 << (f.shift_ - 1) : 0;
  return f;
}

int16_t Sigmoid16::LogisticOf(int32_t x) {
  const auto magnitude = static_cast<uint32_t>(std::abs(x));
  const uint32_t i = magnitude >> 9;
  uint32_t result = 0x7FFF << 10;
  if (i < 255) {
    const LogisticTable& table = Table();
    result = (table[i] << 9) + (magnitude & 0x1ff) * (table[i + 1] - table[i]);
  }
  constexpr uint32_t kHalf = 1 << 9;
  result = x >= 0 ? result + kHalf : (1 << 25) - result + kHalf - 1;
  return static_cast<int16_t>(result >> 10);
}

int16_t Sigmoid16::TanhOf(int32_t x) {
  const auto magnitude = static_cast<uint32_t>(std::abs(x));
  const uint32_t i = magnitude >> 8;
  int32_t result = 0xFFFF << 8;
  if (i < 255) {
    const LogisticTable& table = Table();
    result = static_cast<int32_t>((table[i] << 8) + (magnitude & 0xff) * (table[i + 1] - table[i]));
  }
  constexpr int32_t kOne = 1 << 23, kHalf = 1 << 7;
  result = x >= 0 ? result - kOne + kHalf : kOne - result + kHalf - 1;
  return static_cast<int16_t>(result >> 8);
}

}  // namespace fuselite::kernels
