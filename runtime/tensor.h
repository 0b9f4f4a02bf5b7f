// What a tensor is, apart from its bytes: element type, shape, quantization.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/channel_values.h"

namespace fuselite {

// Numbered as TfLiteType, so that hosts' values convert by a cast after IsKnownDataType().
enum class DataType : uint8_t {
  kNone = 0,  // also: an absent optional operand
  kFloat32 = 1,
  kInt32 = 2,
  kUInt8 = 3,
  kInt64 = 4,
  kString = 5,
  kBool = 6,
  kInt16 = 7,
  kComplex64 = 8,
  kInt8 = 9,
  kFloat16 = 10,
  kFloat64 = 11,
  kComplex128 = 12,
  kUInt64 = 13,
  kResource = 14,
  kVariant = 15,
  kUInt32 = 16,
  kUInt16 = 17,
  kInt4 = 18,  // two to a byte, the lower nibble first
  kBFloat16 = 19,
  kInt2 = 20,   // four to a byte, the lowest bits first
  kUInt4 = 21,  // as int4
};
inline constexpr int kDataTypeCount = 22;

bool IsKnownDataType(int value);
std::string_view DataTypeName(DataType type);  // "float32", "int8", ...
// Bits of one element; 0 for kNone, kString, kResource and kVariant.
int BitWidth(DataType type);

// Dimensions, outermost first. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 16;

  Shape() = default;
  Shape(std::initializer_list<int32_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Precondition: dims.size() <= kMaxRank; use FromDims for untrusted input.
  explicit Shape(std::span<const int32_t> dims);
  // nullopt where the rank exceeds kMaxRank, a dimension is negative, or the number of elements
  // does not fit in 62 bits.
  static std::optional<Shape> FromDims(std::span<const int32_t> dims);

  int rank() const { return rank_; }
  // Precondition here and below: `i` is one of the dimensions.
  int32_t operator[](int i) const { return dims_[i]; }
  void set(int i, int32_t value) { dims_[i] = value; }
  // Negative `i` counts from the innermost dimension: dim(-1) is the last one.
  int32_t dim(int i) const { return dims_[i < 0 ? rank_ + i : i]; }
  std::span<const int32_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // Adds an innermost dimension. Precondition: rank() < kMaxRank.
  void push_back(int32_t value) { dims_[rank_++] = value; }

  int64_t elements() const;
  // The product of dims [begin, end).
  int64_t elements(int begin, int end) const;
  std::string ToString() const;  // "[1,224,224,3]"

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int32_t, kMaxRank> dims_{};
  int rank_ = 0;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// real = scale * (quantized - zero_point); one entry per tensor, or one per index of dimension
// `axis`. Empty scales: not quantized.
struct Quantization {
  ChannelValues<float> scales{};
  ChannelValues<int32_t> zero_points{};  // as many as scales
  int axis = 0;

  bool empty() const { return scales.empty(); }
  bool per_channel() const { return scales.size() > 1; }
  float scale() const { return scales.empty() ? 0.0f : scales[0]; }
  int32_t zero_point() const { return zero_points.empty() ? 0 : zero_points[0]; }
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

// The description of one operand.
struct TensorInfo {
  DataType type = DataType::kNone;
  Shape shape{};
  Quantization quantization{};
  // The bytes of a constant, dense and alive as long as whatever was built from this description;
  // null for a value that exists only at run time. Constants are as aligned as the file left them:
  // read them with memcpy or LoadUnaligned, or copy them.
  const void* data = nullptr;
  // Elements between the starts of two consecutive rows of the innermost dimension; 0 when dense.
  // Others than 0 arise where a value is placed inside a wider one (concatenation, split).
  int64_t row_pitch = 0;

  bool absent() const { return type == DataType::kNone; }
  bool constant() const { return data != nullptr; }
  int64_t elements() const { return shape.elements(); }
  // Bytes of a dense tensor of this type and shape, which has at most 2^58 elements.
  size_t bytes() const;
  // bytes() of any shape, as a number that does not overflow.
  double estimated_bytes() const;
  int64_t pitch() const { return row_pitch ? row_pitch : (shape.rank() ? shape.dim(-1) : 1); }
};

}  // namespace fuselite
