// TOPK_V2: (input, k) -> values, indices: the k largest values of each row and where they are,
// descending, the first of equal values first, NaNs last. One unit is one row.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/simd.h"
#include "kernels/top_k/next_above.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {
    {{DataType::kFloat32}, DataType::kFloat32}, {{DataType::kInt8}, DataType::kInt8},
    {{DataType::kUInt8}, DataType::kUInt8},     {{DataType::kInt16}, DataType::kInt16},
    {{DataType::kInt32}, DataType::kInt32},     {{DataType::kInt64}, DataType::kInt64},
};

Status InferTopK(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  if (in.shape.rank() < 1) return InvalidArgument("the input is a scalar");
  DataType positions = op.outputs[1].type;
  if (positions == DataType::kNone) positions = DataType::kInt32;
  if (positions != DataType::kInt32 && positions != DataType::kInt16) {
    return Unsupported("does not take positions of type ", DataTypeName(positions));
  }
  FUSELITE_ASSIGN_OR_RETURN(const int64_t k,
                            ReadInteger(op.inputs[1], "k", IntegerTypes::kInt16Or32));
  if (k > in.shape.dim(-1)) {
    return InvalidArgument("the ", k, " largest of ", in.shape.dim(-1), " values");
  }
  if (positions == DataType::kInt16 && in.shape.dim(-1) > std::numeric_limits<int16_t>::max()) {
    return InvalidArgument("int16 positions in rows of ", in.shape.dim(-1));
  }
  Shape shape = in.shape;
  shape.set(shape.rank() - 1, static_cast<int32_t>(std::max<int64_t>(k, 0)));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, in.type, shape));
  return SetOutput(op, 1, positions, shape);
}

// What is ordered as the values are, zeros of both signs being one; a NaN is below all.
template <class T>
int32_t Rank(T value) {
  if constexpr (std::is_integral_v<T>) return value;
  if (std::isnan(value)) return std::numeric_limits<int32_t>::min();
  const auto bits = std::bit_cast<int32_t>(static_cast<float>(value) + 0.0f);
  return bits < 0 ? bits ^ std::numeric_limits<int32_t>::max() : bits;
}

// Puts `key` in the place of the least key of a heap whose first key that is.
template <class Key, class Greater>
void ReplaceLeast(Key* heap, int64_t size, Key key, Greater greater) {
  int64_t hole = 0;
  for (int64_t child = 1; child < size; child = 2 * hole + 1) {
    if (child + 1 < size && greater(heap[child], heap[child + 1])) ++child;
    if (!greater(key, heap[child])) break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = key;
}

// Fills `keys`, of `size`, so that its first `k` are the largest of `key_of(0 … size-1)` in
// descending order. `position_of(key_of(i))` is i. Of equal values in the row, the first has the
// greatest key.
template <class T, class Key, class KeyOf, class PositionOf, class Greater>
void TakeLargest(const T* row, int64_t size, int64_t k, NextAboveFunction<T>* next_above, Key* keys,
                 KeyOf key_of, PositionOf position_of, Greater greater) {
  if (8 * k > size) {
    for (int64_t i = 0; i < size; ++i) keys[i] = key_of(i);
    if (k < size) std::nth_element(keys, keys + k, keys + size, greater);
    return std::sort(keys, keys + k, greater);
  }
  if (k == 0) return;
  // A heap of the largest so far; what is not above its least value is passed over.
  for (int64_t i = 0; i < k; ++i) keys[i] = key_of(i);
  std::make_heap(keys, keys + k, greater);
  T least = row[position_of(keys[0])];
  for (int64_t i = k; (i = next_above(row, i, size, least)) < size; ++i) {
    const Key key = key_of(i);
    if (!greater(key, keys[0])) continue;
    ReplaceLeast(keys, k, key, greater);
    least = row[position_of(keys[0])];
  }
  std::sort_heap(keys, keys + k, greater);
}

// A value's rank and its position make one number, which sorts without looking up what a position
// stands for.
template <class T>
struct RankAndPosition {
  using Key = int64_t;
  static constexpr int64_t kLast = std::numeric_limits<uint32_t>::max();

  static Key Of(T value, int64_t position) {
    return int64_t{Rank(value)} * (kLast + 1) + (kLast - position);
  }
  static int64_t Position(Key key) { return kLast - (key & kLast); }
  static bool IsGreater(Key a, Key b) { return a > b; }
};

// An int64 leaves no room for its position.
template <>
struct RankAndPosition<int64_t> {
  struct Key {
    int64_t value, position;
  };

  static Key Of(int64_t value, int64_t position) { return {value, position}; }
  static int64_t Position(Key key) { return key.position; }
  static bool IsGreater(Key a, Key b) {
    return a.value != b.value ? a.value > b.value : a.position < b.position;
  }
};

// Positions of the `k` largest, the lower one first where values are equal. `keys`: of `size`.
template <class T, class Position>
void TopRow(const T* row, int64_t size, int64_t k, NextAboveFunction<T>* next_above,
            typename RankAndPosition<T>::Key* keys, T* values, Position* indices) {
  using Keys = RankAndPosition<T>;
  using Key = typename Keys::Key;
  TakeLargest(
      row, size, k, next_above, keys, [row](int64_t i) { return Keys::Of(row[i], i); },
      [](const Key& key) { return Keys::Position(key); },
      [](const Key& a, const Key& b) { return Keys::IsGreater(a, b); });
  for (int64_t i = 0; i < k; ++i) {
    const int64_t position = Keys::Position(keys[i]);
    values[i] = row[position];
    indices[i] = static_cast<Position>(position);
  }
}

struct TopKForm {
  const OpDescription& op;
  std::string_view target;
  const NextAboveFunctions& next_above;
};

template <class T, class Position>
std::unique_ptr<Kernel> MakeTopKOf(const TopKForm& form) {
  using Key = typename RankAndPosition<T>::Key;
  const OpDescription& op = form.op;
  const int64_t size = op.inputs[0].shape.dim(-1);
  const int64_t k = op.outputs[0].shape.dim(-1);
  auto* const next_above = std::get<NextAboveFunction<T>*>(form.next_above);
  return MakeKernel(internal::Join("topk ", DataTypeName(op.inputs[0].type), " ", form.target),
                    {.units = k ? op.inputs[0].elements() / size : 0,
                     .grain = GrainFor(4 * size),
                     .scratch_bytes = static_cast<size_t>(size) * sizeof(Key)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        TopRow(static_cast<const T*>(args.inputs[0]) + row * size, size, k,
                               next_above, reinterpret_cast<Key*>(args.scratch),
                               static_cast<T*>(args.outputs[0]) + row * k,
                               static_cast<Position*>(args.outputs[1]) + row * k);
                      }
                    });
}

template <class T>
std::unique_ptr<Kernel> MakeTopK(const TopKForm& form) {
  return form.op.outputs[1].type == DataType::kInt16 ? MakeTopKOf<T, int16_t>(form)
                                                     : MakeTopKOf<T, int32_t>(form);
}

Result<std::unique_ptr<Kernel>> BuildWith(const TopKForm& form) {
  if (!form.op.tail.empty()) return Unsupported("TOPK_V2 takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(form.op));
  switch (form.op.inputs[0].type) {
    case DataType::kFloat32: return MakeTopK<float>(form);
    case DataType::kInt8: return MakeTopK<int8_t>(form);
    case DataType::kUInt8: return MakeTopK<uint8_t>(form);
    case DataType::kInt16: return MakeTopK<int16_t>(form);
    case DataType::kInt32: return MakeTopK<int32_t>(form);
    default: return MakeTopK<int64_t>(form);
  }
}

Result<std::unique_ptr<Kernel>> BuildReference(const OpDescription& op, const BuildContext&) {
  return BuildWith({op, "reference", PlainNextAbove()});
}

Result<std::unique_ptr<Kernel>> BuildHighway(const OpDescription& op, const BuildContext& context) {
  const NextAboveFunctions* const next_above = FindNextAbove(context.isa);
  if (next_above == nullptr) return NoVectorTarget(context.isa);
  return BuildWith({op, SimdName(context.isa), *next_above});
}

constexpr Candidate kCandidates[] = {{"highway", BuildHighway}, {"reference", BuildReference}};

}  // namespace

const OperatorDef& TopKOperator() {
  static constexpr OperatorDef kDef = {
      .name = "TOPK_V2",
      .builtin_code = tflite::kTfLiteBuiltinTopkV2,
      .options_type = 34,
      .max_version = 3,
      .min_inputs = 2,
      .max_inputs = 2,
      .min_outputs = 2,
      .max_outputs = 2,
      .types = kTypes,
      .limits = "rank 1 or more; int16 and int32 positions",
      .infer = InferTopK,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 4.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
