// CAST, QUANTIZE and DEQUANTIZE: the same numbers in another type.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/numbers/quantization.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// The types are those of the tensors; these are only what the file says.
struct CastParams {
  DataType in_data_type;
  DataType out_data_type;
};

// Any of float16, bfloat16, float32, float64, bool and the integers of 8 to 64 bits. Integers wrap;
// floats are truncated and saturate, a NaN to the largest integer; anything but zero is true.
// float32 from and to int4, uint4 and int2 too.
Result<std::unique_ptr<Kernel>> BuildCast(const OpDescription&, const BuildContext&);
// Casts to float32, from float32 to float16, bool and integers of 8 to 32 bits, to float16 from
// what is narrower than 64 bits, and between integers; to the reference's bits.
Result<std::unique_ptr<Kernel>> BuildCastHighway(const OpDescription&, const BuildContext&);

// `count` values, from elements `from` of `in` on to elements `to` of `out` on.
using CastFunction = void(const void* in, int64_t from, void* out, int64_t to, int64_t count);
std::unique_ptr<Kernel> MakeCast(const OpDescription& op, std::string name, CastFunction* function);
// Casts integers of 8 to 64 bits to each other and to bool, with vectors: null for other types, and
// below the vector levels.
CastFunction* IntegerCast(DataType from, DataType to, Isa isa);

// One value of QUANTIZE, of float32 to an integer between `low` and `high`.
template <class T>
T QuantizeOne(float x, float scale, int32_t zero_point, double low = std::numeric_limits<T>::min(),
              double high = std::numeric_limits<T>::max()) {
  const double value = static_cast<double>(std::round(x / scale)) + zero_point;
  return static_cast<T>(value > low ? std::min(value, high) : low);  // NaN: the lowest
}

// float32 -> int8, uint8, int16, per tensor or per channel, int4 and uint4 per tensor:
//   clamp(round(x / scale) + zero_point), half away from zero.
// Between int8, uint8, int16 and int32, per tensor:
//   clamp(MultiplyByQuantizedMultiplier(x - zero_point, scale / output scale) + output zero_point).
Result<std::unique_ptr<Kernel>> BuildQuantizeReference(const OpDescription&, const BuildContext&);
// float32 to 8 and 16 bits per tensor, and every requantization; the reference's bits.
Result<std::unique_ptr<Kernel>> BuildQuantizeHighway(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildRequantizeHighway(const OpDescription&, const BuildContext&);

// One value of a requantization. Sums wrap, as they do in TFLite's builds.
struct Requantizer {
  explicit Requantizer(const OpDescription& op);
  int32_t operator()(int32_t x) const {
    const auto centered =
        static_cast<int32_t>(static_cast<uint32_t>(x) - static_cast<uint32_t>(in_zero));
    const auto scaled = static_cast<uint32_t>(
        MultiplyByQuantizedMultiplier(centered, factor.multiplier, factor.shift));
    return std::clamp(static_cast<int32_t>(scaled + static_cast<uint32_t>(out_zero)), min, max);
  }
  FixedPoint factor;
  int32_t in_zero, out_zero, min, max;
};

// int8, uint8, int16, int32, int4, uint4, int2 -> float32: scale * (x - zero_point), per tensor or
// per channel; float16 -> float32.
Result<std::unique_ptr<Kernel>> BuildDequantizeReference(const OpDescription&, const BuildContext&);
// All of these; the reference's bits.
Result<std::unique_ptr<Kernel>> BuildDequantizeHighway(const OpDescription&, const BuildContext&);

// Whether vectors can subtract the zero points: in 32 bits, and in floats exactly.
Status CheckZeroPoints(const Quantization& quantization);

// The channel of an element of `info`, as in its quantization: element / inner % channels.
struct ChannelOf {
  explicit ChannelOf(const TensorInfo& info);
  int64_t inner, channels;
  int64_t operator()(int64_t element) const { return element / inner % channels; }
};

// The work of an elementwise kernel over `rows` of `width` elements: dense operands are one row,
// cut into pieces; pitched ones a unit each.
struct Pieces {
  Pieces(const TensorInfo& in, const TensorInfo& out);
  // Calls body(in_start, out_start, first, count) in elements; `first` counts densely.
  template <class Body>
  void ForEach(int64_t begin, int64_t end, Body body) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / per_row, from = unit % per_row * size;
      const int64_t count = from + size < width ? size : width - from;
      body(row * in_pitch + from, row * out_pitch + from, row * width + from, count);
    }
  }

  int64_t width, size, per_row, units;
  int64_t in_pitch, out_pitch;
};

}  // namespace fuselite::kernels
