#include "kernels/elementwise/tables/lookup_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/tables/sigmoid16.h"
#include "kernels/make_kernel.h"
#include "kernels/numbers/fixed_point.h"
#include "kernels/numbers/interpolated_table.h"
#include "kernels/numbers/quantization.h"
#include "kernels/tail/apply.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {
namespace {

using Function = std::function<int32_t(int32_t)>;  // of the quantized value; clamped afterwards
using ShortTable = InterpolatedTable<float>;

struct Scales {
  float in, out;
  int32_t in_zero, out_zero;
};

// A real multiplier of either sign.
struct Multiplier {
  FixedPoint magnitude;
  bool negative;
  explicit Multiplier(double real) : magnitude(ToFixedPoint(std::abs(real))), negative(real < 0) {}
  int32_t operator()(int32_t x) const {
    const int32_t y = MultiplyByQuantizedMultiplier(x, magnitude.multiplier, magnitude.shift);
    return negative ? -y : y;
  }
};

Function Real(const Scales& s, const TailStage& stage) {
  const float inverse = 1 / s.out;
  return [=](int32_t x) {
    const float real = s.in * static_cast<float>(x - s.in_zero);
    // LOG of what has none is the smallest value.
    const bool undefined = stage.unary == UnaryKind::kLog && real <= 0;
    const float y = undefined ? static_cast<float>(-128 - s.out_zero) * s.out
                              : ApplyUnary(stage.unary, real, stage.a, stage.b);
    // Beyond 8 bits on either side is clamped anyway; beyond 32 a cast would be undefined.
    const float steps = std::clamp(y * inverse, -1e6f, 1e6f);
    // Half away from zero: the largest float below 1/2 carries exactly the halves over. std::round
    // is a call, one in five of a table's nanoseconds.
    return static_cast<int32_t>(steps + std::copysign(0.49999997f, steps)) + s.out_zero;
  };
}

Function Relu(const Scales& s, float low, float high) {
  const auto bound = [&](float x) {
    return std::clamp(std::round(x / s.out), -1e6f, 1e6f) + static_cast<float>(s.out_zero);
  };
  const auto min = static_cast<int32_t>(bound(low));
  const int32_t max =
      std::isinf(high) ? std::numeric_limits<int32_t>::max() : static_cast<int32_t>(bound(high));
  return [=, scale = Multiplier(s.in / s.out)](int32_t x) {
    return std::min(std::max(scale(x - s.in_zero) + s.out_zero, min), max);
  };
}

Result<Function> LeakyRelu(const Scales& s, float alpha) {
  if (!std::isfinite(s.in * alpha / s.out)) return Unsupported("does not take alpha ", alpha);
  return Function([=, identity = Multiplier(s.in / s.out),
                   scaled = Multiplier(s.in * alpha / s.out)](int32_t x) {
    const int32_t centred = x - s.in_zero;
    return s.out_zero + (centred >= 0 ? identity(centred) : scaled(centred));
  });
}

Function Abs(const Scales& s) {
  return [=, scale = Multiplier(s.in / s.out)](int32_t x) {
    const int32_t magnitude = std::abs(x - s.in_zero);
    return (s.in == s.out ? magnitude : scale(magnitude)) + s.out_zero;
  };
}

// The fraction is cut off. Negative numbers are as 0; they fail the run (FailsOnNegatives).
Function Sqrt(const Scales& s) {
  return [=](int32_t x) {
    const float root = std::sqrt(s.in * static_cast<float>(std::max(x - s.in_zero, 0)));
    return static_cast<int32_t>(std::min(root / s.out, 1e6f)) + s.out_zero;
  };
}

// In fixed point, 20 bits of fraction. Of 0 the largest value, and of negative numbers, which fail
// the run (FailsOnNegatives).
Function Rsqrt(const Scales& s) {
  constexpr int kFractionBits = 20;
  const FixedPoint output = ToFixedPoint(1.0 / (std::sqrt(s.in) * s.out));
  return [=](int32_t x) {
    if (x <= s.in_zero) return std::numeric_limits<int32_t>::max();
    const FixedPoint inverse = FixedInverseSqrt(x - s.in_zero);
    const int32_t fraction =
        MultiplyByQuantizedMultiplier(1, inverse.multiplier, inverse.shift + kFractionBits);
    return MultiplyByQuantizedMultiplier(fraction, output.multiplier,
                                         output.shift - kFractionBits) +
           s.out_zero;
  };
}

// x relu6(x + 3) / 6: `gate` is the second factor in [0, 1], 15 bits of fraction.
Result<Function> HardSwish(const Scales& s) {
  const float fine = (1.0f / 128.0f) * s.in;
  const FixedPoint output = ToFixedPoint(fine / s.out);
  const FixedPoint reluish = ToFixedPoint(fine / (3.0f / 32768.0f));
  if (output.shift > 0 || reluish.shift > 16) {
    return Unsupported("does not take hard-swish from scale ", s.in, " to ", s.out);
  }
  return Function([=, output_factor = ToMultiplier16(output),
                   gate_factor = ToMultiplier16(reluish)](int32_t x) {
    const int32_t value = (x - s.in_zero) * (1 << 7);
    const int32_t scaled = RoundingHighMul16(value, output_factor);
    int32_t gate = value;
    if (reluish.shift > 0) gate = Saturate16(gate * (1 << (reluish.shift - 1)));
    gate = RoundingHighMul16(gate, gate_factor);
    if (reluish.shift > 0) gate = Saturate16(gate * 2);
    if (reluish.shift < 0) gate = RoundingDivide16(gate, -reluish.shift);
    gate = (gate + (1 << 15)) >> 1;
    return RoundingDivide16(HighMul16(gate, scaled), -output.shift) + s.out_zero;
  });
}

// The real function of an operator that has a float32 form.
Result<TailStage> RealStage(const OpDescription& op) {
  OpDescription real = op;
  real.inputs[0].type = DataType::kFloat32;
  const std::optional<TailStage> stage = UnaryStage(real);
  if (!stage) return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  return *stage;
}

// int16 functions by interpolation. What LOG and RSQRT do not have is the smallest and the largest
// value.
Result<Function> Interpolated(const OpDescription& op, const Scales& s) {
  FUSELITE_ASSIGN_OR_RETURN(const TailStage stage, RealStage(op));
  const float low = static_cast<float>(-32768 - s.out_zero) * s.out, high = 32767 * s.out;
  const auto real = [&](float x) {
    if (x <= 0 && stage.unary == UnaryKind::kLog) return low;
    if (x <= 0 && stage.unary == UnaryKind::kRsqrt) return high;
    return ApplyUnary(stage.unary, x, stage.a, stage.b);
  };
  return Function(ShortTable({s.in, s.in_zero}, {s.out, s.out_zero}, real));
}

Result<Function> Sigmoid(const OpDescription& op, const Scales& s) {
  const bool tanh = op.op->builtin_code == tflite::kTfLiteBuiltinTanh;
  // TANH takes what is within 0.001 in the exponent.
  if (tanh ? !(std::abs(std::log2(s.out) + 15) < 1e-3f) : s.out != 1.0f / 32768) {
    return Unsupported("does not take an output scale of ", s.out, ", not 1/32768");
  }
  FUSELITE_ASSIGN_OR_RETURN(const Sigmoid16 function,
                            tanh ? Sigmoid16::Tanh(s.in) : Sigmoid16::Logistic(s.in));
  return Function(function);
}

Result<Function> Real8Bit(const OpDescription& op, const Scales& s) {
  if (op.op->builtin_code == tflite::kTfLiteBuiltinLogistic && s.out != 1.0f / 256) {
    return Unsupported("does not take an output scale of ", s.out, ", not 1/256");
  }
  FUSELITE_ASSIGN_OR_RETURN(const TailStage stage, RealStage(op));
  return Real(s, stage);
}

Result<Function> FunctionOf(const OpDescription& op, const Scales& s) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool wide = op.inputs[0].type == DataType::kInt16;
  switch (op.op->builtin_code) {
    case tflite::kTfLiteBuiltinRelu: return Relu(s, 0, kInfinity);
    case tflite::kTfLiteBuiltinRelu6: return Relu(s, 0, 6);
    case tflite::kTfLiteBuiltinReluN1To1: return Relu(s, -1, 1);
    case tflite::kTfLiteBuiltinRelu0To1: return Relu(s, 0, 1);
    case tflite::kTfLiteBuiltinLeakyRelu:
      return LeakyRelu(s, op.params.as<LeakyReluParams>().alpha);
    case tflite::kTfLiteBuiltinHardSwish: return HardSwish(s);
    case tflite::kTfLiteBuiltinAbs: return Abs(s);
    case tflite::kTfLiteBuiltinSqrt: return Sqrt(s);
    case tflite::kTfLiteBuiltinRsqrt: {
      if (wide) return Interpolated(op, s);
      const int shift = ToFixedPoint(1.0 / (std::sqrt(s.in) * s.out)).shift;
      if (shift < -11 || shift > 20)
        return Unsupported("does not take rsqrt from scale ", s.in, " to ", s.out);
      return Rsqrt(s);
    }
    case tflite::kTfLiteBuiltinLogistic:
    case tflite::kTfLiteBuiltinTanh: return wide ? Sigmoid(op, s) : Real8Bit(op, s);
    default: return wide ? Interpolated(op, s) : Real8Bit(op, s);
  }
}

// Each value through `map`, a function from T to T.
template <class T, class Map>
std::unique_ptr<Kernel> MakeMap(const OpDescription& op, Map map) {
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  const T least = FailsOnNegatives(op) ? static_cast<T>(op.inputs[0].quantization.zero_point())
                                       : std::numeric_limits<T>::min();
  return MakeKernel("lookup " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
                    [plan, least, name = op.op->name, map = std::move(map)](
                        const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                      bool negative = false;
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        const auto* x = static_cast<const T*>(args.inputs[0]) + piece.offsets[0];
                        auto* y = static_cast<T*>(args.outputs[0]) + piece.offsets[1];
                        bool below = false;  // in memory it would be the loop's longest chain
                        for (int64_t i = 0; i < piece.count; ++i) {
                          below |= x[i] < least;
                          y[i] = map(x[i]);
                        }
                        negative |= below;
                      });
                      return negative ? InvalidArgument(name, " of a negative number") : Status();
                    });
}

// A table of all values, of which a step takes one load; but what is interpolated stays so: its
// 2 KiB stay in L1, and all int16 values would be 128.
template <class T>
std::unique_ptr<Kernel> MakeLookup(const OpDescription& op, const Function& function, bool filled) {
  using Index = std::make_unsigned_t<T>;
  if (const auto* const interpolated = function.target<ShortTable>()) {
    return MakeMap<T>(op, *interpolated);
  }
  std::vector<T> table(filled ? size_t{1} << (8 * sizeof(T)) : 0);
  for (size_t x = 0; x < table.size(); ++x) table[x] = static_cast<T>(function(static_cast<T>(x)));
  return MakeMap<T>(op, [table = std::move(table)](T x) { return table[static_cast<Index>(x)]; });
}

// What MakeQuantizedFunction clamps.
Result<Function> UnclampedFunction(const OpDescription& op) {
  const DataType type = op.inputs[0].type;
  // NEG changes signs whatever the scales are; the smallest number is its own negative.
  if (op.op->builtin_code == tflite::kTfLiteBuiltinNeg) {
    return Function([](int32_t x) { return static_cast<int8_t>(-x); });
  }
  const Quantization& in = op.inputs[0].quantization;
  const Quantization& out = op.outputs[0].quantization;
  const Scales s{in.scale(), out.scale(), in.zero_point(), out.zero_point()};
  const auto valid = [](float scale) { return std::isfinite(scale) && scale > 0; };
  if (!valid(s.in) || !valid(s.out) || in.per_channel() || out.per_channel()) {
    return Unsupported("scales ", s.in, " and ", s.out, " must be positive, one per tensor");
  }
  int32_t min, max;
  QuantizedTypeRange(type, &min, &max);
  const bool wide = type == DataType::kInt16;
  for (int32_t zero : {s.in_zero, s.out_zero}) {
    if (zero < min || zero > max || (wide && zero != 0)) {
      return InvalidArgument("zero point ", zero, " of ", DataTypeName(type));
    }
  }
  return FunctionOf(op, s);
}

}  // namespace

Result<Function> MakeQuantizedFunction(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(Function function, UnclampedFunction(op));
  if (function.target<ShortTable>() != nullptr) return function;
  int32_t min, max;
  QuantizedTypeRange(op.inputs[0].type, &min, &max);
  return Function([=](int32_t x) { return std::clamp(function(x), min, max); });
}

bool FailsOnNegatives(const OpDescription& op) {
  const int code = op.op->builtin_code;
  if (code != tflite::kTfLiteBuiltinSqrt && code != tflite::kTfLiteBuiltinRsqrt) return false;
  int32_t min, max;
  QuantizedTypeRange(op.inputs[0].type, &min, &max);
  return op.inputs[0].quantization.zero_point() > min;
}

Result<std::vector<uint8_t>> MakeLookupTable(const OpDescription& op) {
  if (FailsOnNegatives(op)) return Unsupported("a table cannot fail on negative numbers");
  FUSELITE_ASSIGN_OR_RETURN(const Function function, UnclampedFunction(op));
  int32_t min, max;
  QuantizedTypeRange(op.inputs[0].type, &min, &max);
  std::vector<uint8_t> table(256);
  for (int32_t x = min; x <= max; ++x) {
    table[static_cast<uint8_t>(x)] = static_cast<uint8_t>(std::clamp(function(x), min, max));
  }
  return table;
}

Result<InterpolatedTable<float>> MakeInterpolatedTable(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Function function, MakeQuantizedFunction(op));
  if (const auto* const table = function.target<ShortTable>()) return *table;
  return Unsupported(op.op->name, " is not interpolated");
}

Result<KernelPlan> PlanReferenceLookup(const OpDescription& op) {
  const auto make = [](const OpDescription& described,
                       bool filled) -> Result<std::unique_ptr<Kernel>> {
    FUSELITE_ASSIGN_OR_RETURN(const Function function, MakeQuantizedFunction(described));
    switch (described.inputs[0].type) {
      case DataType::kInt8: return MakeLookup<int8_t>(described, function, filled);
      case DataType::kInt16: return MakeLookup<int16_t>(described, function, filled);
      default:
        return Unsupported("does not take a table of ", DataTypeName(described.inputs[0].type));
    }
  };
  FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> draft, make(op, false));
  return KernelPlan::MadeLater(std::move(draft),
                               [make](const OpDescription& described, const BuildContext&) {
                                 return make(described, true);
                               });
}

}  // namespace fuselite::kernels
