// NON_MAX_SUPPRESSION_V4: (boxes [n, 4], scores [n], most, overlap, lowest score): the indices of
// at most `most` boxes, the best scores first, without those that overlap a better one by `overlap`
// or more of their union; zeros behind them; how many they are. NON_MAX_SUPPRESSION_V5 has a sixth
// input, sigma, and the scores as second output: above 0 an overlap o does not only remove a box,
// it multiplies its score by exp(-o^2 / (2 sigma)).
#include <algorithm>
#include <cmath>
#include <queue>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kI32}, kI32}};

Status InferNonMaxSuppression(OpDescription& op) {
  const bool soft = op.inputs.size() == 6;
  const Shape& boxes = op.inputs[0].shape;
  if (boxes.rank() != 2 || boxes[1] != 4 || op.inputs[1].shape != Shape{boxes[0]}) {
    return InvalidArgument("boxes ", boxes, " with scores ", op.inputs[1].shape);
  }
  for (size_t i = 2; i < op.inputs.size(); ++i) {
    if (op.inputs[i].shape.rank() != 0) return InvalidArgument("input ", i, " is no scalar");
    if (i > 2 && op.inputs[i].type != kF32) return InvalidArgument("input ", i, " is not float32");
  }
  FUSELITE_ASSIGN_OR_RETURN(const int64_t most,
                            ReadInteger(op.inputs[2], "the number of boxes", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({most}));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, kI32, shape));
  if (soft) FUSELITE_RETURN_IF_ERROR(SetOutput(op, 1, kF32, shape));
  return SetOutput(op, soft ? 2 : 1, kI32, Shape());
}

// What part of the union of two boxes their intersection is, as areas.
float Overlap(const float* a, const float* b) {
  struct Range {
    float low, high;
    Range(float x, float y) : low(std::min(x, y)), high(std::max(x, y)) {}
    float size() const { return high - low; }
    float Shared(const Range& other) const {
      return std::max(std::min(high, other.high) - std::max(low, other.low), 0.0F);
    }
  };
  const Range a_rows(a[0], a[2]), a_columns(a[1], a[3]), b_rows(b[0], b[2]), b_columns(b[1], b[3]);
  const float a_area = a_rows.size() * a_columns.size();
  const float b_area = b_rows.size() * b_columns.size();
  if (a_area <= 0 || b_area <= 0) return 0;
  const float shared = a_rows.Shared(b_rows) * a_columns.Shared(b_columns);
  return shared / (a_area + b_area - shared);
}

struct Box {
  int32_t index;
  float score;
  int32_t compared;  // with so many of the selected ones
  friend bool operator<(const Box& a, const Box& b) { return a.score < b.score; }
};

struct Thresholds {
  float overlap, score, sigma;
};

// Lowers the candidate's score for the selected boxes that it was not compared with yet; false
// where it falls out.
bool Compare(const float* boxes, const Thresholds& limits, const int32_t* selected, int32_t count,
             Box* candidate) {
  const auto scale = static_cast<float>(limits.sigma > 0 ? -0.5 / limits.sigma : 0.0);
  for (int32_t i = count - 1; i >= candidate->compared; --i) {
    const float overlap =
        Overlap(boxes + int64_t{4} * candidate->index, boxes + int64_t{4} * selected[i]);
    if (overlap >= limits.overlap) return false;
    if (limits.sigma > 0) candidate->score *= std::exp(scale * overlap * overlap);
    if (candidate->score <= limits.score) break;
  }
  candidate->compared = count;
  return true;
}

// How many were selected. `scores_out` may be null.
int32_t Select(const float* boxes, const float* scores, int64_t count, const Thresholds& limits,
               int64_t most, int32_t* selected, float* scores_out) {
  std::priority_queue<Box> queue;
  for (int64_t i = 0; i < count; ++i) {
    if (scores[i] > limits.score) queue.push({static_cast<int32_t>(i), scores[i], 0});
  }
  most = std::min<int64_t>(most, static_cast<int64_t>(queue.size()));
  int32_t found = 0;
  while (found < most && !queue.empty()) {
    Box next = queue.top();
    queue.pop();
    const float original = next.score;
    if (!Compare(boxes, limits, selected, found, &next)) continue;
    if (next.score == original) {
      selected[found] = next.index;
      if (scores_out) scores_out[found] = next.score;
      ++found;
    }
    // A selected one comes back too, and falls to the comparison with itself.
    if (next.score > limits.score) queue.push(next);
  }
  return found;
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return MakeKernel(
      "non_max_suppression", {},
      [count = int64_t{op.inputs[0].shape[0]}, most = int64_t{op.outputs[0].shape[0]},
       soft = op.inputs.size() == 6](const KernelArgs& args, int64_t, int64_t) -> Status {
        const auto number = [&](int i) { return *static_cast<const float*>(args.inputs[i]); };
        const Thresholds limits{number(3), number(4), soft ? number(5) : 0};
        if (limits.sigma < 0) return InvalidArgument("a sigma of ", limits.sigma);
        auto* selected = static_cast<int32_t*>(args.outputs[0]);
        auto* scores = soft ? static_cast<float*>(args.outputs[1]) : nullptr;
        const int32_t found = Select(static_cast<const float*>(args.inputs[0]),
                                     static_cast<const float*>(args.inputs[1]), count, limits, most,
                                     selected, scores);
        std::fill(selected + found, selected + most, 0);
        if (soft) std::fill(scores + found, scores + most, 0.0F);
        *static_cast<int32_t*>(args.outputs[soft ? 2 : 1]) = found;
        return Status();
      });
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

constexpr OperatorDef Make(std::string_view name, int code, int options_type, int inputs) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.min_inputs = def.max_inputs = inputs;
  def.min_outputs = def.max_outputs = inputs - 3;
  def.types = kTypes;
  def.limits = "rank 2";
  def.infer = InferNonMaxSuppression;
  def.candidates = kCandidates;
  def.cost = [](const OpDescription& op) {
    return 16.0 * static_cast<double>(op.inputs[1].elements()) * op.outputs[0].elements();
  };
  return def;
}

}  // namespace

const OperatorDef& NonMaxSuppressionV4Operator() {
  static constexpr OperatorDef kDef =
      Make("NON_MAX_SUPPRESSION_V4", tflite::kTfLiteBuiltinNonMaxSuppressionV4, 95, 5);
  return kDef;
}

const OperatorDef& NonMaxSuppressionV5Operator() {
  static constexpr OperatorDef kDef =
      Make("NON_MAX_SUPPRESSION_V5", tflite::kTfLiteBuiltinNonMaxSuppressionV5, 96, 6);
  return kDef;
}

}  // namespace fuselite::kernels
