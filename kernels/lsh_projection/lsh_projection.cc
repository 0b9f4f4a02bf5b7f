// LSH_PROJECTION: (seeds [hashes, bits], input, weights or nothing): for each seed one bit, whether
// the sum of weight * hash(seed, item) over the items of the input is positive. An item is what has
// one index of the input's first dimension. DENSE gives the bits, SPARSE the bits of a hash as one
// number, to which the hash's place times 2^bits is added.
#include <cstring>
#include <vector>

#include "kernels/lsh_projection/fingerprint.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

// Values as in the schema.
enum class Projection : int32_t { kUnknown, kSparse, kDense };
struct LshProjectionParams {
  Projection type;
};
constexpr Field kFields[] = {
    {"type", FieldKind::kEnum8, 0, offsetof(LshProjectionParams, type),
     offsetof(tflite::TfLiteLSHProjectionParams, type)},
};
constexpr DataType kF32 = DataType::kFloat32, kAny = DataType::kNone;
constexpr TypeRow kTypes[] = {{{kF32, kAny, kF32}, DataType::kInt32}};

bool IsSparse(const OpDescription& op) {
  return op.params.as<LshProjectionParams>().type == Projection::kSparse;
}

Status InferLshProjection(OpDescription& op) {
  const Shape &seeds = op.inputs[0].shape, &input = op.inputs[1].shape;
  const Projection type = op.params.as<LshProjectionParams>().type;
  if (type != Projection::kSparse && type != Projection::kDense) {
    return InvalidArgument("the projection ", static_cast<int>(type), " is unknown");
  }
  if (seeds.rank() != 2 || seeds[1] > 32 || (IsSparse(op) && seeds[1] > 31)) {
    return InvalidArgument("seeds of ", seeds);
  }
  if (input.rank() < 1) return InvalidArgument("an input of rank 0");
  FUSELITE_RETURN_IF_ERROR(ElementBytes(op.inputs[1].type).status());
  if (op.has_input(2) && op.inputs[2].shape != Shape{input[0]}) {
    return InvalidArgument("weights of ", op.inputs[2].shape, " for ", input[0], " items");
  }
  const int64_t bits = IsSparse(op) ? 1 : seeds[1];
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({seeds[0] * bits}));
  return SetOutput(op, 0, DataType::kInt32, shape);
}

// Unit: one hash, all of its bits.
class LshProjection {
 public:
  explicit LshProjection(const OpDescription& op)
      : sparse_(IsSparse(op)),
        weighted_(op.has_input(2)),
        bits_(op.inputs[0].shape[1]),
        items_(op.inputs[1].shape[0]),
        item_bytes_(items_ > 0 ? op.inputs[1].bytes() / items_ : 0) {}

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* seeds = static_cast<const float*>(args.inputs[0]);
    auto* out = static_cast<int32_t*>(args.outputs[0]);
    std::vector<std::byte> key(sizeof(float) + item_bytes_);
    for (int64_t hash = begin; hash < end; ++hash) {
      uint32_t signature = 0;
      for (int64_t bit = 0; bit < bits_; ++bit) {
        std::memcpy(key.data(), &seeds[hash * bits_ + bit], sizeof(float));
        const bool one = Score(args, key) > 0;
        signature = signature << 1 | (one ? 1 : 0);
        if (!sparse_) out[hash * bits_ + bit] = one ? 1 : 0;
      }
      if (sparse_) {
        out[hash] = static_cast<int32_t>(signature + static_cast<uint32_t>(hash << bits_));
      }
    }
  }

 private:
  double Score(const KernelArgs& args, std::vector<std::byte>& key) const {
    const auto* item = static_cast<const std::byte*>(args.inputs[1]);
    const auto* weights = weighted_ ? static_cast<const float*>(args.inputs[2]) : nullptr;
    double score = 0;
    for (int64_t i = 0; i < items_; ++i, item += item_bytes_) {
      if (item_bytes_ > 0) std::memcpy(key.data() + sizeof(float), item, item_bytes_);
      const auto value =
          static_cast<double>(static_cast<int64_t>(Fingerprint::Of(key.data(), key.size())));
      score += weights != nullptr ? weights[i] * value : value;
    }
    return score;
  }

  bool sparse_, weighted_;
  int64_t bits_, items_;
  size_t item_bytes_;
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("LSH_PROJECTION takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const Shape& seeds = op.inputs[0].shape;
  return MakeKernel("lsh_projection",
                    {.units = seeds[0], .grain = GrainFor(8 * seeds[1] * op.inputs[1].shape[0])},
                    LshProjection(op));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& LshProjectionOperator() {
  static constexpr OperatorDef kDef = {
      .name = "LSH_PROJECTION",
      .builtin_code = tflite::kTfLiteBuiltinLshProjection,
      .options_type = 4,
      .fields = kFields,
      .params_bytes = sizeof(LshProjectionParams),
      .struct_bytes = sizeof(tflite::TfLiteLSHProjectionParams),
      .min_inputs = 2,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "any input of 8 bits or more; at most 32 bits, 31 in a number",
      .infer = InferLshProjection,
      .candidates = kCandidates,
      .cost =
          [](const OpDescription& op) {
            return 16.0 * op.inputs[0].elements() * op.inputs[1].shape[0];
          },
  };
  return kDef;
}

}  // namespace fuselite::kernels
