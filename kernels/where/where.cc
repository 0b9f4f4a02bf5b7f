#include "kernels/where/where.h"

#include <algorithm>
#include <array>

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

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

  // kRank: that of the shape, or 0 for any. Coordinates are short: copied by a call they take twice
  // as long.
  template <class T, int kRank>
  Status Store(const void* in, int64_t* out) const {
    constexpr int64_t kChunk = 256;
    const int rank = kRank > 0 ? kRank : shape.rank();
    const int64_t elements = shape.elements();
    int inner = rank - 1;  // dimensions of one element behind it change nothing
    while (inner > 0 && shape[inner] == 1) --inner;
    const int64_t width = shape[inner];
    std::array<int64_t, Shape::kMaxRank> row{};  // the coordinates but those from `inner` on
    int64_t found = 0, row_begin = 0;
    for (int64_t first = 0; first < elements; first += kChunk) {
      // The places in a chunk first, without a branch that random values would mislead.
      int16_t places[kChunk];
      int64_t in_chunk = 0;
      const int64_t end = std::min(elements - first, kChunk);
      for (int64_t i = 0; i < end; ++i) {
        places[in_chunk] = static_cast<int16_t>(i);
        in_chunk += LoadUnaligned<T>(in, first + i) != 0;
      }
      if (in_chunk > count - found) {
        return InvalidArgument("more elements are true than were counted");
      }
      for (int64_t i = 0; i < in_chunk; ++i, out += rank) {
        const int64_t place = first + places[i];
        if (place - row_begin >= width) {
          const int64_t rows = (place - row_begin) / width;
          Advance(inner - 1, rows, &row);
          row_begin += rows * width;
        }
        std::copy_n(row.begin(), rank - 1, out);
        out[rank - 1] = 0;
        out[inner] = place - row_begin;
      }
      found += in_chunk;
    }
    if (found != count) return InvalidArgument("fewer elements are true than were counted");
    return Status();
  }

 private:
  // Moves `index` on by `count` in dimension d, which carries over to those before it.
  void Advance(int d, int64_t count, std::array<int64_t, Shape::kMaxRank>* index) const {
    for (; d >= 0 && count > 0; --d) {
      int64_t& at = (*index)[d];
      at += count;
      count = at < shape[d] ? 0 : at / shape[d];
      at -= count * shape[d];
    }
  }
};

template <class T, int kRank>
std::unique_ptr<Kernel> MakeWhere(const TrueElements& elements) {
  return MakeKernel("where", {}, [elements](const KernelArgs& args, int64_t, int64_t) -> Status {
    return elements.Store<T, kRank>(args.inputs[0], static_cast<int64_t*>(args.outputs[0]));
  });
}

constexpr Candidate kCandidates[] = {{"reference", BuildWhere}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildWhere(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("WHERE takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const TrueElements elements{op.inputs[0].shape, op.outputs[0].shape[0]};
  return OfType(op.inputs[0].type, [&]<class T>(T /*zero*/) {
    switch (elements.shape.rank()) {
      case 1: return MakeWhere<T, 1>(elements);
      case 2: return MakeWhere<T, 2>(elements);
      case 3: return MakeWhere<T, 3>(elements);
      case 4: return MakeWhere<T, 4>(elements);
      default: return MakeWhere<T, 0>(elements);
    }
  });
}

const OperatorDef& WhereOperator() {
  static constexpr OperatorDef kDef = {
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
