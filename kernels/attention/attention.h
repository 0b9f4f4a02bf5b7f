// FUSELITE_ATTENTION: softmax(scale Q K^T + mask) V in one step, so that the scores of a few
// queries stay in the cache instead of all going through memory. Made by rewrites only.
#pragma once

#include "kernels/elementwise/as_tail.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

struct AttentionParams {
  float scale;        // of the scores, before the mask
  bool keys_by_rows;  // K is [..., N, K], else [..., K, N]
};

// Inputs Q [..., M, K], K, V [..., N, D] and, optionally, an additive mask that broadcasts to the
// scores [..., M, N] (in a way that AsTailOperand can say); the leading dimensions of Q, K and V
// are the same. Output [..., M, D]. float32, K and V dense.
struct AttentionShape {
  int64_t heads = 1;                                     // the product of the leading dimensions
  int64_t queries = 0, keys = 0, depth = 0, values = 0;  // M, N, K, D
  bool masked = false;
  TailOperandUse mask{};  // where the mask's row for a row of scores lies
};

Result<AttentionShape> ResolveAttention(const OpDescription& op);

// One unit is one row of the output (reference), or a block of rows of one head.
Result<std::unique_ptr<Kernel>> BuildAttentionReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildAttentionHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
