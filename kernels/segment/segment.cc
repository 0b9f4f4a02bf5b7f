// SEGMENT_SUM and UNSORTED_SEGMENT_SUM, PROD, MAX and MIN: the slices of data that share a segment
// id, combined in their order.
//
// SEGMENT_SUM takes (data, ids): the ids of dimension 0, which start at 0 and do not leave any out.
// The others take (data, ids, number of segments): the ids of the outermost dimensions, in any
// order; slices of negative ids are left out, segments without slices hold the neutral element.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32;
constexpr TypeRow kTypes[] = {{{kF32, kI32, kI32}, kF32}, {{kI32, kI32, kI32}, kI32}};

Status InferSegmentSum(OpDescription& op) {
  const Shape& data = op.inputs[0].shape;
  const Shape& ids = op.inputs[1].shape;
  if (data.rank() < 1 || ids.rank() != 1 || ids[0] != data[0]) {
    return InvalidArgument("segment ids ", ids, " for data ", data);
  }
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                            ReadIntegers(op.inputs[1], "the segment ids", IntegerTypes::kInt32));
  int64_t last = -1;
  for (const int64_t id : values) {
    if (id != last + 1 && (id != last || last < 0)) {
      return InvalidArgument("segment id ", id, " after ", last);
    }
    last = id;
  }
  Shape shape = data;
  shape.set(0, static_cast<int32_t>(last + 1));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

Status InferUnsorted(OpDescription& op) {
  const Shape& data = op.inputs[0].shape;
  const Shape& ids = op.inputs[1].shape;
  bool fits = ids.rank() <= data.rank();
  for (int d = 0; fits && d < ids.rank(); ++d) fits = ids[d] == data[d];
  if (!fits) return InvalidArgument("segment ids ", ids, " for data ", data);
  if (op.inputs[2].shape.rank() > 1) return InvalidArgument("several numbers of segments");
  FUSELITE_ASSIGN_OR_RETURN(
      const int64_t segments,
      ReadInteger(op.inputs[2], "the number of segments", IntegerTypes::kInt32));
  std::vector<int64_t> dims = {segments};
  for (int d = ids.rank(); d < data.rank(); ++d) dims.push_back(data[d]);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, op.inputs[0].type, shape);
}

// Integers wrap around.
template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, float>, float, uint32_t>;

struct SegmentSum {
  template <class T>
  static constexpr T kNeutral = 0;
  template <class T>
  static T Combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct SegmentProd {
  template <class T>
  static constexpr T kNeutral = 1;
  template <class T>
  static T Combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct SegmentMax {
  template <class T>
  static constexpr T kNeutral = std::numeric_limits<T>::lowest();
  template <class T>
  static T Combine(T a, T b) {
    return std::max(a, b);
  }
};
struct SegmentMin {
  template <class T>
  static constexpr T kNeutral = std::numeric_limits<T>::max();
  template <class T>
  static T Combine(T a, T b) {
    return std::min(a, b);
  }
};

// One unit: slices may meet in any segment.
template <class T, class F>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const Shape& out = op.outputs[0].shape;
  return MakeKernel(
      std::string(op.op->name) + " " + std::string(DataTypeName(op.inputs[0].type)), {},
      [slices = op.inputs[1].elements(), width = out.elements(1, out.rank()),
       segments = int64_t{out[0]}](const KernelArgs& args, int64_t, int64_t) -> Status {
        const auto* in = static_cast<const T*>(args.inputs[0]);
        auto* result = static_cast<T*>(args.outputs[0]);
        std::fill_n(result, segments * width, F::template kNeutral<T>);
        for (int64_t i = 0; i < slices; ++i) {
          const auto id = LoadUnaligned<int32_t>(args.inputs[1], i);
          if (id < 0) continue;
          if (id >= segments) {
            return InvalidArgument("segment id ", id, " is not below ", segments);
          }
          T* segment = result + id * width;
          for (int64_t k = 0; k < width; ++k) {
            segment[k] = F::Combine(segment[k], in[i * width + k]);
          }
        }
        return Status();
      });
}

template <class F>
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return op.inputs[0].type == kF32 ? BuildOf<float, F>(op) : BuildOf<int32_t, F>(op);
}

template <class F>
constexpr Candidate kCandidates[] = {{"reference", Build<F>}};

template <class F>
constexpr OperatorDef Make(std::string_view name, int code, int options_type) {
  OperatorDef def;
  def.name = name;
  def.builtin_code = code;
  def.options_type = options_type;
  def.min_inputs = def.max_inputs = 3;
  def.types = kTypes;
  def.limits = "rank 1 or more";
  def.infer = InferUnsorted;
  def.candidates = kCandidates<F>;
  def.cost = [](const OpDescription& op) { return static_cast<double>(op.inputs[0].elements()); };
  return def;
}

}  // namespace

const OperatorDef& SegmentSumOperator() {
  static constexpr OperatorDef kDef = [] {
    OperatorDef def = Make<SegmentSum>("SEGMENT_SUM", tflite::kTfLiteBuiltinSegmentSum, 100);
    def.min_inputs = def.max_inputs = 2;
    def.infer = InferSegmentSum;
    return def;
  }();
  return kDef;
}

const OperatorDef& UnsortedSegmentMaxOperator() {
  static constexpr OperatorDef kDef =
      Make<SegmentMax>("UNSORTED_SEGMENT_MAX", tflite::kTfLiteBuiltinUnsortedSegmentMax, 119);
  return kDef;
}

const OperatorDef& UnsortedSegmentMinOperator() {
  static constexpr OperatorDef kDef =
      Make<SegmentMin>("UNSORTED_SEGMENT_MIN", tflite::kTfLiteBuiltinUnsortedSegmentMin, 120);
  return kDef;
}

const OperatorDef& UnsortedSegmentProdOperator() {
  static constexpr OperatorDef kDef =
      Make<SegmentProd>("UNSORTED_SEGMENT_PROD", tflite::kTfLiteBuiltinUnsortedSegmentProd, 118);
  return kDef;
}

const OperatorDef& UnsortedSegmentSumOperator() {
  static constexpr OperatorDef kDef =
      Make<SegmentSum>("UNSORTED_SEGMENT_SUM", tflite::kTfLiteBuiltinUnsortedSegmentSum, 121);
  return kDef;
}

}  // namespace fuselite::kernels
