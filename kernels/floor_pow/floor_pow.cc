#include "kernels/floor_pow/floor_pow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/typed/typed_map.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow Same(DataType type) { return {{type, type}, type}; }
constexpr TypeRow kDivTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                 Same(DataType::kInt16), Same(DataType::kInt8)};
constexpr TypeRow kModTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32),
                                 Same(DataType::kInt64), Same(DataType::kInt16),
                                 Same(DataType::kInt8)};
constexpr TypeRow kPowTypes[] = {Same(DataType::kFloat32), Same(DataType::kInt32)};

Status Infer(OpDescription& op) { return InferTypedMap(op, op.inputs[0].type); }

// Out of a type's range the largest or smallest value of it.
template <class T>
T FromDouble(double x) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(x);
  return static_cast<T>(std::clamp(x, static_cast<double>(std::numeric_limits<T>::min()),
                                   static_cast<double>(std::numeric_limits<T>::max())));
}

// In double precision, as TFLite divides.
struct FloorDiv {
  static constexpr const char* kRefusal = "a number is divided by 0";
  template <class T>
  static bool Refuses(T y) {
    return y == 0;
  }
  template <class T>
  T operator()(T x, T y) const {
    return FromDouble<T>(std::floor(static_cast<double>(x) / static_cast<double>(y)));
  }
};

// The result has the divisor's sign.
struct FloorMod {
  static constexpr const char* kRefusal = "a number is divided by 0";
  template <class T>
  static bool Refuses(T y) {
    return std::is_integral_v<T> && y == 0;
  }
  template <class T>
  T operator()(T x, T y) const {
    T rest;
    if constexpr (std::is_integral_v<T>) {
      rest = y == -1 ? T{0} : static_cast<T>(x % y);
    } else {
      rest = std::fmod(x, y);
    }
    return rest != 0 && (y < 0) != (rest < 0) ? static_cast<T>(rest + y) : rest;
  }
};

struct Pow {
  static constexpr const char* kRefusal = "an integer has a negative exponent";
  template <class T>
  static bool Refuses(T y) {
    return std::is_integral_v<T> && y < 0;
  }
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) return std::pow(x, y);
    return FromDouble<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
  }
};

template <class T, class F>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = plan.units(), .grain = GrainFor(8 * plan.unit_elements())},
                    [plan](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                      bool ok = true;
                      plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
                        const auto* x = static_cast<const T*>(args.inputs[0]) + piece.offsets[0];
                        const auto* y = static_cast<const T*>(args.inputs[1]) + piece.offsets[1];
                        auto* out = static_cast<T*>(args.outputs[0]) + piece.offsets[2];
                        for (int64_t i = 0; i < piece.count && ok; ++i) {
                          const T right = y[i * plan.stride(1)];
                          ok = !F::Refuses(right);
                          if (ok) out[i] = F()(x[i * plan.stride(0)], right);
                        }
                      });
                      return ok ? Status() : InvalidArgument(F::kRefusal);
                    });
}

template <class F>
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return BuildOf<float, F>(op);
    case DataType::kInt32: return BuildOf<int32_t, F>(op);
    case DataType::kInt64: return BuildOf<int64_t, F>(op);
    case DataType::kInt16: return BuildOf<int16_t, F>(op);
    case DataType::kInt8: return BuildOf<int8_t, F>(op);
    default: return Unsupported(op.op->name, " of ", DataTypeName(op.inputs[0].type));
  }
}

template <class F>
constexpr Candidate kCandidates[] = {{"highway", BuildFloor}, {"reference", Build<F>}};
template <>
constexpr Candidate kCandidates<Pow>[] = {{"highway", BuildPowers}, {"reference", Build<Pow>}};

template <class F>
constexpr OperatorDef Make(std::string_view name, int code, int options_type, int max_version,
                           std::span<const TypeRow> types) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.max_version = max_version;
  def.min_inputs = def.max_inputs = 2;
  def.types = types;
  def.infer = Infer;
  def.candidates = kCandidates<F>;
  def.cost = [](const OpDescription& op) { return 8.0 * op.outputs[0].elements(); };
  return def;
}

}  // namespace

const OperatorDef& FloorDivOperator() {
  static constexpr OperatorDef kDef =
      Make<FloorDiv>("FLOOR_DIV", tflite::kTfLiteBuiltinFloorDiv, 65, 3, kDivTypes);
  return kDef;
}

const OperatorDef& FloorModOperator() {
  static constexpr OperatorDef kDef =
      Make<FloorMod>("FLOOR_MOD", tflite::kTfLiteBuiltinFloorMod, 72, 2, kModTypes);
  return kDef;
}

const OperatorDef& PowOperator() {
  static constexpr OperatorDef kDef = Make<Pow>("POW", tflite::kTfLiteBuiltinPow, 56, 1, kPowTypes);
  return kDef;
}

}  // namespace fuselite::kernels
