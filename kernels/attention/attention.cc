#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/block.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/make_kernel.h"
#include "kernels/rows/row_tail.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI8 = DataType::kInt8;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}, {{kF32, kI8, kI8}, kF32}};

// The shape of the scores, and that of the output of heads outside: the queries' with another
// innermost dimension.
Shape WithInner(Shape shape, int64_t inner) {
  shape.set(shape.rank() - 1, static_cast<int32_t>(inner));
  return shape;
}

Status InferAttention(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  const Shape& q = op.inputs[0].shape;
  if (op.params.as<AttentionParams>().heads_inside) {
    return SetElementwiseOutput(
        op, kF32,
        {q[0], q[1], static_cast<int32_t>(shape.heads), static_cast<int32_t>(shape.values)});
  }
  return SetElementwiseOutput(op, kF32, WithInner(q, shape.values));
}

constexpr Candidate kCandidates[] = {
    {"few rows", BuildAttentionFewRows},
    {"highway", BuildAttentionHighway},
    {"reference", BuildAttentionReference},
};

// Keys or values of bytes, read as floats are.
struct Widened {
  const int8_t* at;
  AttentionShape::Scaled scaled;
  float operator[](int64_t i) const {
    return scaled.scale * static_cast<float>(at[i] - scaled.zero_point);
  }
};

bool HidesRow(const AttentionBlock::Mask& mask, int64_t keys) {
  const float* const row = mask.rows[0];
  return std::all_of(row, row + (mask.step == 0 ? 1 : keys),
                     [](float score) { return score <= kHiddenScore; });
}

// The scores of one query, then the weighted mean of the values.
template <class Cache>
void AttendRow(const AttentionShape& s, const AttentionParams& params, const float* query,
               Cache keys, Cache values, const AttentionBlock& masks, float* scores, float* out) {
  const float factor = params.operand_scale();
  float largest = -INFINITY;
  for (int64_t n = 0; n < s.keys; ++n) {
    float sum = 0;
    for (int64_t k = 0; k < s.depth; ++k) {
      sum += (query[k] * factor) * (keys[n * s.k.row + k * s.k.channel] * factor);
    }
    scores[n] = sum * params.score_scale();
    if (params.logit_cap > 0) {
      scores[n] = params.logit_cap * std::tanh(scores[n] / params.logit_cap);
    }
    for (int m = 0; m < masks.mask_count; ++m) {
      scores[n] += masks.masks[m].rows[0][n * masks.masks[m].step];
    }
    largest = std::max(largest, scores[n]);
  }
  if (masks.hidden_is_zero && HidesRow(masks.masks[masks.mask_count - 1], s.keys)) {
    std::fill_n(out, s.values, 0.0f);
    return;
  }
  float total = 0;
  for (int64_t n = 0; n < s.keys; ++n) {
    scores[n] = std::exp(scores[n] - largest);
    total += scores[n];
  }
  for (int64_t d = 0; d < s.values; ++d) {
    float sum = 0;
    for (int64_t n = 0; n < s.keys; ++n) sum += scores[n] / total * values[n * s.v.row + d];
    out[d] = sum;
  }
}

// [..., M, K].
Result<AttentionShape> ResolveHeadsOutside(const OpDescription& op, bool by_rows) {
  const TensorInfo &q = op.inputs[0], &k = op.inputs[1], &v = op.inputs[2];
  const int rank = q.shape.rank();
  const int outer = std::max(rank - 3, 0);
  AttentionShape shape{.batches = q.shape.elements(0, outer),
                       .heads = q.shape.elements(outer, rank - 2),
                       .key_heads = v.shape.elements(outer, rank - 2),
                       .queries = q.shape.dim(-2),
                       .keys = v.shape.dim(-2),
                       .depth = q.shape.dim(-1),
                       .values = v.shape.dim(-1),
                       .head_rows = q.shape.dim(-2)};
  for (int d = 0; d < rank - 2; ++d) {
    if (k.shape[d] != v.shape[d] || (d < outer && v.shape[d] != q.shape[d])) {
      return Unsupported("does not take heads that broadcast");
    }
  }
  if (shape.heads % shape.key_heads != 0)
    return Unsupported("does not take groups of unlike sizes");
  const Shape keys =
      by_rows ? Shape{v.shape.dim(-2), q.shape.dim(-1)} : Shape{q.shape.dim(-1), v.shape.dim(-2)};
  if (k.shape.dim(-2) != keys[0] || k.shape.dim(-1) != keys[1]) {
    return InvalidArgument("queries ", q.shape, ", keys ", k.shape, " and values ", v.shape,
                           " do not fit");
  }
  const auto steps = [](const TensorInfo& info, int64_t heads) {
    const int64_t head = info.shape.dim(-2) * info.pitch();
    return AttentionShape::Steps{.batch = heads * head, .head = head, .row = info.pitch()};
  };
  shape.q = steps(q, shape.heads);
  shape.k = steps(k, shape.key_heads);
  shape.v = steps(v, shape.key_heads);
  if (!by_rows) std::swap(shape.k.row, shape.k.channel);
  return shape;
}

// An operand [batch, row, head, channel] or [batch, row, head * channel].
struct HeadsInside {
  int64_t batches, rows, heads, channels;
  AttentionShape::Steps steps;
};
HeadsInside HeadsOf(const TensorInfo& info, int64_t heads) {
  const Shape& s = info.shape;
  const int64_t pitch = info.pitch();
  if (s.rank() == 3) {
    const int64_t channels = s[2] / heads;
    return {s[0], s[1], heads, channels, {.batch = s[1] * pitch, .head = channels, .row = pitch}};
  }
  return {
      s[0], s[1], s[2], s[3], {.batch = s[1] * s[2] * pitch, .head = pitch, .row = s[2] * pitch}};
}

Result<AttentionShape> ResolveHeadsInside(const OpDescription& op, const AttentionParams& params) {
  const Shape& shape = op.inputs[0].shape;
  const bool in_rows = shape.rank() == 3;
  if ((shape.rank() != 4 && !in_rows) || !params.keys_by_rows) {
    return Unsupported("does not take heads inside of ", shape);
  }
  const int64_t heads = in_rows ? params.heads : shape[2];
  if (heads <= 0 || (in_rows && shape[2] % heads != 0)) {
    return InvalidArgument(heads, " heads of ", shape);
  }
  const HeadsInside q = HeadsOf(op.inputs[0], heads);
  const Shape& of_keys = op.inputs[1].shape;
  const int64_t key_heads = in_rows ? of_keys[2] / q.channels : of_keys[2];
  if (key_heads == 0 || heads % key_heads != 0) {
    return Unsupported("does not take queries ", shape, " and keys ", of_keys);
  }
  const HeadsInside k = HeadsOf(op.inputs[1], key_heads), v = HeadsOf(op.inputs[2], key_heads);
  if (k.batches != q.batches || v.batches != q.batches || k.rows != v.rows ||
      k.heads != key_heads || v.heads != key_heads || k.channels != q.channels || v.channels == 0 ||
      (in_rows && (of_keys[2] % q.channels != 0 || op.inputs[2].shape[2] % key_heads != 0))) {
    return Unsupported("does not take queries ", shape, ", keys ", of_keys, " and values ",
                       op.inputs[2].shape);
  }
  return AttentionShape{.batches = q.batches,
                        .heads = heads,
                        .key_heads = key_heads,
                        .queries = q.rows,
                        .keys = v.rows,
                        .depth = q.channels,
                        .values = v.channels,
                        .head_rows = 1,
                        .query_rows = heads,
                        .q = q.steps,
                        .k = k.steps,
                        .v = v.steps};
}

// Differences from zero points of 8 bits are whole floats.
Result<AttentionShape::Scaled> ScaledBy(const Quantization& q) {
  const bool fits = !q.empty() && !q.per_channel() && std::abs(q.zero_point()) <= 128;
  if (!fits) return Unsupported("does not take a cache of bytes without one scale");
  return AttentionShape::Scaled{q.scale(), q.zero_point()};
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
                            params.heads_inside ? ResolveHeadsInside(op, params)
                                                : ResolveHeadsOutside(op, params.keys_by_rows));
  shape.bytes = op.inputs[1].type == kI8;
  if (shape.bytes) {
    FUSELITE_ASSIGN_OR_RETURN(shape.k_scale, ScaledBy(op.inputs[1].quantization));
    FUSELITE_ASSIGN_OR_RETURN(shape.v_scale, ScaledBy(op.inputs[2].quantization));
  }
  Shape scores = WithInner(q, shape.keys);
  if (params.heads_inside) {
    scores =
        Shape({q[0], static_cast<int32_t>(shape.heads), q[1], static_cast<int32_t>(shape.keys)});
  }
  for (size_t i = AttentionShape::kFirstMask; op.has_input(i); ++i) {
    const TensorInfo& mask = op.inputs[i];
    auto over_scores = RowsBroadcastTo(mask, scores);
    if (mask.type != kF32 || !over_scores) return Unsupported("does not take a mask ", mask.shape);
    shape.masks[shape.mask_count++] = *std::move(over_scores);
  }
  if (params.hidden_is_zero && shape.mask_count == 0) {
    return InvalidArgument("without a mask no query is hidden");
  }
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
      "attention f32 reference", work, [=](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto operand = [&](int i) { return static_cast<const float*>(args.inputs[i]); };
        const auto bytes = [&](int i) { return static_cast<const int8_t*>(args.inputs[i]); };
        auto* scores = reinterpret_cast<float*>(args.scratch + tail.scratch_bytes());
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t query = unit % shape.queries, of_batch = unit / shape.queries;
          const int64_t head = of_batch % shape.heads, batch = of_batch / shape.heads;
          const int64_t key_head = head / shape.group();
          const int64_t row = shape.Row(batch, head, query);
          AttentionBlock masks{};
          masks.Take(params);
          masks.PointAtMasks(shape, args, 0, batch, head, query);
          const int64_t k = shape.k.At(batch, key_head), v = shape.v.At(batch, key_head);
          const auto attend = [&](auto keys, auto values) {
            AttendRow(shape, params, operand(0) + shape.q.At(batch, head) + query * shape.q.row,
                      keys, values, masks, scores, tail.Row(args, row));
          };
          if (shape.bytes) {
            attend(Widened{bytes(1) + k, shape.k_scale}, Widened{bytes(2) + v, shape.v_scale});
          } else {
            attend(operand(1) + k, operand(2) + v);
          }
          tail.Finish(args, row);
        }
      });
}

const OperatorDef& AttentionOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FUSELITE_ATTENTION",
      .params_bytes = sizeof(AttentionParams),
      .min_inputs = 3,
      .max_inputs = AttentionShape::kFirstMask + AttentionShape::kMaxMasks,
      .types = kTypes,
      .infer = InferAttention,
      .candidates = kCandidates,
      .cost =
          [](const OpDescription& op) {
            const bool inside = op.params.as<AttentionParams>().heads_inside;
            const double keys = op.inputs[2].shape.dim(inside ? 1 : -2);
            return keys * static_cast<double>(op.inputs[0].elements() + op.outputs[0].elements());
          },
      .takes_tail = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
