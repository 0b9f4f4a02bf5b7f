// softmax(scale Q K^T + mask) V, from BATCH_MATMUL, MUL or DIV, ADD, SOFTMAX, BATCH_MATMUL; scale
// and mask may be absent.
#include "kernels/attention/attention.h"

#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/softmax/softmax.h"

namespace fuselite::fusion {
namespace {

class Matcher : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

  // `last` is the product with the values.
  bool Run(NodeId last) {
    const auto& params = ParamsOf<kernels::BatchMatMulParams>(last);
    if (params.adj_x || params.adj_y) return false;
    values = In(last, 1);
    const NodeId softmax = OwnStep(In(last, 0), "SOFTMAX");
    if (softmax == kNone) return false;
    const float beta = ParamsOf<kernels::SoftmaxParams>(softmax).beta;
    ValueId scores = In(softmax, 0);
    scores = WithoutMask(scores);
    if (mask != kNone && beta != 1.0f) return false;
    scores = WithoutScale(scores);
    scale *= beta;
    const NodeId product = OwnStep(scores, "BATCH_MATMUL");
    if (product == kNone || ParamsOf<kernels::BatchMatMulParams>(product).adj_x) return false;
    queries = In(product, 0);
    keys = In(product, 1);
    keys_by_rows = ParamsOf<kernels::BatchMatMulParams>(product).adj_y;
    return true;
  }

  ValueId queries = kNone, keys = kNone, values = kNone, mask = kNone;
  float scale = 1;
  bool keys_by_rows = false;

 private:
  template <class T>
  const T& ParamsOf(NodeId id) const {
    return graph_.node(id).params.as<T>();
  }
  ValueId WithoutMask(ValueId scores) {
    const NodeId add = OwnStep(scores, "ADD");
    if (add == kNone) return scores;
    // The scores are what the keys' product leads to.
    const int flowing = Leads(In(add, 0)) ? 0 : 1;
    mask = In(add, 1 - flowing);
    return In(add, flowing);
  }
  bool Leads(ValueId value) const {
    return OwnProducerIs(graph_, value, "BATCH_MATMUL") != kNone ||
           OwnProducerIs(graph_, value, "MUL") != kNone ||
           OwnProducerIs(graph_, value, "DIV") != kNone;
  }
  ValueId WithoutScale(ValueId scores) {
    if (const NodeId mul = OwnStep(scores, "MUL"); mul != kNone) {
      for (int i : {0, 1}) {
        if (const auto factor = ScalarConstant(graph_, In(mul, i))) {
          scale = *factor;
          return In(mul, 1 - i);
        }
      }
    } else if (const NodeId div = OwnStep(scores, "DIV"); div != kNone) {
      if (const auto divisor = ScalarConstant(graph_, In(div, 1))) {
        scale = 1.0f / *divisor;
        return In(div, 0);
      }
    }
    return scores;
  }
};

}  // namespace

bool RecognizeAttention(Graph& graph, NodeId id, RewriteContext& context) {
  if (!Is(graph, id, "BATCH_MATMUL") || !graph.node(id).tail.empty()) return false;
  if (!IsFloat(graph, graph.node(id).outputs[0])) return false;
  Matcher match(graph);
  if (!match.Run(id)) return false;
  std::vector<ValueId> inputs = {match.queries, match.keys, match.values};
  if (match.mask != kNone) inputs.push_back(match.mask);
  Node node = MakeNode("FUSELITE_ATTENTION", std::move(inputs));
  node.params.as<kernels::AttentionParams>().scale = match.scale;
  node.params.as<kernels::AttentionParams>().keys_by_rows = match.keys_by_rows;
  return ReplacePattern(graph, id, match.nodes, std::move(node), "recognize attention", context);
}

}  // namespace fuselite::fusion
