#include "runtime/tensor.h"

#include <algorithm>
#include <ostream>

namespace fuselite {
namespace {

struct TypeFacts {
  std::string_view name;
  int bits;
};

constexpr std::array<TypeFacts, kDataTypeCount> kTypes = {{
    {"none", 0},     {"float32", 32}, {"int32", 32},       {"uint8", 8},      {"int64", 64},
    {"string", 0},   {"bool", 8},     {"int16", 16},       {"complex64", 64}, {"int8", 8},
    {"float16", 16}, {"float64", 64}, {"complex128", 128}, {"uint64", 64},    {"resource", 0},
    {"variant", 0},  {"uint32", 32},  {"uint16", 16},      {"int4", 4},       {"bfloat16", 16},
    {"int2", 2},     {"uint4", 4},
}};

constexpr int64_t kMaxElements = int64_t{1} << 62;

}  // namespace

bool IsKnownDataType(int value) { return value >= 0 && value < kDataTypeCount; }

std::string_view DataTypeName(DataType type) { return kTypes[static_cast<size_t>(type)].name; }

int BitWidth(DataType type) { return kTypes[static_cast<size_t>(type)].bits; }

Shape::Shape(std::span<const int32_t> dims) : rank_(static_cast<int>(dims.size())) {
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::optional<Shape> Shape::FromDims(std::span<const int32_t> dims) {
  if (dims.size() > kMaxRank) return std::nullopt;
  int64_t count = 1;
  for (int32_t d : dims) {
    if (d < 0) return std::nullopt;
    if (d > 0 && count > kMaxElements / d) return std::nullopt;
    count *= std::max(d, 1);
  }
  return Shape(dims);
}

int64_t Shape::elements() const { return elements(0, rank_); }

int64_t Shape::elements(int begin, int end) const {
  int64_t count = 1;
  for (int i = begin; i < end; ++i) count *= dims_[i];
  return count;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i) text += ',';
    text += std::to_string(dims_[i]);
  }
  return text + "]";
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.ToString(); }

size_t TensorInfo::bytes() const {
  const auto count = static_cast<size_t>(elements()), bits = static_cast<size_t>(BitWidth(type));
  return bits % 8 == 0 ? count * (bits / 8) : (count * bits + 7) / 8;
}

double TensorInfo::estimated_bytes() const {
  return static_cast<double>(elements()) * BitWidth(type) / 8;
}

}  // namespace fuselite
