// The tail in scalar code: element by element, stage by stage.
#include <algorithm>
#include <cmath>

#include "kernels/numbers/quantization.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {
namespace {

// The value that flows through the stages: a float, or an integer of any width.
struct Value {
  float real = 0;
  int32_t integer = 0;
};

Value Load(const void* base, DataType type, int64_t i) {
  switch (type) {
    case DataType::kFloat32: return {.real = static_cast<const float*>(base)[i]};
    case DataType::kInt32: return {.integer = static_cast<const int32_t*>(base)[i]};
    case DataType::kInt16: return {.integer = static_cast<const int16_t*>(base)[i]};
    case DataType::kUInt8: return {.integer = static_cast<const uint8_t*>(base)[i]};
    default: return {.integer = static_cast<const int8_t*>(base)[i]};
  }
}

void Store(Value value, DataType type, void* base, int64_t i) {
  switch (type) {
    case DataType::kFloat32: static_cast<float*>(base)[i] = value.real; break;
    case DataType::kInt32: static_cast<int32_t*>(base)[i] = value.integer; break;
    case DataType::kInt16:
      static_cast<int16_t*>(base)[i] = static_cast<int16_t>(value.integer);
      break;
    case DataType::kUInt8:
      static_cast<uint8_t*>(base)[i] = static_cast<uint8_t>(value.integer);
      break;
    default: static_cast<int8_t*>(base)[i] = static_cast<int8_t>(value.integer); break;
  }
}

int32_t ApplyRequantize(const Requantize& r, int32_t x, int64_t channel) {
  const int64_t c = r.multipliers.size() > 1 ? channel : 0;
  const int32_t scaled = MultiplyByQuantizedMultiplier(x, r.multipliers[c], r.shifts[c]);
  return std::clamp(scaled + r.zero_point, r.min, r.max);
}

int32_t ApplyQuantizedAdd(const QuantizedAdd& q, int32_t x, int32_t y) {
  const int32_t shifted_x = (x + q.x_offset) * (1 << q.left_shift);
  const int32_t shifted_y = (y + q.y_offset) * (1 << q.left_shift);
  const int32_t a = MultiplyByQuantizedMultiplier(shifted_x, q.x_multiplier, q.x_shift);
  const int32_t b = MultiplyByQuantizedMultiplier(shifted_y, q.y_multiplier, q.y_shift);
  const int32_t sum = (q.negate_x ? -a : a) + (q.negate_y ? -b : b);
  const int32_t scaled =
      MultiplyByQuantizedMultiplier(sum, q.output_multiplier, q.output_shift) + q.output_offset;
  return std::clamp(scaled, q.min, q.max);
}

// Reads from outside of int32's range are undefined in C++, so the clamp comes before the cast.
int32_t ApplyQuantize(const TailStage& stage, float x) {
  const float rounded = std::round(x / stage.scales[0]) + static_cast<float>(stage.zero_point);
  return static_cast<int32_t>(
      std::clamp(rounded, static_cast<float>(stage.min), static_cast<float>(stage.max)));
}

int32_t ApplyRescale(const TailStage& stage, int32_t x, int64_t channel) {
  const double scale = stage.real_scales[stage.real_scales.size() > 1 ? channel : 0];
  const double scaled = std::round(static_cast<double>(x) * scale) + stage.zero_point;
  return static_cast<int32_t>(std::clamp<double>(scaled, stage.min, stage.max));
}

class Runner {
 public:
  Runner(const Tail& tail, const void* const* inputs, DataType output_type)
      : tail_(tail), inputs_(inputs), output_type_(output_type) {}

  Value Apply(Value v, int64_t row, int64_t channel) const {
    for (const TailStage& stage : tail_.stages) v = ApplyStage(stage, v, row, channel);
    return v;
  }

 private:
  int64_t OperandIndex(const TailOperand& y, int64_t row, int64_t channel) const {
    return row / tail_.rows_per_batch * y.batch_stride + row % tail_.rows_per_batch * y.row_stride +
           channel * y.channel_stride;
  }

  Value Operand(const TailOperand& y, DataType type, int64_t row, int64_t channel) const {
    return Load(inputs_[y.input], type, OperandIndex(y, row, channel));
  }

  Value ApplyStage(const TailStage& stage, Value v, int64_t row, int64_t channel) const {
    using Kind = TailStage::Kind;
    switch (stage.kind) {
      case Kind::kUnary: v.real = ApplyUnary(stage.unary, v.real, stage.a, stage.b); break;
      case Kind::kBinary:
        v.real = ApplyBinary(stage.binary, v.real,
                             Operand(stage.operand, DataType::kFloat32, row, channel).real);
        break;
      case Kind::kRequantize:
        v.integer = ApplyRequantize(stage.requantize, v.integer, channel);
        break;
      case Kind::kQuantizedAdd:
        v.integer = ApplyQuantizedAdd(stage.add, v.integer,
                                      Operand(stage.operand, output_type_, row, channel).integer);
        break;
      case Kind::kLookup: {
        const uint8_t entry = stage.table[static_cast<uint8_t>(v.integer)];
        v.integer = output_type_ == DataType::kUInt8 ? entry : static_cast<int8_t>(entry);
        break;
      }
      case Kind::kDequantize: {
        const float scale = stage.scales[stage.scales.size() > 1 ? channel : 0];
        v.real = scale * static_cast<float>(v.integer - stage.zero_point);
        break;
      }
      case Kind::kQuantize: v.integer = ApplyQuantize(stage, v.real); break;
      case Kind::kRescale: v.integer = ApplyRescale(stage, v.integer, channel); break;
    }
    return v;
  }

  const Tail& tail_;
  const void* const* inputs_;
  DataType output_type_;
};

}  // namespace

void ApplyTailReference(const Tail& tail, const void* const* inputs, const TailTile& tile) {
  const Runner runner(tail, inputs, tile.destination_type);
  for (int64_t r = 0; r < tile.rows; ++r) {
    for (int64_t c = 0; c < tile.channels; ++c) {
      const Value in = Load(tile.source, tile.source_type, r * tile.source_pitch + c);
      const Value out = runner.Apply(in, tile.row + r, tile.channel + c);
      Store(out, tile.destination_type, tile.destination, r * tile.destination_pitch + c);
    }
  }
}

}  // namespace fuselite::kernels
