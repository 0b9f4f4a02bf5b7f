// The inner function of float32 elementwise chains: rows of a constant length through all stages in
// registers.
#pragma once

#include <span>
#include <string>

#include "jit/code/assembler.h"
#include "kernels/elementwise/chain_rows.h"

namespace fuselite::jit {

struct ElementwiseSpec {
  Isa isa = Isa::kAvx2;
  kernels::ChainRowsSpec rows;
};
using ElementwiseFunction = void(kernels::ChainRowsArgs* args);

// kUnsupported where strides do not fit instructions.
Status CheckElementwise(const ElementwiseSpec& spec);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const ElementwiseSpec& spec, std::span<const int64_t> lengths);
// Entry i computes rows of lengths[i] channels, which is 1 at least. Precondition:
// CheckElementwise(spec).
Result<SharedCode> EmitElementwise(const ElementwiseSpec& spec, std::span<const int64_t> lengths,
                                   const std::string& name);

}  // namespace fuselite::jit
