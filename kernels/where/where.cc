#include "kernels/where/where.h"

#include <algorithm>
#include <array>

#include "kernels/make_kernel.h"
#include "kernels/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kI64 = DataType::kInt64;
constexpr TypeRow kTypes[] = {
    {{DataType::kBool}, kI64},
    {{DataType::kFloat32}, kI64},
    {{DataType::kInt8}, kI64},
    {{DataType::kUInt8}, kI64},
    {{DataType::kInt32}, kI64},
    {{DataType::kUInt32}, kI64},
    {{kI64}, kI64},
};

// f of a value of the type that tells truth: that of the element, or an integer of its width.
template <class F>
auto OfType(DataType type, F f) {
  switch (BitWidth(type)) {
    case 8: return f(uint8_t{});
    case 64: return f(uint64_t{});
    default: return type == DataType::kFloat32 ? f(float{}) : f(uint32_t{});  // -0 is 0
  }
}

int64_t CountTrue(const TensorInfo& in) {
  return OfType(in.type, [&]<class T>(T /*zero*/) {
    const int64_t elements = in.elements();
    int64_t count = 0;
    for (int64_t i = 0; i < elements; ++i) count += LoadUnaligned<T>(in.data, i) != 0;
    return count;
  });
}

Status InferWhere(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() < 1) return Unsupported("the condition is a scalar");
  if (!in.constant() && in.elements() > 0) {
    return DynamicShape("the number of true elements is known at run time only");
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({CountTrue(in), in.shape.rank()}));
  return SetOutput(op, 0, kI64, shape);
}

// Where the true elements of `shape` are, of which there should be `count`.
struct TrueElements {
  Shape shape;
  int64_t count;

  template <class T>
  Status Store(const void* in, int64_t* out) const {
    constexpr int64_t kChunk = 256;
    const int last = shape.rank() - 1;
    const int64_t width = shape[last], rows = width == 0 ? 0 : shape.elements() / width;
    std::array<int64_t, Shape::kMaxRank> index{};
    int64_t found = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t first = 0; first < width; first += kChunk) {
        // The places in a chunk first, without a branch that random values would mislead.
        int32_t places[kChunk];
        int64_t in_chunk = 0;
        for (int64_t i = first; i < std::min(width, first + kChunk); ++i) {
          places[in_chunk] = static_cast<int32_t>(i);
          in_chunk += LoadUnaligned<T>(in, row * width + i) != 0;
        }
        if (found + in_chunk > count) {
          return InvalidArgument("more elements are true than were counted");
        }
        for (int64_t i = 0; i < in_chunk; ++i) {
          for (int d = 0; d < last; ++d) *out++ = index[d];
          *out++ = places[i];
        }
        found += in_chunk;
      }
      for (int d = last - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
    }
    if (found != count) return InvalidArgument("fewer elements are true than were counted");
    return Status();
  }
};

constexpr Candidate kCandidates[] = {{"reference", BuildWhere}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildWhere(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("WHERE takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const TrueElements elements{op.inputs[0].shape, op.outputs[0].shape[0]};
  return OfType(op.inputs[0].type, [&]<class T>(T /*zero*/) {
    return MakeKernel("where", {}, [elements](const KernelArgs& args, int64_t, int64_t) -> Status {
      return elements.Store<T>(args.inputs[0], static_cast<int64_t*>(args.outputs[0]));
    });
  });
}

const OperatorDef& WhereOperator() {
  static const OperatorDef kDef = {
      .name = "WHERE",
      .builtin_code = tflite::kTfLiteBuiltinWhere,
      .options_type = 85,
      .max_version = 2,
      .types = kTypes,
      .limits = "rank 1 or more; one operand",
      .infer = InferWhere,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
