// GELU by tanh, as frameworks spell it out:
//   0.5 x (1 + tanh(0.7978846 (x + 0.044715 x^3)))
// with the factors in any order and x^3 as POW or as products.
#include <cmath>

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/elementwise/elementwise.h"

namespace fuselite::fusion {
namespace {

constexpr float kRootTwoOverPi = 0.7978845608f;
constexpr float kCubic = 0.044715f;

// The factors of a product of nested MULs that nobody else reads, and the nodes between; of a
// longer product than any GELU the first ones.
void Factors(const Graph& graph, ValueId value, std::vector<ValueId>* factors,
             std::vector<NodeId>* nodes) {
  constexpr size_t kMost = 8;
  const NodeId mul = nodes->size() < kMost ? OwnProducerIs(graph, value, "MUL") : kNone;
  if (mul == kNone || FusedActivation(graph.node(mul)) != kernels::Activation::kNone) {
    factors->push_back(value);
    return;
  }
  nodes->push_back(mul);
  for (ValueId v : graph.node(mul).inputs) Factors(graph, v, factors, nodes);
}

// Takes the scalar factors out; their product.
float TakeScalars(const Graph& graph, std::vector<ValueId>* factors) {
  float product = 1;
  std::erase_if(*factors, [&](ValueId v) {
    const std::optional<float> scalar = ScalarConstant(graph, v);
    if (scalar) product *= *scalar;
    return scalar.has_value();
  });
  return product;
}

bool Close(float a, float b) { return std::abs(a - b) <= 1e-5f * std::abs(b); }

class Matcher : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

  // x, where `id` is the last MUL of a GELU of x; kNone otherwise.
  ValueId Match(NodeId id) {
    std::vector<ValueId> factors;
    for (ValueId v : graph_.node(id).inputs) Factors(graph_, v, &factors, &nodes);
    if (!Close(TakeScalars(graph_, &factors), 0.5f) || factors.size() != 2) return kNone;
    for (int i : {0, 1}) {
      const ValueId x = factors[i];
      const size_t before = nodes.size();
      if (IsOnePlusTanh(factors[1 - i], x)) return x;
      nodes.resize(before);
    }
    return kNone;
  }

 private:
  // The operand of "operand + other", where `is_other` holds for the other one.
  template <class Predicate>
  ValueId Addend(ValueId sum, Predicate is_other) {
    const NodeId add = OwnStep(sum, "ADD");
    if (add == kNone) return kNone;
    for (int i : {0, 1}) {
      if (is_other(In(add, i))) return In(add, 1 - i);
    }
    return kNone;
  }

  bool IsOnePlusTanh(ValueId value, ValueId x) {
    const ValueId tanh = Addend(value, [&](ValueId v) { return IsScalar(graph_, v, 1); });
    const NodeId node = tanh == kNone ? kNone : OwnStep(tanh, "TANH");
    if (node == kNone) return false;
    std::vector<ValueId> factors;
    Factors(graph_, In(node, 0), &factors, &nodes);
    if (!Close(TakeScalars(graph_, &factors), kRootTwoOverPi) || factors.size() != 1) return false;
    const ValueId cubic = Addend(factors[0], [&](ValueId v) { return v == x; });
    return cubic != kNone && IsCubic(cubic, x);
  }
  bool IsCubic(ValueId value, ValueId x) {
    std::vector<ValueId> factors;
    Factors(graph_, value, &factors, &nodes);
    if (!Close(TakeScalars(graph_, &factors), kCubic)) return false;
    int power = 0;
    for (ValueId v : factors) {
      if (v == x) {
        power += 1;
      } else if (const NodeId square = OwnStep(v, "SQUARE"); square != kNone) {
        if (In(square, 0) != x) return false;
        power += 2;
      } else if (const NodeId pow = OwnStep(v, "POW"); pow != kNone) {
        if (In(pow, 0) != x) return false;
        if (!IsScalar(graph_, In(pow, 1), 3)) return false;
        power += 3;
      } else {
        return false;
      }
    }
    return power == 3;
  }
};

}  // namespace

bool RecognizeGelu(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "MUL") || !NothingFollows(graph.node(id))) return false;
  Matcher matcher(graph);
  const ValueId x = matcher.Match(id);
  if (x == kNone) return false;
  Node node = MakeNode("GELU", {x});
  node.params.as<kernels::GeluParams>().approximate = true;
  return ReplacePattern(graph, id, matcher.nodes, std::move(node), "recognize GELU", context);
}

}  // namespace fuselite::fusion
