#include "tests/fuzz/random_operation.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/fuzz/fitting_operands.h"

namespace fuselite::fuzz {
namespace {

using kernels::Field;
using kernels::FieldKind;
using kernels::OperatorDef;

bool Sized(DataType type) { return BitWidth(type) > 0; }

DataType AnyType(Random& random) {
  return random.Pick({DataType::kFloat32, DataType::kFloat32, DataType::kInt8, DataType::kUInt8,
                      DataType::kInt16, DataType::kInt32, DataType::kInt64, DataType::kBool,
                      DataType::kFloat16, DataType::kInt4, DataType::kUInt32, DataType::kFloat64,
                      DataType::kBFloat16, DataType::kComplex64});
}

template <class List>
void DrawList(Random& random, List& list) {
  list.count = static_cast<int32_t>(random.Int(0, 4));
  for (int32_t i = 0; i < list.count; ++i) {
    list.values[i] = static_cast<int32_t>(random.Int(-1, 4));
  }
}

void DrawField(const Field& field, Random& random, void* params) {
  if (random.Chance(0.3)) return;  // the default
  auto* at = static_cast<std::byte*>(params) + field.offset;
  const auto set = [&](auto value) { std::memcpy(at, &value, sizeof value); };
  switch (field.kind) {
    case FieldKind::kInt32: {
      // Sizes, strides and numbers of operands begin at 1.
      const bool axis = field.name.find("axis") != std::string_view::npos;
      const int64_t any = axis ? random.Int(-2, 2) : random.Int(-2, 6);
      return set(static_cast<int32_t>(axis || random.Chance(0.3) ? any : random.Int(1, 3)));
    }
    case FieldKind::kInt64: return set(random.Int(-2, 6));
    case FieldKind::kFloat: return set(random.Pick({0.0f, 1.0f, 0.5f, -1.0f, 1e-3f, 40.0f}));
    case FieldKind::kBool: return set(random.Chance(0.5));
    case FieldKind::kActivation:
      return set(static_cast<int32_t>(random.Chance(0.6) ? 0 : random.Int(0, 5)));
    case FieldKind::kPadding: return set(static_cast<int32_t>(random.Int(0, 1)));
    case FieldKind::kDataType:
      return set(random.Chance(0.7) ? random.Pick({DataType::kInt32, DataType::kInt64})
                                    : AnyType(random));
    case FieldKind::kEnum8: return set(static_cast<int32_t>(random.Int(0, 3)));
    case FieldKind::kIntList:
    case FieldKind::kLongList: return DrawList(random, *reinterpret_cast<kernels::IntList*>(at));
    case FieldKind::kLongPairs: return DrawList(random, *reinterpret_cast<kernels::PairList*>(at));
    case FieldKind::kFloatList: return;  // points into a model
  }
}

Shape DrawShape(Random& random, int min_rank, int max_rank) {
  Shape shape;
  const int64_t rank = random.Int(min_rank, max_rank);
  for (int64_t i = 0; i < rank; ++i) {
    // Around the widths of vectors, here and there nothing.
    const int64_t dim = random.Chance(0.03) ? 0 : random.Int(1, i + 1 == rank ? 19 : 5);
    shape.push_back(static_cast<int32_t>(dim));
  }
  return shape;
}

// A shape that goes with `first`: the same, one that broadcasts, a vector over one of its
// dimensions, or any.
Shape DrawOther(Random& random, Shape first) {
  switch (random.Int(0, 5)) {
    case 0:
    case 1: return first;
    case 2:
      for (int i = 0; i < first.rank(); ++i) {
        if (random.Chance(0.5)) first.set(i, 1);
      }
      return first;
    case 3:
      if (first.rank() == 0) return first;
      return {first[static_cast<int>(random.Int(0, first.rank() - 1))]};
    case 4: return {static_cast<int32_t>(random.Int(0, 4))};  // axes, sizes
    default: return DrawShape(random, 0, 5);
  }
}

Quantization DrawQuantization(DataType type, const Shape& shape, Random& random) {
  Quantization q;
  const bool integer = type == DataType::kInt8 || type == DataType::kUInt8 ||
                       type == DataType::kInt16 || type == DataType::kInt4;
  if (!integer || random.Chance(0.05)) return q;
  const bool wide = type == DataType::kInt16;
  int64_t count = 1;
  if (shape.rank() > 0 && random.Chance(0.1)) {
    q.axis = static_cast<int>(random.Int(0, shape.rank() - 1));
    count = shape[q.axis];
  }
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  for (int64_t i = 0; i < count; ++i) {
    scales.push_back(random.Pick({0.02f, 0.5f, 0.00390625f, 3e-5f, 1.0f}));
    const int64_t low = type == DataType::kUInt8 ? 0 : -128, high = low + 255;
    const bool zero = wide || random.Chance(0.4);
    zero_points.push_back(zero ? 0 : static_cast<int32_t>(random.Int(low, high)));
  }
  q.scales = std::move(scales);
  q.zero_points = std::move(zero_points);
  return q;
}

TensorInfo DrawTensor(DataType type, const Shape& shape, Random& random) {
  TensorInfo info{.type = Sized(type) ? type : DataType::kFloat32, .shape = shape};
  info.quantization = DrawQuantization(info.type, shape, random);
  return info;
}

// A row of the operator's types; where any type is taken, one for all operands.
kernels::TypeRow DrawTypes(const OperatorDef& op, Random& random) {
  kernels::TypeRow row;
  if (!op.types.empty() && !random.Chance(0.03)) {
    row = op.types[random.Int(0, static_cast<int64_t>(op.types.size()) - 1)];
  }
  const DataType any = AnyType(random);
  for (DataType& type : row.inputs) {
    if (type == DataType::kNone) type = any;
  }
  if (row.output == DataType::kNone) row.output = row.inputs[0];
  return row;
}

void DrawInputs(RandomOperation& drawn, const kernels::TypeRow& row, const Shape& first,
                Random& random) {
  const OperatorDef& op = *drawn.op;
  const int max_inputs = op.max_inputs < 0 ? op.min_inputs + 3 : op.max_inputs;
  const int64_t count = random.Int(op.min_inputs, std::max(op.min_inputs, max_inputs));
  const bool fitting = random.Chance(0.8);
  for (int64_t i = 0; i < count; ++i) {
    // What stands behind the third operand is one of many, or goes with the third.
    const bool many = op.max_inputs < 0;
    const DataType type = row.inputs[i < 3 ? i : many ? 0 : 2];
    const auto fit = fitting ? DrawFittingOperand(op.name, i, type, first, random) : std::nullopt;
    const bool present = i < op.min_inputs || random.Chance(0.8);
    const Shape shape = fit ? fit->info.shape : i == 0 ? first : DrawOther(random, first);
    drawn.inputs.push_back(present ? DrawTensor(fit ? fit->info.type : type, shape, random)
                                   : TensorInfo());
    const bool valued = present && fit && !fit->values.empty();
    drawn.values.push_back(valued ? fit->values : std::vector<std::byte>());
    drawn.constant.push_back(present && random.Chance(valued ? 0.9 : i == 0 ? 0.15 : 0.6));
  }
}

// Parameters that say how many operands or results there are.
void FitCounts(RandomOperation& drawn) {
  for (const Field& field : drawn.op->fields) {
    const bool in = field.name == "values_count";
    if (!in && field.name != "num_splits" && field.name != "num") continue;
    const auto count = static_cast<int32_t>(in ? drawn.inputs.size() : drawn.outputs.size());
    std::memcpy(static_cast<std::byte*>(drawn.params.data()) + field.offset, &count, sizeof count);
  }
}

// The shape that the other operands are drawn for.
Shape DrawFirst(const OperatorDef& op, Random& random) {
  const int rank = FittingRank(op.name);
  if (rank > 0 && random.Chance(0.9)) return DrawShape(random, rank, rank);
  return DrawShape(random, random.Chance(0.7) ? 2 : 0, 5);
}

}  // namespace

std::span<const OperatorDef* const> DrawableOperators() {
  static const std::vector<const OperatorDef*> kOperators = [] {
    std::vector<const OperatorDef*> operators;
    for (const OperatorDef* op : kernels::AllOperators()) {
      const bool state = !op->state_inputs.empty();
      if (op->builtin_code >= 0 && !op->candidates.empty() && !state) operators.push_back(op);
    }
    return operators;
  }();
  return kOperators;
}

RandomOperation DrawOperation(const OperatorDef& op, Random& random) {
  RandomOperation drawn;
  drawn.op = &op;
  drawn.params = DrawParams(op, random);
  const kernels::TypeRow row = DrawTypes(op, random);
  const Shape first = DrawFirst(op, random);
  DrawInputs(drawn, row, first, random);
  const int max_outputs = op.max_outputs < 0 ? op.min_outputs + 2 : op.max_outputs;
  const int64_t outputs = random.Int(op.min_outputs, std::max(op.min_outputs, max_outputs));
  const bool same = random.Chance(0.4);
  for (int64_t i = 0; i < outputs; ++i) {
    drawn.outputs.push_back(DrawTensor(row.output, first, random));
    const bool alike = !drawn.inputs.empty() && drawn.inputs[0].type == row.output;
    if (same && alike) drawn.outputs.back().quantization = drawn.inputs[0].quantization;
  }
  if (random.Chance(0.9)) FitCounts(drawn);
  return drawn;
}

kernels::Params DrawParams(const OperatorDef& op, Random& random) {
  kernels::Params params;
  kernels::SetDefaults(op.fields, params.data());
  for (const Field& field : op.fields) DrawField(field, random, params.data());
  return params;
}

std::vector<std::byte> RandomOperation::DrawValuesOf(size_t input, Random& random) const {
  return values[input].empty() ? DrawValues(inputs[input], random) : values[input];
}

std::vector<std::byte> DrawValues(const TensorInfo& info, Random& random) {
  std::vector<std::byte> bytes(info.bytes());
  const bool odd = random.Chance(0.1);
  constexpr float kOdd[] = {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            1e-42f,
                            -0.0f,
                            3e38f};
  const auto fill = [&](auto draw) {
    using T = decltype(draw());
    for (size_t i = 0; (i + 1) * sizeof(T) <= bytes.size(); ++i) {
      const T value = draw();
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  };
  switch (info.type) {
    case DataType::kFloat32:
      fill([&] {
        return odd && random.Float(0, 1) < 0.1f ? kOdd[random.Int(0, 5)] : random.Float(-2, 2);
      });
      break;
    case DataType::kInt32: fill([&] { return static_cast<int32_t>(random.Int(-3, 6)); }); break;
    case DataType::kInt64: fill([&] { return random.Int(-3, 6); }); break;
    case DataType::kBool: fill([&] { return static_cast<uint8_t>(random.Int(0, 1)); }); break;
    case DataType::kFloat16:
    case DataType::kBFloat16:
      fill([&] { return static_cast<uint16_t>(random.Int(0, 0x3c00)); });
      break;
    default: fill([&] { return static_cast<uint8_t>(random.Int(0, 255)); }); break;
  }
  return bytes;
}

}  // namespace fuselite::fuzz
