// What shape rules have in common: reading constant operands, axes, setting outputs.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

// One value from memory of any alignment.
template <class T>
T LoadUnaligned(const void* base, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + index * sizeof(T), sizeof(T));
  return value;
}

// An int16, int32 or int64 at `index`.
inline int64_t LoadIndex(DataType type, const void* base, int64_t index) {
  if (type == DataType::kInt16) return LoadUnaligned<int16_t>(base, index);
  return type == DataType::kInt64 ? LoadUnaligned<int64_t>(base, index)
                                  : LoadUnaligned<int32_t>(base, index);
}

// Which types TFLite takes for an operand of integers. Where it does not look and reads int32, what
// it would read amiss is refused.
enum class IntegerTypes : uint8_t { kInt32, kInt32Or64, kInt16Or32, kSigned };

// The values of a constant operand; kDynamicShape where it has no value yet. Another type is
// refused all the same. `what` names it in messages: "the axis".
Result<std::vector<int64_t>> ReadIntegers(const TensorInfo& info, std::string_view what,
                                          IntegerTypes types);
// As ReadIntegers(), for an operand of one element.
Result<int64_t> ReadInteger(const TensorInfo& info, std::string_view what, IntegerTypes types);

// `axis` counted from the front; negative ones count from the back. 0 <= result < rank.
Result<int> ResolveAxis(int64_t axis, int rank);

// A shape from 64-bit dimensions; refuses ranks above Shape::kMaxRank, negative and overflowing
// sizes.
Result<Shape> MakeShape(const std::vector<int64_t>& dims);

// Fails where the model states another type for output `i`. For rules that read values: what
// SetOutput asks must be known before a node is taken whose values only a run tells.
Status RequireOutputType(const OpDescription& op, size_t i, DataType type);

// Sets type and shape of output `i`; fails where the model states another type.
Status SetOutput(OpDescription& op, size_t i, DataType type, const Shape& shape);

// What moves values as they are cannot change their scale or zero point: TFLite refuses that.
Status RequireSameQuantization(const TensorInfo& from, const TensorInfo& to);
// As RequireSameQuantization(), for operators that also want int16 to have zero point 0.
Status RequireKeptQuantization(const TensorInfo& from, const TensorInfo& to);

// Whether rows follow each other without gaps.
bool IsDense(const TensorInfo& info);
// kUnsupported where any operand's rows are pitched.
Status RequireDense(const OpDescription& op);
// As RequireDense(), for the named inputs alone, where the operator has them: weights and biases
// known only at run time, which a split or slice may have made.
Status RequireDenseInputs(const OpDescription& op, std::initializer_list<size_t> inputs);

// Bytes of an element that data movement takes, or why it does not (int4, strings).
Result<int> ElementBytes(DataType type);
// kUnsupported for elements without a size: strings.
Status RequireSized(DataType type);
// kUnsupported for elements of 16 bytes (complex128), for which the host's kernels that choose a
// loop by the size of an element have none.
Status RequireAtMost8Bytes(DataType type);

}  // namespace fuselite::kernels
