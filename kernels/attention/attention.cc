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
    {"highway", BuildAttentionHighway},
    {"reference", BuildAttentionReference},
};

// The scores of one query, then the weighted mean of the values. `mask` advances by `mask_step`.
void AttendRow(const AttentionShape& s, const AttentionParams& params, const float* query,
               const float* keys, const float* values, const float* mask, int mask_step,
               float* scores, float* out) {
  const int64_t key_step = params.keys_by_rows ? s.depth : 1;
  const int64_t term_step = params.keys_by_rows ? 1 : s.keys;
  float largest = -INFINITY;
  for (int64_t n = 0; n < s.keys; ++n) {
    float sum = 0;
    for (int64_t k = 0; k < s.depth; ++k) sum += query[k] * keys[n * key_step + k * term_step];
    scores[n] = sum * params.scale;
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
    for (int64_t n = 0; n < s.keys; ++n) sum += scores[n] * values[n * s.values + d];
    out[d] = sum / total;
  }
}

}  // namespace

Result<AttentionShape> ResolveAttention(const OpDescription& op) {
  const Shape& q = op.inputs[0].shape;
  const Shape& k = op.inputs[1].shape;
  const Shape& v = op.inputs[2].shape;
  const bool by_rows = op.params.as<AttentionParams>().keys_by_rows;
  const int rank = q.rank();
  if (rank < 2 || k.rank() != rank || v.rank() != rank) {
    return InvalidArgument("queries ", q, ", keys ", k, " and values ", v, " differ in rank");
  }
  AttentionShape shape{.heads = q.elements(0, rank - 2),
                       .queries = q.dim(-2),
                       .keys = v.dim(-2),
                       .depth = q.dim(-1),
                       .values = v.dim(-1)};
  for (int d = 0; d < rank - 2; ++d) {
    if (k[d] != q[d] || v[d] != q[d]) return Unsupported("heads that broadcast");
  }
  if (k.dim(by_rows ? -2 : -1) != shape.keys || k.dim(by_rows ? -1 : -2) != shape.depth) {
    return InvalidArgument("queries ", q, ", keys ", k, " and values ", v, " do not fit");
  }
  if (shape.keys == 0) return Unsupported("no keys");
  if (op.inputs[1].row_pitch != 0 || op.inputs[2].row_pitch != 0) {
    return Unsupported("pitched keys or values");
  }
  if (!op.has_input(3)) return shape;
  const TensorInfo& mask = op.inputs[3];
  const auto use = AsTailOperand(mask, WithInner(q, shape.keys));
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
      .units = shape.heads * shape.queries,
      .grain = GrainFor(shape.keys * (shape.depth + shape.values)),
      .scratch_bytes = tail.scratch_bytes() + static_cast<size_t>(shape.keys) * sizeof(float)};
  return MakeKernel(
      "attention f32 reference", work,
      [=, pitch = op.inputs[0].pitch()](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto operand = [&](int i) { return static_cast<const float*>(args.inputs[i]); };
        auto* scores = reinterpret_cast<float*>(args.scratch + tail.scratch_bytes());
        for (int64_t row = begin; row < end; ++row) {
          const int64_t head = row / shape.queries;
          const TailOperand& m = shape.mask.operand;
          const int64_t batch = row / std::max<int64_t>(1, shape.mask.rows_per_batch);
          const float* mask = shape.masked ? operand(3) + batch * m.batch_stride +
                                                 row % shape.mask.rows_per_batch * m.row_stride
                                           : nullptr;
          AttendRow(shape, params, operand(0) + row * pitch,
                    operand(1) + head * shape.keys * shape.depth,
                    operand(2) + head * shape.keys * shape.values, mask, m.channel_stride, scores,
                    tail.Row(args, row));
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
            const Shape& v = op.inputs[2].shape;
            return static_cast<double>(op.inputs[0].elements()) * v.dim(-2) +
                   static_cast<double>(op.outputs[0].elements()) * v.dim(-2);
          },
      .takes_tail = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
