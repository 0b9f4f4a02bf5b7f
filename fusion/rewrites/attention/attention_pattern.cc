#include "fusion/rewrites/attention/attention_pattern.h"

#include <algorithm>
#include <utility>

#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/softmax/softmax.h"

namespace fuselite::fusion {
namespace {

// Between the product and the last mask: scales, a cap, other masks, and reshapes around each.
constexpr int kMostNodes = 8;

}  // namespace

bool AttentionPattern::Match(NodeId last) {
  const auto& product = ParamsOf<kernels::BatchMatMulParams>(last);
  if (product.adj_x || product.adj_y) return false;
  weights = In(last, 0);
  values = In(last, 1);
  const NodeId softmax = OwnStep(WithoutHiding(SameRows(weights)), "SOFTMAX");
  if (softmax == kNone) return false;
  params.scale = ParamsOf<kernels::SoftmaxParams>(softmax).beta;
  params.hidden_is_zero = seen_ != kNone;
  const ValueId scores = WithoutMasks(SameRows(In(softmax, 0), true));
  return (!params.hidden_is_zero || HidesAsMaskDoes()) && TakeProduct(WithoutCap(scores));
}

// What `value` was before some of it was set to 0, between reshapes.
ValueId AttentionPattern::WithoutHiding(ValueId value) {
  const NodeId select = OwnStep(value, "SELECT_V2");
  if (select == kNone) return value;
  for (const int i : {1, 2}) {
    if (ScalarConstant(graph_, In(select, i)) != 0.0f) continue;
    seen_ = In(select, 0);
    zero_input_ = i;
    return SameRows(In(select, 3 - i));
  }
  return value;
}

// Whether the weights that are set to 0 are those whose scores the last mask hides.
bool AttentionPattern::HidesAsMaskDoes() const {
  return !masks.empty() && masks[0].scale == 1 &&
         (MasksBySeen(masks[0].value) || IsMaskOfSeen(masks[0].value));
}

bool AttentionPattern::MasksBySeen(ValueId mask) const {
  const NodeId select = ProducerIs(graph_, mask, "SELECT_V2");
  if (select == kNone || In(select, 0) != seen_) return false;
  const std::optional<float> low = ScalarConstant(graph_, In(select, zero_input_));
  return low && *low <= kernels::kHiddenScore &&
         ScalarConstant(graph_, In(select, 3 - zero_input_)) == 0.0f;
}

// As MasksBySeen(), where both are constants.
bool AttentionPattern::IsMaskOfSeen(ValueId mask) const {
  const std::optional<std::vector<float>> numbers = FloatConstant(graph_, mask);
  const TensorInfo& seen = graph_.value(seen_).info;
  if (!numbers || !seen.constant() || seen.shape != graph_.value(mask).info.shape) return false;
  const auto* const chosen = static_cast<const bool*>(seen.data);
  for (size_t i = 0; i < numbers->size(); ++i) {
    const float expected = chosen[i] == (zero_input_ == 1) ? kernels::kHiddenScore : 0;
    if (expected < 0 ? (*numbers)[i] > expected : (*numbers)[i] != 0) return false;
  }
  return true;
}

// Whether `value` has the dimensions of the heads, but for ones in front.
bool AttentionPattern::SameHeads(ValueId value) const {
  const Shape& shape = graph_.value(value).info.shape;
  const int more = heads.rank() - shape.rank();
  return more >= 0 && heads.elements(0, more) == 1 &&
         std::ranges::equal(heads.dims().subspan(more), shape.dims());
}

// What `scores` were before masks were added to them.
ValueId AttentionPattern::WithoutMasks(ValueId scores) {
  heads = graph_.value(scores).info.shape;
  while (SameHeads(scores)) {
    const NodeId add = OwnStep(scores, "ADD");
    if (add == kNone) break;
    heads = graph_.value(scores).info.shape;
    // The scores are what the keys' product leads to.
    const int flowing = Leads(In(add, 0)) ? 0 : 1;
    masks.push_back({In(add, 1 - flowing), params.scale});
    scores = SameRows(In(add, flowing), true);
  }
  return scores;
}

// What `scores` were before cap * TANH(scores / cap).
ValueId AttentionPattern::WithoutCap(ValueId scores) {
  const NodeId tanh = OwnStep(scores, "TANH");
  const auto unscaled = [](const Mask& mask) { return mask.scale == 1; };
  if (tanh == kNone || !std::ranges::all_of(masks, unscaled) || params.scale <= 0) {
    return scores;
  }
  params.logit_cap = std::exchange(params.scale, 1.0f);
  const ValueId before = SameRows(In(tanh, 0), true);
  params.scale *= params.logit_cap;
  return before;
}

// The product of queries and keys. For a single head the PyTorch converter writes a layer whose
// weights are the keys.
bool AttentionPattern::TakeProduct(ValueId scores) {
  NodeId product = OwnStep(scores, "BATCH_MATMUL");
  if (product != kNone) {
    if (ParamsOf<kernels::BatchMatMulParams>(product).adj_x) return false;
    params.keys_by_rows = ParamsOf<kernels::BatchMatMulParams>(product).adj_y;
  } else {
    product = OwnStep(scores, "FULLY_CONNECTED");
    if (product == kNone || graph_.Describe(product).has_input(2)) return false;
    if (graph_.value(In(product, 1)).info.constant()) return false;
    params.keys_by_rows = true;
  }
  queries = In(product, 0);
  keys = In(product, 1);
  return true;
}

// Whether a product comes to `value` through scales, a cap, masks and reshapes.
bool AttentionPattern::Leads(ValueId value, int depth) const {
  const auto made_by = [&](const char* op) { return OwnProducerIs(graph_, value, op) != kNone; };
  if (made_by("BATCH_MATMUL") || made_by("FULLY_CONNECTED")) return true;
  const bool passes =
      made_by("RESHAPE") || made_by("MUL") || made_by("DIV") || made_by("ADD") || made_by("TANH");
  if (!passes || depth == kMostNodes) return false;
  return std::ranges::any_of(graph_.node(graph_.producer(value)).inputs,
                             [&](ValueId v) { return Leads(v, depth + 1); });
}

// The first of what was reshaped to `value`, or where `scaled` also multiplied by numbers, that
// has its rows, if only `value`. The numbers go into the scale.
ValueId AttentionPattern::SameRows(ValueId value, bool scaled) {
  const Shape to = graph_.value(value).info.shape;
  if (to.rank() < 2) return value;
  size_t taken = nodes.size();
  float factor = 1;
  ValueId before = value;
  while ((before = Before(before, scaled, &factor)) != kNone) {
    const Shape& from = graph_.value(before).info.shape;
    if (from.rank() < 2 || from.dim(-1) != to.dim(-1)) continue;
    params.scale *= std::exchange(factor, 1.0f);
    value = before;
    taken = nodes.size();
  }
  nodes.resize(taken);
  return value;
}

// What RESHAPE, or where `scaled` a product by a number, made `value` of; else kNone.
ValueId AttentionPattern::Before(ValueId value, bool scaled, float* factor) {
  if (const NodeId reshape = OwnStep(value, "RESHAPE"); reshape != kNone) return In(reshape, 0);
  if (!scaled) return kNone;
  if (const NodeId mul = OwnStep(value, "MUL"); mul != kNone) {
    const int i = ScalarConstant(graph_, In(mul, 0)) ? 1 : 0;
    const std::optional<float> number = ScalarConstant(graph_, In(mul, 1 - i));
    if (!number) return kNone;
    *factor *= *number;
    return In(mul, i);
  }
  const NodeId div = OwnStep(value, "DIV");
  const std::optional<float> divisor =
      div == kNone ? std::nullopt : ScalarConstant(graph_, In(div, 1));
  if (!divisor) return kNone;
  *factor /= *divisor;
  return In(div, 0);
}

}  // namespace fuselite::fusion
