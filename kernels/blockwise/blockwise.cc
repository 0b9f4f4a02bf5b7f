#include "kernels/blockwise/blockwise.h"

#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"

namespace fuselite::kernels {

const OperatorDef& EmbeddingLookupOperator();
const OperatorDef& BlockwiseFullyConnectedOperator();
const OperatorDef& BlockwiseEmbeddingLookupOperator();

namespace {

constexpr DataType kF32 = DataType::kFloat32, kAny = DataType::kNone;
constexpr DataType kI8 = DataType::kInt8, kI4 = DataType::kInt4, kI2 = DataType::kInt2;
constexpr TypeRow kProductTypes[] = {
    {{kF32, kI4, kF32}, kF32}, {{kF32, kI8, kF32}, kF32}, {{kF32, kI2, kF32}, kF32}};
constexpr TypeRow kLookupTypes[] = {{{DataType::kInt32, kI4, kAny}, kF32},
                                    {{DataType::kInt32, kI8, kAny}, kF32},
                                    {{DataType::kInt32, kI2, kAny}, kF32}};

// The elements that share a scale.
Result<int64_t> BlockSize(const TensorInfo& weights, const TensorInfo& scales) {
  if (!weights.constant() || !scales.constant()) {
    return Unsupported("weights in blocks that are no constants");
  }
  if (scales.type != kF32 && scales.type != DataType::kFloat16) {
    return Unsupported("does not take block scales of ", DataTypeName(scales.type));
  }
  const Shape &w = weights.shape, &s = scales.shape;
  if (w.rank() != 2 || s.rank() != 2 || s[0] != w[0] || s[1] < 1 || w[1] % s[1] != 0 ||
      w[1] * BitWidth(weights.type) % 8 != 0) {
    return InvalidArgument("weights ", w, " with block scales ", s);
  }
  return w[1] / s[1];
}

Status InferFullyConnected(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const BlockwiseShape shape, ResolveBlockwise(op));
  op.outputs[0].shape = FullyConnectedOutput(op, shape.rows, shape.units);
  if (op.outputs[0].absent()) op.outputs[0].type = kF32;
  return MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation).status();
}

Status InferEmbeddingLookup(OpDescription& op) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind EMBEDDING_LOOKUP");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_RETURN_IF_ERROR(BlockSize(op.inputs[1], op.inputs[2]).status());
  const Shape& ids = op.inputs[0].shape;
  if (ids.rank() != 1) return Unsupported("ids ", ids, " are no vector");
  return SetOutput(op, 0, kF32, Shape({ids[0], op.inputs[1].shape[1]}));
}

constexpr Candidate kProductCandidates[] = {
    {"highway", PlanBlockwiseFullyConnected},
    {"reference", BuildBlockwiseFullyConnectedReference},
};
constexpr Candidate kLookupCandidates[] = {{"reference", BuildBlockwiseEmbeddingLookup}};

}  // namespace

Result<BlockwiseShape> ResolveBlockwise(const OpDescription& op) {
  if (!op.has_input(kBlockScalesInput)) return InvalidArgument("the block scales are left out");
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  BlockwiseShape result;
  static_cast<FullyConnectedShape&>(result) = shape;
  FUSELITE_ASSIGN_OR_RETURN(result.block_size,
                            BlockSize(op.inputs[1], op.inputs[kBlockScalesInput]));
  return result;
}

Result<std::unique_ptr<Kernel>> BuildBlockwiseFullyConnectedReference(const OpDescription& op,
                                                                      const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const BlockwiseShape shape, ResolveBlockwise(op));
  FUSELITE_ASSIGN_OR_RETURN(const FloatTail tail,
                            MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation));
  const size_t sums_bytes = AlignUp(shape.units * sizeof(float));
  const Work work{.units = shape.rows,
                  .grain = GrainFor(int64_t{shape.depth} * shape.units),
                  .scratch_bytes = sums_bytes + shape.depth * sizeof(int16_t)};
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  return MakeKernel(
      internal::Join("fully_connected blockwise ", DataTypeName(op.inputs[1].type), " reference"),
      work,
      [=, weights = op.inputs[1], scales = op.inputs[kBlockScalesInput], output = op.outputs[0],
       biased = op.has_input(2)](const KernelArgs& args, int64_t begin, int64_t end) {
        const int64_t blocks = shape.depth / shape.block_size;
        auto* sums = reinterpret_cast<float*>(args.scratch);
        auto* q = reinterpret_cast<int16_t*>(args.scratch + sums_bytes);
        for (int64_t row = begin; row < end; ++row) {
          const auto* x = static_cast<const float*>(args.inputs[0]) + row * pitch;
          const float scale = QuantizeDynamically(x, 1, shape.depth, shape.depth, true, q).scale;
          for (int64_t u = 0; u < shape.units; ++u) {
            float total = 0;
            for (int64_t b = 0; b < blocks; ++b) {
              const int64_t first = u * shape.depth + b * shape.block_size;
              int64_t sum = 0;
              WithBlockWeights(weights, [&](const auto& w) {
                for (int64_t k = 0; k < shape.block_size; ++k) {
                  sum += int64_t{q[b * shape.block_size + k]} * w[first + k];
                }
              });
              total += BlockScale(scales, u * blocks + b) * static_cast<float>(sum);
            }
            sums[u] = total * scale;
            if (biased) sums[u] += static_cast<const float*>(args.inputs[2])[u];
          }
          StoreFloatRow(tail, args, output, row, sums);
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildBlockwiseEmbeddingLookup(const OpDescription& op,
                                                              const BuildContext&) {
  const TensorInfo& rows = op.inputs[1];
  FUSELITE_ASSIGN_OR_RETURN(const int64_t block_size, BlockSize(rows, op.inputs[2]));
  const int64_t count = rows.shape[0], width = rows.shape[1];
  return MakeKernel(
      internal::Join("embedding_lookup blockwise ", DataTypeName(rows.type)),
      {.units = op.inputs[0].elements(), .grain = GrainFor(width)},
      [=, scales = op.inputs[2]](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
        auto* out = static_cast<float*>(args.outputs[0]);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t id = LoadUnaligned<int32_t>(args.inputs[0], i);
          if (id < 0 || id >= count)
            return InvalidArgument("index ", id, " is not in [0, ", count, ")");
          WithBlockWeights(rows, [&](const auto& w) {
            for (int64_t j = 0; j < width; j += block_size) {
              const int64_t first = id * width + j;
              const float scale = BlockScale(scales, first / block_size);
              float* const to = out + i * width + j;
              for (int64_t k = 0; k < block_size; ++k) {
                to[k] = static_cast<float>(w[first + k]) * scale;
              }
            }
          });
        }
        return Status();
      });
}

Status UseBlockScales(std::span<const int> scales, const OperatorDef** op,
                      std::vector<int>* inputs) {
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] < 0) continue;
    const bool product = *op == &FullyConnectedOperator();
    if (i != 1 || (!product && *op != &EmbeddingLookupOperator())) {
      return Unsupported("input ", i, " is quantized in blocks");
    }
    *op = product ? &BlockwiseFullyConnectedOperator() : &BlockwiseEmbeddingLookupOperator();
    inputs->resize(product ? kBlockScalesInput : 2, -1);
    inputs->push_back(scales[i]);
    return Status();
  }
  return Status();
}

const OperatorDef& BlockwiseFullyConnectedOperator() {
  static const OperatorDef kDef = {
      .name = "FUSELITE_BLOCKWISE_FULLY_CONNECTED",
      .max_version = FullyConnectedOperator().max_version,
      .fields = FullyConnectedOperator().fields,
      .params_bytes = sizeof(FullyConnectedParams),
      .min_inputs = 2,  // the scales are behind the bias, which may be left out
      .max_inputs = 4,
      .types = kProductTypes,
      .limits =
          "rank 1 or more; run-time operands: all but weights and scales; "
          "scales of float16 and float32",
      .infer = InferFullyConnected,
      .candidates = kProductCandidates,
      .cost = FullyConnectedOperator().cost,
      .takes_tail = true,
  };
  return kDef;
}

const OperatorDef& BlockwiseEmbeddingLookupOperator() {
  static const OperatorDef kDef = {
      .name = "FUSELITE_BLOCKWISE_EMBEDDING_LOOKUP",
      .max_version = EmbeddingLookupOperator().max_version,
      .min_inputs = 3,
      .max_inputs = 3,
      .types = kLookupTypes,
      .limits =
          "rank 1; run-time operands: all but weights and scales; "
          "scales of float16 and float32",
      .infer = InferEmbeddingLookup,
      .candidates = kLookupCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
