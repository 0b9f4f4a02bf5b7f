// The inner function of float32 elementwise chains: rows of a constant length through all stages in
// registers.
#pragma once

#include <string>
#include <vector>

#include "jit/code/assembler.h"
#include "jit/tail/tail_emitter.h"

namespace fuselite::jit {

struct ElementwiseSpec {
  Isa isa = Isa::kAvx2;
  int64_t in_step = 0;  // bytes between rows
  int64_t out_step = 0;
  kernels::Tail tail;  // emitted wholly
};

// Loads values, applies the stages and stores them, `rows` rows of the entry's length one after the
// other. `out` may be `in`. Nothing outside of the rows is read or written.
struct ElementwiseArgs {
  const std::byte* in;
  std::byte* out;
  int64_t rows;
  TailSlots operands;  // at the first row and channel
};
using ElementwiseFunction = void(ElementwiseArgs* args);  // the arguments are consumed

// kUnsupported where strides do not fit instructions.
Status CheckElementwise(const ElementwiseSpec& spec);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const ElementwiseSpec& spec, const std::vector<int64_t>& lengths);
// Entry i computes rows of lengths[i] channels, which is 1 at least. Precondition:
// CheckElementwise(spec).
Result<SharedCode> EmitElementwise(const ElementwiseSpec& spec, const std::vector<int64_t>& lengths,
                                   const std::string& name);

}  // namespace fuselite::jit
