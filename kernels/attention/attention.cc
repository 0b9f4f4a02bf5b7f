#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "kernels/make_kernel.h"
#include "kernels/row_tail.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}};

// The output's and the scores' shape: the queries' with another innermost dimension.
Shape WithInner(Shape shape, int64_t inner) {
  shape.set(shape.rank() - 1, static_cast<int32_t>(inner));
  return shape;
}

Status InferAttention(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  return SetElementwiseOutput(op, kF32, WithInner(op.inputs[0].shape, shape.values));
}

constexpr Candidate kCandidates[] = {
    {"few rows", BuildAttentionFewRows},
    {"highway", BuildAttentionHighway},
    {"reference", BuildAttentionReference},
};

// The scores of one query, then the weighted mean of the values. `mask` advances by `mask_step`.
void AttendRow(const AttentionShape& s, const AttentionParams& params, const float* query,
               const float* keys, const float* values, const float* mask, int mask_step,
               float* scores, float* out) {
  float largest = -INFINITY;
  for (int64_t n = 0; n < s.keys; ++n) {
    float sum = 0;
    for (int64_t k = 0; k < s.depth; ++k) sum += query[k] * keys[n * s.k.key + k * s.k.term];
    scores[n] = sum * params.scale;
    if (params.logit_cap > 0) {
      scores[n] = params.logit_cap * std::tanh(scores[n] / params.logit_cap);
    }
    if (mask != nullptr) scores[n] += mask[n * mask_step];
    largest = std::max(largest, scores[n]);
  }
  float total = 0;
  for (int64_t n = 0; n < s.keys; ++n) {
    scores[n] = std::exp(scores[n] - largest);
    total += scores[n];
  }
  for (int64_t d = 0; d < s.values; ++d) {
    float sum = 0;
    for (int64_t n = 0; n < s.keys; ++n) sum += scores[n] * values[n * s.v.key + d];
    out[d] = sum / total;
  }
}

Status CheckKeys(const AttentionShape& shape, const OpDescription& op, bool by_rows) {
  const Shape& k = op.inputs[1].shape;
  const int64_t keys =
      by_rows ? k.elements() / (shape.batches * shape.key_heads * shape.depth) : k.dim(-1);
  const int64_t depth = k.dim(by_rows ? -1 : -2);
  if (keys != shape.keys || depth != shape.depth) {
    return InvalidArgument("queries ", op.inputs[0].shape, ", keys ", k, " and values ",
                           op.inputs[2].shape, " do not fit");
  }
  if (shape.keys == 0) return Unsupported("no keys");
  if (op.inputs[1].row_pitch != 0 || op.inputs[2].row_pitch != 0) {
    return Unsupported("pitched keys or values");
  }
  return Status();
}

// [..., M, K].
Result<AttentionShape> ResolveHeadsOutside(const OpDescription& op, bool by_rows) {
  const Shape &q = op.inputs[0].shape, &k = op.inputs[1].shape, &v = op.inputs[2].shape;
  const int rank = q.rank();
  AttentionShape shape{.batches = q.elements(0, rank - 2),
                       .queries = q.dim(-2),
                       .keys = v.dim(-2),
                       .depth = q.dim(-1),
                       .values = v.dim(-1)};
  for (int d = 0; d < rank - 2; ++d) {
    if (k[d] != q[d] || v[d] != q[d]) return Unsupported("heads that broadcast");
  }
  shape.k = {.batch = shape.keys * shape.depth,
             .key = by_rows ? shape.depth : 1,
             .term = by_rows ? 1 : shape.keys};
  shape.v = {.batch = shape.keys * shape.values, .key = shape.values};
  return shape;
}

// [B, M, H, K].
Result<AttentionShape> ResolveHeadsInside(const OpDescription& op, bool by_rows) {
  const Shape &q = op.inputs[0].shape, &k = op.inputs[1].shape, &v = op.inputs[2].shape;
  if (q.rank() != 4 || !by_rows) return Unsupported("heads inside of ", q);
  if (k[0] != q[0] || v[0] != q[0] || k[1] != v[1] || k[2] != v[2] || k[2] == 0 ||
      q[2] % k[2] != 0) {
    return Unsupported("queries ", q, ", keys ", k, " and values ", v);
  }
  AttentionShape shape{.batches = q[0],
                       .heads = q[2],
                       .key_heads = k[2],
                       .queries = q[1],
                       .keys = v[1],
                       .depth = q[3],
                       .values = v[3],
                       .head_rows = 1,
                       .query_rows = q[2]};
  const auto steps = [&](int64_t channels) {
    return AttentionShape::Steps{.batch = shape.keys * shape.key_heads * channels,
                                 .head = channels,
                                 .key = shape.key_heads * channels};
  };
  shape.k = steps(shape.depth);
  shape.v = steps(shape.values);
  return shape;
}

}  // namespace

Result<AttentionShape> ResolveAttention(const OpDescription& op) {
  const Shape &q = op.inputs[0].shape, &k = op.inputs[1].shape, &v = op.inputs[2].shape;
  const auto& params = op.params.as<AttentionParams>();
  if (q.rank() < 2 || k.rank() != q.rank() || v.rank() != q.rank()) {
    return InvalidArgument("queries ", q, ", keys ", k, " and values ", v, " differ in rank");
  }
  if (q.elements() == 0 || v.elements() == 0) return Unsupported("no queries or no keys");
  FUSELITE_ASSIGN_OR_RETURN(AttentionShape shape,
                            params.heads_inside ? ResolveHeadsInside(op, params.keys_by_rows)
                                                : ResolveHeadsOutside(op, params.keys_by_rows));
  FUSELITE_RETURN_IF_ERROR(CheckKeys(shape, op, params.keys_by_rows));
  if (!op.has_input(3)) return shape;
  const TensorInfo& mask = op.inputs[3];
  Shape scores = WithInner(q, shape.keys);
  if (params.heads_inside) {
    scores = Shape({q[0], q[2], q[1], static_cast<int32_t>(shape.keys)});
  }
  const auto use = AsTailOperand(mask, scores);
  if (mask.type != kF32 || !use) return Unsupported("a mask ", mask.shape);
  shape.masked = true;
  shape.mask = *use;
  return shape;
}

Result<std::unique_ptr<Kernel>> BuildAttentionReference(const OpDescription& op,
                                                        const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  const auto params = op.params.as<AttentionParams>();
  const RowTail tail(op, &ApplyTailReference);
  const Work work{
      .units = shape.batches * shape.heads * shape.queries,
      .grain = GrainFor(shape.keys * (shape.depth + shape.values)),
      .scratch_bytes = tail.scratch_bytes() + static_cast<size_t>(shape.keys) * sizeof(float)};
  return MakeKernel(
      "attention f32 reference", work,
      [=, pitch = op.inputs[0].pitch()](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto operand = [&](int i) { return static_cast<const float*>(args.inputs[i]); };
        auto* scores = reinterpret_cast<float*>(args.scratch + tail.scratch_bytes());
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t query = unit % shape.queries, of_batch = unit / shape.queries;
          const int64_t head = of_batch % shape.heads, batch = of_batch / shape.heads;
          const int64_t key_head = head / shape.group();
          const int64_t row = shape.Row(batch, head, query);
          AttendRow(
              shape, params, operand(0) + row * pitch, operand(1) + shape.k.At(batch, key_head),
              operand(2) + shape.v.At(batch, key_head), shape.MaskRow(args, batch, head, query),
              shape.mask.operand.channel_stride, scores, tail.Row(args, row));
          tail.Finish(args, row);
        }
      });
}

const OperatorDef& AttentionOperator() {
  static const OperatorDef kDef = {
      .name = "FUSELITE_ATTENTION",
      .params_bytes = sizeof(AttentionParams),
      .min_inputs = 3,
      .max_inputs = 4,
      .types = kTypes,
      .infer = InferAttention,
      .candidates = kCandidates,
      .cost =
          [](const OpDescription& op) {
            const bool inside = op.params.as<AttentionParams>().heads_inside;
            const double keys = op.inputs[2].shape.dim(inside ? -3 : -2);
            return keys * static_cast<double>(op.inputs[0].elements() + op.outputs[0].elements());
          },
      .takes_tail = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
