// SVDF: (input [batch, n], features [filters, n], time [filters, memory], bias, state [batch,
// filters
// * memory]): each filter remembers the product of its features with the last `memory` inputs; its
// weights in time turn them to one number, and `rank` filters that follow each other add up to an
// output: [batch, filters / rank].
//
// float32; or float32 with int8 features and times (hybrid; uint8 holds int8, as old converters
// wrote it): the input is quantized row by row; or int8 with int8 features, int16 times and state
// and an int32 bias, to the bit as TFLite's integer kernel. Times and state of int8 are what
// TensorFlow Lite for Microcontrollers takes, whose state has a zero point; TFLite's kernel reads
// them as int16, beyond their end. The state is written in place. One unit is one row of the batch.
#include "kernels/recurrent/svdf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/numbers/quantization.h"
#include "kernels/recurrent/row_functions.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"rank", FieldKind::kInt32, 0, offsetof(SvdfParams, rank),
     offsetof(tflite::TfLiteSVDFParams, rank)},
    {"fused_activation_function", FieldKind::kActivation, 1, offsetof(SvdfParams, activation),
     offsetof(tflite::TfLiteSVDFParams, activation)},
    {"asymmetric_quantize_inputs", FieldKind::kBool, 2,
     offsetof(SvdfParams, asymmetric_quantize_inputs),
     offsetof(tflite::TfLiteSVDFParams, asymmetric_quantize_inputs), -1, 4},
};

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8, kU8 = DataType::kUInt8,
                   kI16 = DataType::kInt16;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32},
                              {{kF32, kI8, kI8}, kF32},
                              {{kF32, kU8, kU8}, kF32},
                              {{kI8, kI8, kI16}, kI8},
                              {{kI8, kI8, kI8}, kI8}};
enum : int { kX, kFeatures, kTime, kBias, kState };
constexpr int kStateInputs[] = {kState};

struct SvdfShape {
  int64_t batch, inputs, filters, memory, rank;
  int64_t outputs() const { return filters / rank; }

  explicit SvdfShape(const OpDescription& op)
      : batch(op.inputs[kX].shape[0]),
        inputs(op.inputs[kX].shape[1]),
        filters(op.inputs[kFeatures].shape[0]),
        memory(op.inputs[kTime].shape[1]),
        rank(op.params.as<SvdfParams>().rank) {}
};

// From the features' sums to the state, from the state's sums to the output.
struct SvdfScales {
  FixedPoint state, output;
};

Result<SvdfScales> IntegerScales(const OpDescription& op) {
  const auto scale = [](const TensorInfo& info) { return info.quantization.scale(); };
  const TensorInfo& out = op.outputs[0];
  // Products and quotients of floats, as TFLite has them.
  const double state =
      scale(op.inputs[kX]) * scale(op.inputs[kFeatures]) / scale(op.inputs[kState]);
  const double output = scale(op.inputs[kState]) * scale(op.inputs[kTime]) / scale(out);
  if (!(state > 0 && std::isfinite(state) && output > 0 && std::isfinite(output))) {
    return Unsupported("scales must be positive");
  }
  return SvdfScales{ToFixedPoint(state), ToFixedPoint(output)};
}

Status CheckOperandTypes(const OpDescription& op) {
  const bool integer = op.inputs[kX].type == kI8;
  const DataType bias = integer ? DataType::kInt32 : kF32;
  const DataType state = integer ? op.inputs[kTime].type : kF32;
  if (op.has_input(kBias) && op.inputs[kBias].type != bias) {
    return Unsupported("does not take a bias of ", DataTypeName(op.inputs[kBias].type));
  }
  if (op.inputs[kState].type != state) {
    return Unsupported("does not take a state of ", DataTypeName(op.inputs[kState].type));
  }
  if (integer) {
    if (op.params.as<SvdfParams>().activation != Activation::kRelu) {
      return InvalidArgument("the activation of the integer form must be RELU");
    }
    return IntegerScales(op).status();
  }
  for (const int i : {kFeatures, kTime}) {
    const Quantization& q = op.inputs[i].quantization;
    if (op.inputs[i].type != kF32 && (q.empty() || q.per_channel() || !std::isfinite(q.scale()))) {
      return Unsupported("input ", i, " has not one finite scale");
    }
  }
  return Status();
}

Status InferSvdf(OpDescription& op) {
  for (const int i : {kX, kFeatures, kTime, kState}) {
    if (!op.has_input(i) || op.inputs[i].shape.rank() != 2) {
      return InvalidArgument("input ", i, " is no matrix");
    }
  }
  const SvdfShape s(op);
  if (s.rank < 1 || s.filters % s.rank != 0) {
    return InvalidArgument(s.filters, " filters of rank ", s.rank);
  }
  if (s.memory < 1) return InvalidArgument("a memory of ", s.memory);
  const auto outputs = static_cast<int32_t>(s.outputs());
  const bool fits =
      op.inputs[kFeatures].shape[1] == s.inputs && op.inputs[kTime].shape[0] == s.filters &&
      op.inputs[kState].shape[0] == s.batch && op.inputs[kState].shape[1] == s.memory * s.filters &&
      (!op.has_input(kBias) || op.inputs[kBias].elements() == outputs);
  if (!fits) {
    return InvalidArgument("features ", op.inputs[kFeatures].shape, ", times ",
                           op.inputs[kTime].shape, ", state ", op.inputs[kState].shape,
                           " for an input of ", op.inputs[kX].shape);
  }
  if (op.inputs[kState].constant()) return InvalidArgument("the state is a constant");
  FUSELITE_RETURN_IF_ERROR(CheckOperandTypes(op));
  return SetOutput(op, 0, op.inputs[kX].type, Shape{static_cast<int32_t>(s.batch), outputs});
}

// Row `b` of the state, each filter's memory moved by one towards the past: its last entry is free.
template <class T>
T* Remember(const SvdfShape& s, const KernelArgs& args, int64_t b) {
  T* state = const_cast<T*>(static_cast<const T*>(args.inputs[kState])) + b * s.filters * s.memory;
  std::memmove(state, state + 1, (s.filters * s.memory - 1) * sizeof(T));
  return state;
}

// Where a row's features are summed: behind the x that they are summed of.
struct SvdfScratch {
  explicit SvdfScratch(const SvdfShape& s) : x_bytes(AlignUp(s.inputs * sizeof(int16_t))) {}
  size_t bytes(const SvdfShape& s) const { return x_bytes + s.filters * sizeof(float); }
  int16_t* x(const KernelArgs& args) const { return reinterpret_cast<int16_t*>(args.scratch); }
  template <class T>
  T* sums(const KernelArgs& args) const {
    return reinterpret_cast<T*>(args.scratch + x_bytes);
  }
  size_t x_bytes;
};

Result<std::unique_ptr<Kernel>> BuildFloat(const RecurrentFunctions& functions,
                                           const std::string& target, const OpDescription& op) {
  const SvdfShape s(op);
  const SvdfScratch scratch(s);
  const bool hybrid = op.inputs[kFeatures].type != kF32;
  return MakeKernel(
      (hybrid ? "svdf hybrid " : "svdf f32 ") + target,
      {.units = s.batch, .scratch_bytes = scratch.bytes(s)},
      [s, scratch, hybrid, functions, params = op.params.as<SvdfParams>(),
       feature_scale = op.inputs[kFeatures].quantization.scale(),
       time_scale = op.inputs[kTime].quantization.scale()](const KernelArgs& args, int64_t begin,
                                                           int64_t end) {
        const auto* bias = static_cast<const float*>(args.inputs[kBias]);
        auto* const sums = scratch.sums<float>(args);
        for (int64_t b = begin; b < end; ++b) {
          const auto* in = static_cast<const float*>(args.inputs[kX]) + b * s.inputs;
          auto* out = static_cast<float*>(args.outputs[0]) + b * s.outputs();
          const RowOperand x = functions.Prepare(in, s.inputs, params.asymmetric_quantize_inputs,
                                                 hybrid ? scratch.x(args) : nullptr);
          RowProducts(functions.products, args.inputs[kFeatures], s.filters, feature_scale, x,
                      sums);
          float* state = Remember<float>(s, args, b);
          for (int64_t f = 0; f < s.filters; ++f) state[(f + 1) * s.memory - 1] = sums[f];
          const auto remember = hybrid ? functions.remember_bytes : functions.remember_floats;
          remember({args.inputs[kTime], state, s.filters, s.memory, time_scale, sums});
          for (int64_t o = 0; o < s.outputs(); ++o) {
            float sum = 0;
            for (int64_t f = o * s.rank; f < (o + 1) * s.rank; ++f) sum += sums[f];
            out[o] = bias == nullptr ? sum : sum + bias[o];
          }
          functions.activate(params.activation, out, s.outputs());
        }
      });
}

template <class T>
T Saturate(int32_t value) {
  return static_cast<T>(
      std::clamp<int32_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// T is the type of times and state.
template <class T>
Result<std::unique_ptr<Kernel>> BuildInteger(const RecurrentFunctions& functions,
                                             const std::string& target, const OpDescription& op) {
  const SvdfShape s(op);
  const SvdfScratch scratch(s);
  FUSELITE_ASSIGN_OR_RETURN(const SvdfScales scales, IntegerScales(op));
  const int32_t state_zero =
      std::is_same_v<T, int8_t> ? op.inputs[kState].quantization.zero_point() : 0;
  return MakeKernel(
      "svdf int8 " + target, {.units = s.batch, .scratch_bytes = scratch.bytes(s)},
      [s, scratch, functions, scales, state_zero, x_zero = op.inputs[kX].quantization.zero_point(),
       zero = op.outputs[0].quantization.zero_point()](const KernelArgs& args, int64_t begin,
                                                       int64_t end) {
        const auto* time = static_cast<const T*>(args.inputs[kTime]);
        const auto* bias = static_cast<const int32_t*>(args.inputs[kBias]);
        int16_t* const x = scratch.x(args);
        auto* const sums = scratch.sums<int32_t>(args);
        for (int64_t b = begin; b < end; ++b) {
          const auto* in = static_cast<const int8_t*>(args.inputs[kX]) + b * s.inputs;
          auto* out = static_cast<int8_t*>(args.outputs[0]) + b * s.outputs();
          for (int64_t i = 0; i < s.inputs; ++i) x[i] = static_cast<int16_t>(in[i] - x_zero);
          functions.products.int8({x, args.inputs[kFeatures], s.inputs, s.filters, 0, sums});
          T* const state = Remember<T>(s, args, b);
          for (int64_t f = 0; f < s.filters; ++f) {
            const int32_t scaled =
                MultiplyByQuantizedMultiplier(sums[f], scales.state.multiplier, scales.state.shift);
            // The zero point comes behind the clamp, and wraps around.
            state[(f + 1) * s.memory - 1] = static_cast<T>(Saturate<T>(scaled) + state_zero);
          }
          const int64_t run = s.rank * s.memory;  // what one output remembers
          for (int64_t o = 0; o < s.outputs(); ++o) {
            uint32_t sum = bias != nullptr ? static_cast<uint32_t>(bias[o]) : 0;
            for (int64_t i = o * run; i < (o + 1) * run; ++i) {
              sum += static_cast<uint32_t>(time[i] * (state[i] - state_zero));
            }
            const int32_t scaled = MultiplyByQuantizedMultiplier(
                static_cast<int32_t>(sum), scales.output.multiplier, scales.output.shift);
            out[o] = Saturate<int8_t>(scaled + zero);
          }
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildSvdf(const RecurrentFunctions& functions,
                                          const std::string& target, const OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("SVDF takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  if (op.inputs[kX].type != kI8) return BuildFloat(functions, target, op);
  return op.inputs[kTime].type == kI8 ? BuildInteger<int8_t>(functions, target, op)
                                      : BuildInteger<int16_t>(functions, target, op);
}

constexpr Candidate kCandidates[] = {{"highway", BuildWithVectors<BuildSvdf>},
                                     {"reference", BuildReference<BuildSvdf>}};

}  // namespace

const OperatorDef& SvdfOperator() {
  static constexpr OperatorDef kDef = {
      .name = "SVDF",
      .builtin_code = tflite::kTfLiteBuiltinSvdf,
      .options_type = 6,
      .max_version = 4,
      .fields = kFields,
      .params_bytes = sizeof(SvdfParams),
      .struct_bytes = sizeof(tflite::TfLiteSVDFParams),
      .min_inputs = 5,
      .max_inputs = 5,
      .state_inputs = kStateInputs,
      .types = kTypes,
      .limits = "rank 2",
      .infer = InferSvdf,
      .candidates = kCandidates,
      .cost =
          [](const OpDescription& op) {
            const SvdfShape s(op);
            return static_cast<double>(s.batch * s.filters) *
                   static_cast<double>(s.inputs + s.memory);
          },
  };
  return kDef;
}

}  // namespace fuselite::kernels
