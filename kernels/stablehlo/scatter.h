// STABLEHLO_SCATTER: (operand, indices, updates): the operand, of whose elements some are combined
// with updates, in the order of the updates.
//
// The dimensions update_window_dims of the updates are a window's; the others name a vector of
// indices, along dimension index_vector_dim. Entry i of the vector is the window's place in
// dimension scatter_dims_to_operand_dims[i] of the operand; the window has no dimension
// inserted_window_dims of the operand, in which it is one element wide. What lies outside of the
// operand is left out. Which function combines, another subgraph says (kernels/stablehlo/region.h).
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

enum class ScatterFunction : int32_t { kUnknown, kUpdate, kAdd, kMultiply, kMinimum, kMaximum };

struct ScatterParams {
  int32_t subgraph;
  ScatterFunction function;
  IntList window_dims, inserted_dims, index_map;
  int64_t index_vector_dim;
  bool indices_are_sorted, unique_indices;
};

}  // namespace fuselite::kernels
