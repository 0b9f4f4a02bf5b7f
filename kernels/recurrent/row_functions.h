// What the kernels of RNN and SVDF compute of rows, for one target.
#pragma once

#include "kernels/gemm/short_rows.h"
#include "kernels/recurrent/row_products.h"
#include "kernels/simd.h"

namespace fuselite::kernels {

// The memory of SVDF's filters: sums[f] = sum over m of times[f][m] * state[f][m], f < filters,
// m < memory; times of int8 are multiplied by `scale` each.
struct FilterMemory {
  const void* times;  // float, or int8
  const float* state;
  int64_t filters, memory;
  float scale;  // of int8
  float* sums;
};

struct RecurrentFunctions {
  UnpackedFunctions products;
  const ShortRowFunctions* short_rows;  // null: scalar ones
  void (*activate)(Activation activation, float* values, int64_t n);
  void (*remember_floats)(const FilterMemory& memory);
  void (*remember_bytes)(const FilterMemory& memory);

  // PrepareRow with these functions; without vectors, PrepareRow itself.
  RowOperand Prepare(const float* values, int64_t n, bool asymmetric, int16_t* quantized) const;
};

// The functions with vectors of `isa`; refused below SSSE3.
Result<RecurrentFunctions> FindRecurrentFunctions(Isa isa);
// The reference: sums in order, the C library's functions.
RecurrentFunctions ScalarRecurrentFunctions();

// The two candidates of an operator that is computed row by row: build(functions, "reference" or
// the vectors' name, op).
using BuildOfRows = Result<std::unique_ptr<Kernel>>(const RecurrentFunctions& functions,
                                                    const std::string& target,
                                                    const OpDescription& op);
template <BuildOfRows* kBuild>
Result<std::unique_ptr<Kernel>> BuildWithVectors(const OpDescription& op,
                                                 const BuildContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const RecurrentFunctions functions,
                            FindRecurrentFunctions(context.isa));
  return kBuild(functions, SimdName(context.isa), op);
}
template <BuildOfRows* kBuild>
Result<std::unique_ptr<Kernel>> BuildReference(const OpDescription& op, const BuildContext&) {
  return kBuild(ScalarRecurrentFunctions(), "reference", op);
}

}  // namespace fuselite::kernels
