#include "kernels/bucketize/bucketize.h"

#include <algorithm>
#include <vector>

#include "kernels/elementwise/typed/typed_map.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"boundaries", FieldKind::kFloatList, 0, offsetof(BucketizeParams, boundaries),
     offsetof(tflite::TfLiteBucketizeParams, boundaries),
     offsetof(tflite::TfLiteBucketizeParams, num_boundaries)},
};
constexpr TypeRow Row(DataType type) { return {{type}, DataType::kInt32}; }
constexpr TypeRow kTypes[] = {Row(DataType::kFloat32), Row(DataType::kFloat64),
                              Row(DataType::kInt32), Row(DataType::kInt64)};

Status InferBucketize(OpDescription& op) {
  if (!std::ranges::is_sorted(Boundaries(op))) {
    return InvalidArgument("the boundaries are not sorted");
  }
  return SetOutput(op, 0, DataType::kInt32, op.inputs[0].shape);
}

// How many of the boundaries are not above x, by halves: a branch for each could not be foretold.
// Integers are compared as floats, doubles as doubles: what C++ makes of the two types.
template <class T>
int32_t CountNotAbove(std::span<const float> boundaries, T x) {
  if (boundaries.empty()) return 0;
  const float* first = boundaries.data();
  for (size_t left = boundaries.size(); left > 1;) {
    const size_t half = left / 2;
    first += x < first[half - 1] ? 0 : half;
    left -= half;
  }
  return static_cast<int32_t>(first - boundaries.data()) + (x < *first ? 0 : 1);
}

template <class T>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const std::span<const float> from = Boundaries(op);
  return MakeTypedUnaryMap<T, int32_t>(
      op, [boundaries = std::vector<float>(from.begin(), from.end())](T x) {
        return CountNotAbove(std::span<const float>(boundaries), x);
      });
}

}  // namespace

std::span<const float> Boundaries(const OpDescription& op) {
  const FloatList& list = op.params.as<BucketizeParams>().boundaries;
  return {list.values, static_cast<size_t>(list.count)};
}

Result<std::unique_ptr<Kernel>> BuildBucketizeReference(const OpDescription& op,
                                                        const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind BUCKETIZE");
  switch (op.inputs[0].type) {
    case DataType::kFloat64: return BuildOf<double>(op);
    case DataType::kInt32: return BuildOf<int32_t>(op);
    case DataType::kInt64: return BuildOf<int64_t>(op);
    default: return BuildOf<float>(op);
  }
}

namespace {

constexpr Candidate kCandidates[] = {{"highway", BuildBucketizeHighway},
                                     {"reference", BuildBucketizeReference}};

}  // namespace

const OperatorDef& BucketizeOperator() {
  static constexpr OperatorDef kDef = {
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
