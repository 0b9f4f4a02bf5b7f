// Operands that fit one another: axes within the rank, sizes and permutations of as many elements
// as there are dimensions, which chance alone seldom gives.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"
#include "tests/kernels/random.h"

namespace fuselite::fuzz {

using kernels::testing::Random;

struct FittingOperand {
  TensorInfo info;
  std::vector<std::byte> values;  // empty: any
};

// The rank that operator `name` wants of the tensor that its other operands are drawn for; 0: any.
int FittingRank(std::string_view name);

// Operand `index` of operator `name`, which goes with a tensor of shape `first`. `type` is what the
// operator takes there, if the operand's role leaves that open; numbers are int32 or int64.
// nullopt: nothing is known of it, and any operand may be drawn.
std::optional<FittingOperand> DrawFittingOperand(std::string_view name, size_t index, DataType type,
                                                 const Shape& first, Random& random);

}  // namespace fuselite::fuzz
