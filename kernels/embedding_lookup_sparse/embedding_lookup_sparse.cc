// EMBEDDING_LOOKUP_SPARSE: (ids [n], indices [n, k], shape [k], weights [n], rows): the weighted
// rows of the ids added up by the first k - 1 coordinates of their indices, divided by the sum of
// the weights (mean), by the root of the sum of their squares (sqrtn), or by nothing. Ids of one
// place follow each other: a place that comes back starts counting anew.
#include <algorithm>
#include <cmath>

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

enum class Combiner : int32_t { kSum, kMean, kSqrtn };  // as in the schema
struct SparseEmbeddingParams {
  Combiner combiner;
};
constexpr Field kFields[] = {
    {"combiner", FieldKind::kEnum8, 0, offsetof(SparseEmbeddingParams, combiner),
     offsetof(tflite::TfLiteEmbeddingLookupSparseParams, combiner)},
};
constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32;
constexpr TypeRow kTypes[] = {{{kI32, kI32, kI32}, kF32}};

Status InferSparseEmbedding(OpDescription& op) {
  const Shape& indices = op.inputs[1].shape;
  const TensorInfo& rows = op.inputs[4];
  const Shape count = op.inputs[0].shape;
  if (count.rank() != 1 || indices.rank() != 2 || indices[0] != count[0] ||
      op.inputs[3].shape != count || rows.shape.rank() < 2) {
    return InvalidArgument("ids ", count, ", indices ", indices, ", weights ", op.inputs[3].shape,
                           ", rows ", rows.shape);
  }
  if (op.inputs[3].type != kF32 || rows.type != kF32) {
    return Unsupported("does not take weights of ", DataTypeName(op.inputs[3].type),
                       " and rows of ", DataTypeName(rows.type));
  }
  const auto combiner = static_cast<int>(op.params.as<SparseEmbeddingParams>().combiner);
  if (combiner < 0 || combiner > 2) return InvalidArgument("the combiner ", combiner);
  FUSELITE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[2], "the shape", IntegerTypes::kInt32));
  if (op.inputs[2].shape.rank() != 1 || op.inputs[2].shape[0] != indices[1] || dims.empty()) {
    return InvalidArgument("indices ", indices, " for a shape ", op.inputs[2].shape);
  }
  dims.pop_back();
  for (int d = 1; d < rows.shape.rank(); ++d) dims.push_back(rows.shape[d]);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, kF32, shape);
}

// What the rows of one place weigh together.
struct Weight {
  float total = 0, squares = 0;
  bool any = false;

  void Add(float w) {
    total += w;
    squares += w * w;
    any = true;
  }
  void Finish(Combiner combiner, float* out, int64_t width) const {
    if (combiner == Combiner::kSum || !any) return;
    const float by = combiner == Combiner::kMean ? total : std::sqrt(squares);
    for (int64_t k = 0; k < width; ++k) out[k] /= by;
  }
};

struct SparseEmbedding {
  Combiner combiner;
  int64_t ids, rows, width;
  Shape places;  // the first k - 1 dimensions
  int depth;     // k

  explicit SparseEmbedding(const OpDescription& op)
      : combiner(op.params.as<SparseEmbeddingParams>().combiner),
        ids(op.inputs[0].elements()),
        rows(op.inputs[4].shape[0]),
        width(op.inputs[4].shape.elements(1, op.inputs[4].shape.rank())),
        depth(op.inputs[1].shape[1]) {
    for (int d = 0; d < depth - 1; ++d) places.push_back(op.outputs[0].shape[d]);
  }

  // -1 where a coordinate is out of range.
  int64_t PlaceOf(const int32_t* index) const {
    int64_t place = 0;
    for (int d = 0; d < places.rank(); ++d) {
      if (index[d] < 0 || index[d] >= places[d]) return -1;
      place = place * places[d] + index[d];
    }
    return place;
  }

  Status operator()(const KernelArgs& args, int64_t /*begin*/, int64_t /*end*/) const {
    auto* out = static_cast<float*>(args.outputs[0]);
    std::fill_n(out, places.elements() * width, 0.0F);
    float* current = out;
    Weight weight;
    for (int64_t i = 0; i < ids; ++i) {
      const int32_t id = static_cast<const int32_t*>(args.inputs[0])[i];
      if (id < 0 || id >= rows) return InvalidArgument("id ", id, " is not in [0, ", rows, ")");
      const int64_t place = PlaceOf(static_cast<const int32_t*>(args.inputs[1]) + i * depth);
      if (place < 0) return InvalidArgument("index ", i, " is outside of the shape");
      if (out + place * width != current) {
        weight.Finish(combiner, current, width);
        weight = Weight();
        current = out + place * width;
      }
      const float w = static_cast<const float*>(args.inputs[3])[i];
      weight.Add(w);
      const float* row = static_cast<const float*>(args.inputs[4]) + id * width;
      for (int64_t k = 0; k < width; ++k) current[k] += row[k] * w;
    }
    weight.Finish(combiner, current, width);
    return Status();
  }
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("EMBEDDING_LOOKUP_SPARSE takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return MakeKernel("embedding_lookup_sparse", {}, SparseEmbedding(op));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& EmbeddingLookupSparseOperator() {
  static constexpr OperatorDef kDef = {
      .name = "EMBEDDING_LOOKUP_SPARSE",
      .builtin_code = tflite::kTfLiteBuiltinEmbeddingLookupSparse,
      .options_type = 20,
      .fields = kFields,
      .params_bytes = sizeof(SparseEmbeddingParams),
      .struct_bytes = sizeof(tflite::TfLiteEmbeddingLookupSparseParams),
      .min_inputs = 5,
      .max_inputs = 5,
      .types = kTypes,
      .limits = "rank 1; float32 rows and weights",
      .infer = InferSparseEmbedding,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
