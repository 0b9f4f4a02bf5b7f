#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "kernels/batch_matmul/batch_matmul.h"
#include "runtime/support/status.h"
#include "tests/fusion/draft.h"

namespace fuselite::fusion::testing {
namespace {

using internal::Join;
using kernels::Field;
using kernels::FieldKind;

// Operators that take the same operands.
constexpr std::array<std::array<std::string_view, 2>, 23> kSiblings = {{
    {"ADD", "SUB"},
    {"SUB", "ADD"},
    {"MUL", "DIV"},
    {"DIV", "MUL"},
    {"MAXIMUM", "MINIMUM"},
    {"MINIMUM", "MAXIMUM"},
    {"RELU", "RELU6"},
    {"RELU6", "RELU"},
    {"LOGISTIC", "TANH"},
    {"TANH", "LOGISTIC"},
    {"RSQRT", "SQRT"},
    {"SQRT", "RSQRT"},
    {"MEAN", "SUM"},
    {"ADD", "MUL"},
    {"MUL", "ADD"},
    {"REDUCE_MAX", "REDUCE_MIN"},
    {"MAX_POOL_2D", "AVERAGE_POOL_2D"},
    {"GREATER", "LESS"},
    {"LESS", "GREATER"},
    {"GREATER_EQUAL", "LESS_EQUAL"},
    {"LESS_EQUAL", "GREATER_EQUAL"},
    {"SQUARE", "ABS"},
    {"NEG", "ABS"},
}};

class NodeNeighbours {
 public:
  NodeNeighbours(const Draft& draft, const Attempt& attempt) : draft_(draft), attempt_(attempt) {}

  void All() {
    for (size_t n = 0; n < draft_.nodes.size(); ++n) {
      OfOperands(n);
      OfOperator(n);
    }
  }

 private:
  void OfOperands(size_t n) {
    const Node& node = draft_.nodes[n];
    if (node.inputs.size() >= 2) {
      attempt_(Join(node.op->name, " ", n, " has its operands exchanged"), [&](Draft& draft) {
        std::swap(draft.nodes[n].inputs[0], draft.nodes[n].inputs[1]);
      });
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      const TensorInfo& info = draft_.values[node.inputs[i]].info;
      if (info.type == DataType::kFloat32) {
        attempt_(Join(node.op->name, " ", n, " has an input of its own for operand ", i),
                 [&](Draft& draft) { draft.nodes[n].inputs[i] = draft.Input(info); });
        OfShapes(n, i);
        OfWaysTo(n, i);
      }
      for (ValueId other : Alike(n, node.inputs[i])) {
        attempt_(
            Join(node.op->name, " ", n, " has ", draft_.values[other].name, " for operand ", i),
            [&](Draft& draft) { draft.nodes[n].inputs[i] = other; });
      }
    }
  }

  // An operand that repeats along a dimension, or has not all of them.
  void OfShapes(size_t n, size_t i) {
    const Node& node = draft_.nodes[n];
    const TensorInfo& info = draft_.values[node.inputs[i]].info;
    for (int d = 0; d < info.shape.rank(); ++d) {
      if (info.shape[d] == 1) continue;
      attempt_(Join(node.op->name, " ", n, " has operand ", i, " for all of dimension ", d),
               [&](Draft& draft) {
                 TensorInfo one = info;
                 one.shape.set(d, 1);
                 draft.nodes[n].inputs[i] = draft.Input(one);
               });
    }
    if (info.shape.rank() == 0) return;
    attempt_(Join(node.op->name, " ", n, " has operand ", i, " without its first dimension"),
             [&](Draft& draft) {
               TensorInfo one = info;
               one.shape = Shape(info.shape.dims().subspan(1));
               draft.nodes[n].inputs[i] = draft.Input(one);
             });
  }

  // Something between an operand and where it comes from.
  void OfWaysTo(size_t n, size_t i) {
    const Node& node = draft_.nodes[n];
    const ValueId from = node.inputs[i];
    const Shape& shape = draft_.values[from].info.shape;
    if (draft_.values[from].info.constant()) return;
    for (const std::string_view op : {"ABS", "RELU6"}) {
      attempt_(Join(node.op->name, " ", n, " has ", op, " of operand ", i), [&](Draft& draft) {
        const ValueId made = draft.Insert(n, op, {from});
        draft.nodes[n + 1].inputs[i] = made;
      });
    }
    const int rank = shape.rank();
    if (rank < 2 || shape[rank - 1] == 1 || shape[rank - 2] == 1) return;
    attempt_(
        Join(node.op->name, " ", n, " has operand ", i, " in another order"), [&](Draft& draft) {
          std::vector<int32_t> turned(shape.dims().begin(), shape.dims().end()), order(rank);
          std::iota(order.begin(), order.end(), 0);
          std::swap(turned[rank - 1], turned[rank - 2]);
          std::swap(order[rank - 1], order[rank - 2]);
          const ValueId reshaped = draft.Insert(n, "RESHAPE", {from, draft.Constant(turned)});
          const ValueId made = draft.Insert(n + 1, "TRANSPOSE", {reshaped, draft.Constant(order)});
          draft.nodes[n + 2].inputs[i] = made;
        });
  }

  // The other values of the same type and shape that are there before node `n` runs: the last two.
  std::vector<ValueId> Alike(size_t n, ValueId value) {
    std::vector<ValueId> alike;
    const auto consider = [&](ValueId v) {
      const TensorInfo &a = draft_.values[v].info, &b = draft_.values[value].info;
      if (v != value && a.type == b.type && a.shape == b.shape) alike.push_back(v);
    };
    for (ValueId v : draft_.inputs) consider(v);
    for (size_t m = 0; m < n; ++m) {
      for (ValueId v : draft_.nodes[m].outputs) consider(v);
    }
    if (alike.size() > 2) alike.erase(alike.begin(), alike.end() - 2);
    return alike;
  }

  void OfOperator(size_t n) {
    const Node& node = draft_.nodes[n];
    for (const auto& [name, sibling] : kSiblings) {
      const kernels::OperatorDef* const other = kernels::FindOperator(sibling);
      if (node.op->name != name || other->params_bytes != node.op->params_bytes) continue;
      attempt_(Join(name, " ", n, " is ", sibling), [&](Draft& draft) {
        draft.nodes[n].op = other;
        draft.nodes[n].version = std::min(node.version, other->max_version);
      });
    }
    for (const Field& field : node.op->fields) OfField(n, field);
    if (node.op->name == "BATCH_MATMUL") OfTurnedMatrices(n);
  }

  // An operand of its own that is taken the other way round.
  void OfTurnedMatrices(size_t n) {
    for (const int i : {0, 1}) {
      const TensorInfo& info = draft_.values[draft_.nodes[n].inputs[i]].info;
      attempt_(Join("BATCH_MATMUL ", n, " turns operand ", i), [&](Draft& draft) {
        TensorInfo turned = info;
        const int rank = info.shape.rank();
        turned.shape.set(rank - 1, info.shape[rank - 2]);
        turned.shape.set(rank - 2, info.shape[rank - 1]);
        draft.nodes[n].inputs[i] = draft.Input(turned);
        auto& params = draft.nodes[n].params.as<kernels::BatchMatMulParams>();
        bool& adjoint = i == 0 ? params.adj_x : params.adj_y;
        adjoint = !adjoint;
      });
    }
  }

  void OfField(size_t n, const Field& field) {
    const auto change = [&](auto number, auto other) {
      attempt_(Join(draft_.nodes[n].op->name, " ", n, " has ", field.name, " ", other),
               [&](Draft& draft) {
                 number = static_cast<decltype(number)>(other);
                 auto* const params = static_cast<std::byte*>(draft.nodes[n].params.data());
                 std::memcpy(params + field.offset, &number, sizeof number);
               });
    };
    kernels::Params params = draft_.nodes[n].params;
    const std::byte* const at = static_cast<const std::byte*>(params.data()) + field.offset;
    const auto read = [&](auto number) {
      std::memcpy(&number, at, sizeof number);
      return number;
    };
    switch (field.kind) {
      case FieldKind::kActivation:
        for (int32_t activation = 0; activation <= 3; ++activation) {
          if (activation != read(int32_t())) change(int32_t(), activation);
        }
        break;
      case FieldKind::kPadding: change(int32_t(), 1 - read(int32_t())); break;
      case FieldKind::kBool: change(bool(), !read(bool())); break;
      case FieldKind::kInt32: change(int32_t(), read(int32_t()) + 1); break;
      case FieldKind::kFloat: change(float(), read(float()) * 2); break;
      default: break;
    }
  }

  const Draft& draft_;
  const Attempt& attempt_;
};

}  // namespace

void TryChangesOfNodes(const Draft& draft, const Attempt& attempt) {
  NodeNeighbours(draft, attempt).All();
}

}  // namespace fuselite::fusion::testing
