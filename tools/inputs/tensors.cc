#include "tools/inputs/tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "tools/inputs/inputs.h"

namespace fuselite::tools {
namespace {

template <class T>
void FillIntegers(const interpreter::TensorView& tensor, std::mt19937_64& engine, int64_t low,
                  int64_t high) {
  auto* values = static_cast<T*>(tensor.data);
  const auto span = static_cast<uint64_t>(high - low + 1);
  for (size_t i = 0; i < tensor.bytes / sizeof(T); ++i) {
    values[i] = static_cast<T>(low + static_cast<int64_t>(engine() % span));
  }
}

template <class T>
void FillReals(const interpreter::TensorView& tensor, std::mt19937_64& engine, double low = -1,
               double high = 1) {
  auto* values = static_cast<T*>(tensor.data);
  for (size_t i = 0; i < tensor.bytes / sizeof(T); ++i) {
    values[i] =
        static_cast<T>(low + (high - low) * (static_cast<double>(engine() >> 11) * 0x1p-53));
  }
}

void FillRandom(const interpreter::TensorView& tensor, std::mt19937_64& engine) {
  switch (tensor.type) {
    case DataType::kFloat32: return FillReals<float>(tensor, engine);
    case DataType::kFloat64: return FillReals<double>(tensor, engine);
    case DataType::kInt8: return FillIntegers<int8_t>(tensor, engine, -128, 127);
    case DataType::kUInt8: return FillIntegers<uint8_t>(tensor, engine, 0, 255);
    case DataType::kInt16: return FillIntegers<int16_t>(tensor, engine, -32768, 32767);
    case DataType::kInt32: return FillIntegers<int32_t>(tensor, engine, 0, 1);
    case DataType::kInt64: return FillIntegers<int64_t>(tensor, engine, 0, 1);
    case DataType::kBool: return FillIntegers<uint8_t>(tensor, engine, 0, 1);
    default:
      if (tensor.data != nullptr && BitWidth(tensor.type) > 0) {
        std::memset(tensor.data, 0, tensor.bytes);
      }
  }
}

// The bytes of a string tensor, as interpreter/strings.h describes them.
std::vector<std::byte> RandomLetters(int64_t count, std::mt19937_64& engine) {
  std::vector<int32_t> table = {static_cast<int32_t>(count)};
  const auto first = static_cast<int32_t>(sizeof(int32_t) * (count + 2));
  for (int32_t i = 0; i <= count; ++i) table.push_back(first + i);
  std::vector<std::byte> bytes(std::as_bytes(std::span(table)).begin(),
                               std::as_bytes(std::span(table)).end());
  for (int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>('a' + engine() % 26));
  return bytes;
}

template <class T>
void Append(const Array& array, std::vector<double>& values) {
  const size_t count = array.bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, array.bytes.data() + i * sizeof(T), sizeof(T));
    values.push_back(static_cast<double>(value));
  }
}

}  // namespace

Status FillRandom(interpreter::Interpreter& interpreter, uint64_t seed) {
  for (int i = 0; i < static_cast<int>(interpreter.inputs().size()); ++i) {
    std::mt19937_64 engine(seed * 1000 + static_cast<uint64_t>(i));
    const interpreter::TensorView tensor = interpreter.input(i);
    if (tensor.type == DataType::kString) {
      const auto table = RandomLetters(tensor.shape.elements(), engine);
      FUSELITE_RETURN_IF_ERROR(interpreter.SetStrings(i, table));
    } else {
      FillRandom(tensor, engine);
    }
  }
  return Status();
}

Status FillRandomWithin(interpreter::Interpreter& interpreter, int place, double low, double high,
                        uint64_t seed) {
  const interpreter::TensorView tensor = interpreter.input(place);
  std::mt19937_64 engine(seed * 1000 + static_cast<uint64_t>(place));
  const auto integers = [&](auto zero) -> Status {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    // 2^53: integers beyond it are not what a double says.
    const double lowest = std::max(static_cast<double>(Limits::lowest()), -0x1p53);
    const double highest = std::min(static_cast<double>(Limits::max()), 0x1p53);
    if (low < lowest || high > highest || std::ceil(low) > std::floor(high)) {
      return InvalidArgument(DescribeInput(tensor), ", which takes no value from ", low, " to ",
                             high);
    }
    FillIntegers<T>(tensor, engine, static_cast<int64_t>(std::ceil(low)),
                    static_cast<int64_t>(std::floor(high)));
    return Status();
  };
  switch (tensor.type) {
    case DataType::kFloat32: FillReals<float>(tensor, engine, low, high); return Status();
    case DataType::kFloat64: FillReals<double>(tensor, engine, low, high); return Status();
    case DataType::kInt8: return integers(int8_t{});
    case DataType::kUInt8: return integers(uint8_t{});
    case DataType::kInt16: return integers(int16_t{});
    case DataType::kInt32: return integers(int32_t{});
    case DataType::kInt64: return integers(int64_t{});
    case DataType::kBool: return integers(bool{});
    default:
      return InvalidArgument(DescribeInput(tensor), ", which takes no values within a range");
  }
}

void PerturbInputs(interpreter::Interpreter& interpreter, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(-0x1p-20, 0x1p-20);
  for (size_t i = 0; i < interpreter.inputs().size(); ++i) {
    const interpreter::TensorView tensor = interpreter.input(static_cast<int>(i));
    if (tensor.type != DataType::kFloat32) continue;
    auto* const values = static_cast<float*>(tensor.data);
    for (size_t k = 0; k < tensor.bytes / sizeof(float); ++k) {
      values[k] = static_cast<float>(values[k] * (1 + part(random)));
    }
  }
}

Result<Array> CopyTensor(const interpreter::TensorView& tensor) {
  if (BitWidth(tensor.type) == 0 && tensor.type != DataType::kString) {
    return Unsupported("tensor '", tensor.name, "' is ", DataTypeName(tensor.type));
  }
  Array array{tensor.type, tensor.shape, std::vector<std::byte>(tensor.bytes)};
  if (tensor.bytes > 0) std::memcpy(array.bytes.data(), tensor.data, tensor.bytes);
  return array;
}

std::vector<double> ToDoubles(const Array& array) {
  std::vector<double> values;
  switch (array.type) {
    case DataType::kFloat32: Append<float>(array, values); break;
    case DataType::kFloat64: Append<double>(array, values); break;
    case DataType::kInt8: Append<int8_t>(array, values); break;
    case DataType::kInt16: Append<int16_t>(array, values); break;
    case DataType::kUInt16: Append<uint16_t>(array, values); break;
    case DataType::kInt32: Append<int32_t>(array, values); break;
    case DataType::kUInt32: Append<uint32_t>(array, values); break;
    case DataType::kInt64: Append<int64_t>(array, values); break;
    case DataType::kUInt64: Append<uint64_t>(array, values); break;
    // Others are compared by their bytes.
    default: Append<uint8_t>(array, values);
  }
  return values;
}

Difference Compare(const Array& actual, const Array& expected) {
  Difference difference;
  if (actual.type != expected.type || !(actual.shape == expected.shape)) {
    difference.max = std::numeric_limits<double>::infinity();
    difference.same_shape = false;
    return difference;
  }
  const std::vector<double> a = ToDoubles(actual), e = ToDoubles(expected);
  if (e.empty()) return difference;
  double sum = 0, squares = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (size_t i = 0; i < e.size(); ++i) {
    double error = std::abs(a[i] - e[i]);
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) error = 0;
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    difference.max = std::max(difference.max, error);
    sum += error;
    squares += error * error;
    if (!std::isfinite(e[i])) continue;
    low = std::min(low, e[i]);
    high = std::max(high, e[i]);
  }
  const auto n = static_cast<double>(e.size());
  difference.mean = sum / n;
  difference.deviation = std::sqrt(std::max(0.0, squares / n - difference.mean * difference.mean));
  difference.is_nan = std::ranges::all_of(e, [](double x) { return std::isnan(x); });
  difference.range = std::max(e.size() == 1 ? std::abs(high) : high - low, 0.0);
  if (!std::isfinite(difference.range)) difference.range = 0;  // no finite value
  return difference;
}

namespace {

// Whether an operator of float activations has quantized weights (dynamic range).
bool HasHybridOperators(const interpreter::Model& model) {
  for (const interpreter::ModelSubgraph& graph : model.subgraphs) {
    for (const interpreter::ModelOperator& op : graph.operators) {
      if (op.inputs.size() < 2 || op.inputs[0] < 0 || op.inputs[1] < 0) continue;
      if (graph.tensors[op.inputs[0]].type != DataType::kFloat32) continue;
      const interpreter::ModelTensor& weights = graph.tensors[op.inputs[1]];
      if (weights.constant && !weights.quantization.scales.empty()) return true;
    }
  }
  return false;
}

}  // namespace

double AllowedPart(const interpreter::Model& model, kernels::Precision precision) {
  if (precision == kernels::Precision::kFast) return 0.1;
  return HasHybridOperators(model) ? 0.02 : kFloatPart;
}

double DefaultTolerance(DataType type, double range, double part) {
  const bool real = type == DataType::kFloat32 || type == DataType::kFloat64;
  return real ? std::max(1e-6, part * range) : 0;
}

}  // namespace fuselite::tools
