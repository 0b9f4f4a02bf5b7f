// BUCKETIZE: how many of the boundaries, which are sorted, are not above each element.
#include <algorithm>
#include <vector>

#include "kernels/elementwise/typed_map.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

struct BucketizeParams {
  FloatList boundaries;
};
constexpr Field kFields[] = {
    {"boundaries", FieldKind::kFloatList, 0, offsetof(BucketizeParams, boundaries),
     offsetof(tflite::TfLiteBucketizeParams, boundaries),
     offsetof(tflite::TfLiteBucketizeParams, num_boundaries)},
};
constexpr TypeRow Row(DataType type) { return {{type}, DataType::kInt32}; }
constexpr TypeRow kTypes[] = {Row(DataType::kFloat32), Row(DataType::kFloat64),
                              Row(DataType::kInt32), Row(DataType::kInt64)};

std::span<const float> Boundaries(const OpDescription& op) {
  const FloatList& list = op.params.as<BucketizeParams>().boundaries;
  return {list.values, static_cast<size_t>(list.count)};
}

Status InferBucketize(OpDescription& op) {
  if (!std::ranges::is_sorted(Boundaries(op))) {
    return InvalidArgument("the boundaries are not sorted");
  }
  return SetOutput(op, 0, DataType::kInt32, op.inputs[0].shape);
}

// Integers are compared as floats, doubles as doubles: what C++ makes of the two types.
template <class T>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const std::span<const float> from = Boundaries(op);
  return MakeTypedUnaryMap<T, int32_t>(
      op, [boundaries = std::vector<float>(from.begin(), from.end())](T x) {
        const auto first = std::upper_bound(boundaries.begin(), boundaries.end(), x);
        return static_cast<int32_t>(first - boundaries.begin());
      });
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("a tail behind BUCKETIZE");
  switch (op.inputs[0].type) {
    case DataType::kFloat64: return BuildOf<double>(op);
    case DataType::kInt32: return BuildOf<int32_t>(op);
    case DataType::kInt64: return BuildOf<int64_t>(op);
    default: return BuildOf<float>(op);
  }
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& BucketizeOperator() {
  static const OperatorDef kDef = {
      .name = "BUCKETIZE",
      .builtin_code = tflite::kTfLiteBuiltinBucketize,
      .options_type = 115,
      .fields = kFields,
      .params_bytes = sizeof(BucketizeParams),
      .struct_bytes = sizeof(tflite::TfLiteBucketizeParams),
      .types = kTypes,
      .infer = InferBucketize,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 8.0 * op.outputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
