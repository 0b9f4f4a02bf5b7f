// NumericVerify: (quantized values, the floats that they stand for) -> how far they are off, after
// dequantization. Converters put it behind each layer of a model that is being debugged.
#include <cmath>

#include "kernels/convert/convert.h"
#include "kernels/convert/numeric_verify.h"
#include "kernels/flexible_map.h"
#include "kernels/make_kernel.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr TypeRow kTypes[] = {{{DataType::kUInt8, kF32}, kF32},
                              {{DataType::kInt8, kF32}, kF32},
                              {{DataType::kInt16, kF32}, kF32},
                              {{DataType::kFloat16, kF32}, kF32}};
// TFLite's kernel checks nothing below it.
constexpr float kLeastTolerance = 0.1f;

Status InferNumericVerify(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const TensorInfo& x = op.inputs[0];
  if (op.inputs[1].shape.elements() != x.shape.elements()) {
    return InvalidArgument("values ", x.shape, " beside ", op.inputs[1].shape);
  }
  if (x.type != DataType::kFloat16 && x.quantization.empty()) {
    return InvalidArgument("values without a scale");
  }
  return SetOutput(op, 0, kF32, x.shape);
}

// One value as a float.
class Dequantizer {
 public:
  explicit Dequantizer(const TensorInfo& info)
      : type_(info.type), channel_(info), quantization_(info.quantization) {}

  float operator()(const void* data, int64_t i) const {
    switch (type_) {
      case DataType::kUInt8: return Real(static_cast<const uint8_t*>(data)[i], i);
      case DataType::kInt8: return Real(static_cast<const int8_t*>(data)[i], i);
      case DataType::kInt16: return Real(static_cast<const int16_t*>(data)[i], i);
      default: return HalfToFloat(static_cast<const uint16_t*>(data)[i]);
    }
  }

 private:
  float Real(int32_t x, int64_t i) const {
    const int64_t c = channel_.channels == 1 ? 0 : channel_(i);
    return static_cast<float>(double{quantization_.scales[c]} *
                              (static_cast<double>(x) - quantization_.zero_points[c]));
  }

  DataType type_;
  ChannelOf channel_;
  Quantization quantization_;
};

// One unit: an element.
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("NumericVerify takes no fused tail");
  const auto& params = op.params.as<NumericVerifyParams>();
  const TensorInfo& x = op.inputs[0];
  const bool checks = params.fails && params.tolerance >= kLeastTolerance;
  const float scale = x.quantization.empty() ? 0.0f : x.quantization.scale();
  const Work work{.units = x.shape.elements(), .grain = GrainFor(4)};
  return MakeKernel("numeric verify", work,
                    [checks, most = params.tolerance * scale, dequantize = Dequantizer(x)](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* wanted = static_cast<const float*>(args.inputs[1]);
                      auto* out = static_cast<float*>(args.outputs[0]);
                      for (int64_t i = begin; i < end; ++i) {
                        out[i] = dequantize(args.inputs[0], i) - wanted[i];
                        if (checks && std::abs(out[i]) > most) {
                          return InvalidArgument("element ", i, " stands for ", wanted[i],
                                                 " and is off by ", out[i], ", more than ", most);
                        }
                      }
                      return Status();
                    });
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

Status ReadNumericVerifyOptions(std::span<const std::byte> options, void* params) {
  FUSELITE_ASSIGN_OR_RETURN(const flexbuffers::Map map, ReadFlexibleMap(options));
  auto& to = *static_cast<NumericVerifyParams*>(params);
  to.tolerance = map["tolerance"].AsFloat();
  to.fails = map["log_if_failed"].AsBool();
  return Status();
}

}  // namespace

const OperatorDef& NumericVerifyOperator() {
  static constexpr OperatorDef kDef = {
      .name = "NumericVerify",
      .read_custom = ReadNumericVerifyOptions,
      .params_bytes = sizeof(NumericVerifyParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "an output, as converters give it since 2020",
      .infer = InferNumericVerify,
      .candidates = kCandidates,
  };
  return kDef;
}

}  // namespace fuselite::kernels
