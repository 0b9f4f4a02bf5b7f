// Any operator of the table with parameters, types and shapes that are drawn: mostly such as fit,
// sometimes such as nothing fits.
#pragma once

#include <vector>

#include "kernels/operator.h"
#include "tests/kernels/random.h"

namespace fuselite::fuzz {

using kernels::testing::Random;

struct RandomOperation {
  const kernels::OperatorDef* op = nullptr;
  kernels::Params params;
  std::vector<TensorInfo> inputs;              // without bytes; absent where an operand is left out
  std::vector<bool> constant;                  // whether the model has the value
  std::vector<std::vector<std::byte>> values;  // of each input that needs some; empty: any
  std::vector<TensorInfo> outputs;

  // What input `input` holds: its values, or any.
  std::vector<std::byte> DrawValuesOf(size_t input, Random& random) const;
};

// `op`: an operator that has kernels. Tensors have at most a few thousand elements.
RandomOperation DrawOperation(const kernels::OperatorDef& op, Random& random);
// The operators that DrawOperation() takes, always in the same order.
std::span<const kernels::OperatorDef* const> DrawableOperators();

// The operator's parameters, some of them as they are by default.
kernels::Params DrawParams(const kernels::OperatorDef& op, Random& random);

// Bytes for a tensor: numbers near zero, indices, here and there what floats have besides numbers.
std::vector<std::byte> DrawValues(const TensorInfo& info, Random& random);

}  // namespace fuselite::fuzz
