// Operators: what everybody needs to know of one, and the ways it can be computed.
//
// Everything about an operator is in kernels/<operator>/; kernels/list.cc has one line per
// operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/candidate.h"
#include "kernels/fields.h"
#include "kernels/tail/tail.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

struct OperatorDef;
struct ExtraPadding;
struct Movement;
struct ProductDescription;
struct Window;

// An operator's parameters by value, whatever their type. Padding between fields must be zeroed
// (value-initialize them), so that equal parameters have equal bytes.
class Params {
 public:
  static constexpr size_t kMaxBytes = 256;
  Params() = default;
  template <class T>
  requires(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxBytes &&
           !std::is_same_v<T, Params>) explicit Params(const T& value) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(bytes_.data());
  }
  template <class T>
  T& as() {
    return *reinterpret_cast<T*>(bytes_.data());
  }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  friend bool operator==(const Params&, const Params&) = default;

 private:
  alignas(16) std::array<std::byte, kMaxBytes> bytes_{};
};

// One operation to be computed: the operator, its parameters, its operands, its tail.
// With a tail, outputs[0] is what the tail's last stage gives; its shape is the operator's own.
// A fused activation in `params` comes before the tail's stages. A quantized operator requantizes
// by itself, from the operands' scales, before the tail's stages.
struct OpDescription {
  const OperatorDef* op = nullptr;
  Params params;
  std::vector<TensorInfo> inputs;  // the operator's own, then those that tail stages name
  std::vector<TensorInfo> outputs;
  Tail tail;
  int version = 1;
  // How values that never become tensors are quantized (the model's `intermediates`); empty for
  // most operators.
  std::vector<Quantization> intermediates{};
  int tail_inputs = 0;  // how many of `inputs`, the last ones, are operands of tail stages

  size_t own_inputs() const { return inputs.size() - static_cast<size_t>(tail_inputs); }
  // Whether the operator itself has input `i`.
  bool has_input(size_t i) const { return i < own_inputs() && !inputs[i].absent(); }
};

// One combination of types that an operator takes; kNone stands for any or absent.
struct TypeRow {
  DataType inputs[3] = {DataType::kNone, DataType::kNone, DataType::kNone};
  DataType output = DataType::kNone;
};

// How TFLite's reference kernels bring integer sums of products to the output's scale.
enum class SumScaling : uint8_t {
  kFixedPoint,  // convolutions: fixed-point multipliers (of uint8 from the float product of scales)
  kFixedPointOfFloat,  // BATCH_MATMUL: likewise, always from the float product
  // FULLY_CONNECTED: in double precision; but with int16 weights in fixed point, a single scale
  // from the float product.
  kReal,
};

// Which inputs of an operator that is made of matrix products are what, and how its integer sums
// are scaled.
struct ProductInputs {
  int x = 0, weights = 1, bias = 2;  // -1: none
  SumScaling scaling = SumScaling::kFixedPoint;
};

// The dimensions of an operator's outputs, among those that its shape rule keeps, of which each
// index is computed from the same index of its inputs alone.
enum class SampleRule : uint8_t {
  kMixed,        // none, or parameters decide
  kApart,        // dimension 0, of the samples of a batch
  kApartByRows,  // every one but the last, along which it looks
  kApartByKept,  // every one
};

// Added to OperatorDef::options_type where the options are in the schema's second union.
inline constexpr int kSecondUnion = 256;

struct OperatorDef {
  std::string_view name{};  // "CONV_2D"
  int builtin_code = -1;    // the schema's BuiltinOperator; -1: made by rewrites only
  // The schema's BuiltinOptions, or kSecondUnion and its BuiltinOptions2; 0 where the operator has
  // none.
  int options_type = 0;
  // A custom operator, which files know by its name: reads the bytes that they have for it into
  // `params`. kInvalidArgument where they make no sense. Null: a builtin one, or made by rewrites.
  Status (*read_custom)(std::span<const std::byte> options, void* params) = nullptr;
  int max_version = 1;  // the newest version whose meaning is implemented
  std::span<const Field> fields{};
  size_t params_bytes = 0;             // of our struct
  size_t struct_bytes = 0;             // of TFLite's C struct; 0 where there is none
  int min_inputs = 1, max_inputs = 1;  // max -1: any number
  int min_outputs = 1, max_outputs = 1;
  // Inputs that hold the host's state: its variables, never absent, which kernels read and write in
  // place (KernelArgs.inputs, const cast away). Whoever imports a node checks that they are
  // variables; Infer() that they are no constants.
  std::span<const int> state_inputs{};
  std::span<const TypeRow> types{};  // enforced by Infer() and printed in docs/operators.md
  std::string_view limits{};         // what is not taken, for docs/operators.md: "rank <= 6"
  // The shape rule. Called by Infer() after the counts and types are checked; validates the rest of
  // the inputs and parameters and sets shape and type of `outputs`, whose quantization (and type,
  // where the model knows it) is given. kDynamicShape where a shape needs a value not yet known.
  Status (*infer)(OpDescription& op) = nullptr;
  // Best first; the last one is the reference, which accepts whatever infer does.
  std::span<const Candidate> candidates{};
  // How the operator is made of matrix products (kernels/product/description.h); null where it is
  // not. Called on what infer accepted.
  Result<ProductDescription> (*product)(const OpDescription& op) = nullptr;
  // Every operator with `product` has these, and so have those whose products are of another kind.
  std::optional<ProductInputs> product_inputs{};
  // Whether the last of its kernels but the reference reads the weights of `op` where they lie, as
  // a product that packs them would take longer; null: never.
  bool (*reads_unpacked)(const OpDescription& op) = nullptr;
  // Multiply-adds, or elements where there are none: for cost estimates and profiles.
  double (*cost)(const OpDescription& op) = nullptr;

  // What rewrites may do with it.

  // It is what a tail's stages do, at least of floats, and so takes a tail too.
  bool elementwise = false;
  // Its kernels make their output tile by tile and can hand it to a tail.
  bool takes_tail = false;
  // Whatever it takes of float32 may be bfloat16, where it is no constant (kernels/widened.h).
  bool bfloat16_values = false;
  // Each element of its outputs is an element of its inputs, or the zero that DEQUANTIZE gives for
  // the zero point: it moves integers as it moves the numbers that they stand for. Maxima and
  // minima are such, as a positive scale keeps the order.
  bool selects = false;
  // Its runs check indices, and fail where one is out of range, even where they give no element.
  bool checks_indices = false;
  // It gives its input's bytes unchanged under another shape.
  bool reshapes = false;
  // It copies boxes, each of which may be done by addresses (kernels/movement/placement.h); null
  // where it does more or its copies are no boxes.
  Result<Movement> (*places)(const OpDescription& op) = nullptr;
  // With `places`, its inputs are the parts of its output, not its outputs parts of an input.
  bool places_inputs = false;
  // The padding in its parameters that a PAD before it may become; null where there is none.
  ExtraPadding& (*extra_padding)(Params& params) = nullptr;
  // The window that it slides over its first input's images, of what infer accepted, and what gives
  // the parameters the strides and the padding of another one; null where it slides none.
  Result<Window> (*window)(const OpDescription& op) = nullptr;
  void (*set_window)(Params& params, const Window& window) = nullptr;
  // Its two inputs may change places.
  bool commutes = false;
  // Each element of its output is computed from those at its place of its inputs, which broadcast.
  // All elementwise operators are such.
  bool pointwise = false;
  SampleRule samples = SampleRule::kMixed;

  bool custom() const { return read_custom != nullptr; }
};

// OperatorDef::read_custom where an operator's tensors tell everything.
inline Status IgnoreOptions(std::span<const std::byte> /*options*/, void* /*params*/) {
  return Status();
}

// Checks counts, types and version, then runs the shape rule.
Status Infer(OpDescription& op);

// As Infer(), of an operation whose float32 values may be bfloat16 (OperatorDef::bfloat16_values):
// rewrites leave them so, while those of a model are of the types that its operators list.
Status InferRewritten(OpDescription& op);

// OperatorDef::reads_unpacked of `op`.
inline bool ReadsUnpacked(const OpDescription& op) {
  return op.op->reads_unpacked != nullptr && op.op->reads_unpacked(op);
}

// Builds the scalar reference: the last candidate. It packs nothing.
Result<std::shared_ptr<const Kernel>> BuildReference(const OpDescription& op);

// The table of operators (kernels/list.cc).
std::span<const OperatorDef* const> AllOperators();
// nullptr where there is none.
const OperatorDef* FindOperator(int builtin_code);
const OperatorDef* FindOperator(std::string_view name);
const OperatorDef* FindCustomOperator(std::string_view name);

}  // namespace fuselite::kernels
