// Activations as int16 with their zero points taken off, in the memory that all threads share: what
// quantized and hybrid kernels compute from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/dynamic_groups.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// The functions of one target.
struct ShortRowFunctions {
  static constexpr int kMaxScales = 16;
  // to[i] = from[i] + offset
  void (*widen_s8)(const int8_t* from, int64_t n, int32_t offset, int16_t* to);
  void (*widen_u8)(const uint8_t* from, int64_t n, int32_t offset, int16_t* to);
  DynamicGroups::ExtendRange* extend_range;
  // to[i] = MakeDynamicScale(ranges[i], true), `n` at most kMaxScales.
  void (*make_scales)(const DynamicRange* ranges, int64_t n, DynamicScale* to);
  // As QuantizeDynamically, but for NaN, whose result is any.
  void (*quantize)(const float* from, int64_t n, const DynamicScale& scale, int16_t* to);
  // The same results plus scale.offset + 128, which are bytes.
  void (*quantize_u8)(const float* from, int64_t n, const DynamicScale& scale, uint8_t* to);
};

// The version for `isa`; null below SSSE3.
const ShortRowFunctions* FindShortRowFunctions(Isa isa);

// `groups` times `rows` rows of `values` elements, `pitch` apart. float32 is quantized dynamically,
// a scale for each group.
struct ShortRowsLayout {
  int64_t groups = 0, rows = 0, values = 0, pitch = 0;
  int32_t repeat = 1;    // each value stands that many times in the result
  int64_t to_pitch = 0;  // of the result, at least values * repeat; what is between is zero
  bool asymmetric = false;
};

// The first phases of a kernel: they leave the rows in `shared`.
class ShortRows {
 public:
  ShortRows() = default;
  // kUnsupported where there is no vector target, or for types other than int8, uint8, int16
  // (whose zero point must be 0) and float32.
  Status Init(const TensorInfo& x, const ShortRowsLayout& layout, Isa isa);

  int phases() const { return functions_ == nullptr ? 0 : ranges() ? 2 : 1; }
  int64_t units() const { return groups_.chunks(); }
  int64_t grain() const;
  size_t shared_bytes() const { return scales_at_ + AlignUpFloats(layout_.groups); }
  void Run(const void* x, std::byte* shared, int phase, int64_t begin, int64_t end) const;

  // Row `row` of all groups'. Afterwards.
  const int16_t* Row(const std::byte* shared, int64_t row) const {
    return reinterpret_cast<const int16_t*>(shared) + row * layout_.to_pitch;
  }
  // The scale of a group of float32, once the source has run.
  float Scale(const std::byte* shared, int64_t group) const {
    return reinterpret_cast<const float*>(shared + scales_at_)[group];
  }

 private:
  static size_t AlignUpFloats(int64_t n);
  // Whether a group's range is gathered from several units, in a phase of its own.
  bool ranges() const { return type_ == DataType::kFloat32 && groups_.several_chunks(); }
  DynamicRange* Ranges(std::byte* shared) const {
    return reinterpret_cast<DynamicRange*>(shared + ranges_at_);
  }
  void Convert(const void* x, std::byte* shared, int64_t unit) const;

  const ShortRowFunctions* functions_ = nullptr;
  ShortRowsLayout layout_;
  DynamicGroups groups_;
  DataType type_ = DataType::kNone;
  int32_t x_offset_ = 0;
  size_t ranges_at_ = 0, scales_at_ = 0;
};

}  // namespace fuselite::kernels
