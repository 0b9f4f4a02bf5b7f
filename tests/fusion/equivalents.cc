#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "runtime/support/status.h"
#include "tests/fusion/draft.h"
#include "tests/fusion/neighbours.h"

namespace fuselite::fusion::testing {
namespace {

using internal::Join;
using kernels::Field;
using kernels::FieldKind;

constexpr std::array<std::string_view, 4> kCommutative = {"ADD", "MUL", "MAXIMUM", "MINIMUM"};
// Their second operand is a list of dimensions of the first one.
constexpr std::array<std::string_view, 6> kOfAxes = {"MEAN",       "SUM",         "REDUCE_MAX",
                                                     "REDUCE_MIN", "REDUCE_PROD", "CUMSUM"};

bool In(std::span<const std::string_view> names, const Node& node) {
  return std::ranges::find(names, node.op->name) != names.end();
}

class Equivalents {
 public:
  Equivalents(const Draft& draft, const Attempt& attempt) : draft_(draft), attempt_(attempt) {}

  void All() {
    for (size_t n = 0; n < draft_.nodes.size(); ++n) {
      OfOperands(n);
      for (const Field& field : draft_.nodes[n].op->fields) OfAxis(n, field);
      OfAxes(n);
      OfPermutation(n);
    }
    for (size_t v = 0; v < draft_.values.size(); ++v) OfIntegers(static_cast<ValueId>(v));
  }

 private:
  void OfOperands(size_t n) {
    const Node& node = draft_.nodes[n];
    if (!In(kCommutative, node) || node.inputs.size() != 2) return;
    attempt_(Join(node.op->name, " ", n, " has its operands exchanged"),
             [&](Draft& draft) { std::swap(draft.nodes[n].inputs[0], draft.nodes[n].inputs[1]); });
  }

  // The axis is the same dimension, counted from the other end.
  void OfAxis(size_t n, const Field& field) {
    if (field.kind != FieldKind::kInt32 || field.name != "axis") return;
    attempt_(Join(draft_.nodes[n].op->name, " ", n, " counts its axis from the other end"),
             [&](Draft& draft) {
               Node& node = draft.nodes[n];
               const bool packs = node.op->name == "PACK";
               int32_t rank = draft.values[node.inputs[0]].info.shape.rank() + (packs ? 1 : 0);
               auto* const at = static_cast<std::byte*>(node.params.data()) + field.offset;
               int32_t axis;
               std::memcpy(&axis, at, sizeof axis);
               axis += axis < 0 ? rank : -rank;
               std::memcpy(at, &axis, sizeof axis);
             });
  }

  void OfAxes(size_t n) {
    const Node& node = draft_.nodes[n];
    if (!In(kOfAxes, node) || !draft_.values[node.inputs[1]].info.constant()) return;
    const int32_t rank = draft_.values[node.inputs[0]].info.shape.rank();
    std::vector<int32_t> axes = IntsOf(node.inputs[1]);
    for (int32_t& axis : axes) axis += axis < 0 ? rank : -rank;
    attempt_(Join(node.op->name, " ", n, " counts its axes from the other end"), [&](Draft& draft) {
      const Shape shape = draft.values[node.inputs[1]].info.shape;
      draft.nodes[n].inputs[1] = draft.Constant(axes);
      draft.values[draft.nodes[n].inputs[1]].info.shape = shape;
    });
  }

  void OfPermutation(size_t n) {
    const Node& node = draft_.nodes[n];
    if (node.op->name != "TRANSPOSE" || !draft_.values[node.inputs[1]].info.constant()) return;
    std::vector<int32_t> permutation = IntsOf(node.inputs[1]);
    const auto rank = static_cast<int32_t>(permutation.size());
    for (int32_t& d : permutation) d += d < 0 ? rank : -rank;
    attempt_(Join("TRANSPOSE ", n, " counts its dimensions from the other end"),
             [&](Draft& draft) { draft.nodes[n].inputs[1] = draft.Constant(permutation); });
  }

  // Shapes, orders and the like in other numbers of bits, where the operator takes them.
  void OfIntegers(ValueId v) {
    const Value& value = draft_.values[v];
    if (!value.info.constant() || value.info.type != DataType::kInt32) return;
    if (!value.info.quantization.empty()) return;
    OfBits<int64_t>(v, DataType::kInt64);
    OfBits<int16_t>(v, DataType::kInt16);
    OfBits<int8_t>(v, DataType::kInt8);
  }
  template <class T>
  void OfBits(ValueId v, DataType type) {
    const std::vector<int32_t> numbers = IntsOf(v);
    const std::vector<T> others(numbers.begin(), numbers.end());
    if (!std::ranges::equal(numbers, others)) return;
    attempt_(Join(draft_.values[v].name, " ", v, " is of ", DataTypeName(type)), [&](Draft& draft) {
      TensorInfo info = draft_.values[v].info;
      info.type = type;
      Graph maker;
      const ValueId made =
          maker.AddConstant(info, std::as_bytes(std::span(others)), draft_.values[v].name);
      draft.values[v] = maker.value(made);
    });
  }

  std::vector<int32_t> IntsOf(ValueId v) const {
    const TensorInfo& info = draft_.values[v].info;
    std::vector<int32_t> numbers(static_cast<size_t>(info.elements()));
    if (!numbers.empty()) std::memcpy(numbers.data(), info.data, info.bytes());
    return numbers;
  }

  const Draft& draft_;
  const Attempt& attempt_;
};

}  // namespace

void ForEachEquivalent(const Graph& graph,
                       const std::function<void(const std::string& what, const Graph&)>& visit) {
  const Draft draft(graph);
  Equivalents(draft, Building(draft, visit)).All();
}

}  // namespace fuselite::fusion::testing
