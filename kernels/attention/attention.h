// FUSELITE_ATTENTION: softmax(scale Q K^T + masks) V in one step, so that the scores of a few
// queries stay in the cache instead of all going through memory. Made by rewrites, and of
// composites.
#pragma once

#include <array>
#include <cmath>

#include "kernels/elementwise/broadcast_rows.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

struct AttentionParams {
  float scale;                // of the scores, before the masks
  bool by_roots = false;      // queries and keys are each multiplied by its root instead
  bool keys_by_rows = false;  // K is [..., N, K], else [..., K, N]
  // The operands are [batch, row, head, channel], as decoders keep their caches, else
  // [..., row, channel].
  bool heads_inside = false;
  float logit_cap = 0;  // above 0: scores become cap * tanh(score / cap) before the masks
  // A query from which the last mask hides all keys has an output of zeros. Else it has the mean of
  // all values, in so far as its scores round off against kHiddenScore.
  bool hidden_is_zero = false;
  int32_t heads = 1;  // of queries [batch, row, head * channel]

  // What queries and keys, and what scores are multiplied by.
  float operand_scale() const { return by_roots ? std::sqrt(scale) : 1.0f; }
  float score_scale() const { return by_roots ? 1.0f : scale; }
};

// Inputs Q [..., M, K], K, V [..., N, D] and up to two additive masks, which broadcast to the
// scores [..., M, N] and are added one after the other; the leading dimensions of Q, K and V are
// the same, but for the innermost one, the heads: H of Q, G of K and V, where each run of H / G
// heads shares keys and values (grouped queries). Output [..., M, D].
//
// With heads inside: Q [B, M, H, K], K [B, N, G, K], V [B, N, G, D]. Masks broadcast to
// [B, H, M, N]. Output [B, M, H, D]. Instead, all three may have the channels of all heads in one
// row, as layers give them: [B, M, H K], [B, N, G K], [B, N, G D].
//
// float32; K and V may both be int8 with one scale each, as 8-bit caches are: they count as what
// DEQUANTIZE makes of them. Rows may be pitched.
struct AttentionShape {
  int64_t batches = 1, heads = 1, key_heads = 1;
  int64_t queries = 0, keys = 0, depth = 0, values = 0;  // M, N, K, D

  // Row (batch, head, query) of the output, counted in its innermost rows.
  int64_t head_rows = 0, query_rows = 1;
  int64_t Row(int64_t batch, int64_t head, int64_t query) const {
    return batch * heads * queries + head * head_rows + query * query_rows;
  }
  int64_t group() const { return heads / key_heads; }

  // Steps count values, from one batch, head, row (a query or a key) and channel to the next.
  struct Steps {
    int64_t batch = 0, head = 0, row = 0, channel = 1;
    int64_t At(int64_t b, int64_t h) const { return b * batch + h * head; }
  };
  Steps q{}, k{}, v{};

  // How keys and values that are bytes become floats: scale * (x - zero_point).
  struct Scaled {
    float scale = 1;
    int32_t zero_point = 0;
  };
  bool bytes = false;
  Scaled k_scale{}, v_scale{};

  // Masks are the inputs from kFirstMask on.
  static constexpr int kFirstMask = 3, kMaxMasks = 2;
  int mask_count = 0;
  std::array<BroadcastRows, kMaxMasks> masks{};  // to the scores
  const float* MaskRow(const KernelArgs& args, int mask, int64_t batch, int64_t head,
                       int64_t query) const {
    const int64_t row = (batch * heads + head) * queries + query;
    return static_cast<const float*>(args.inputs[kFirstMask + mask]) + masks[mask].At(row);
  }
};

Result<AttentionShape> ResolveAttention(const OpDescription& op);

// What masks add to scores that are not to count: converters write minus infinity, the smallest
// float or -1e9. Fast versions leave out the keys behind the last one that any query of theirs
// sees, as the rest of a cache is: their weights are zero while scores stay below this size.
inline constexpr float kHiddenScore = -1e9f;

// One unit is one row of the output (reference), or a block of rows of one head.
Result<std::unique_ptr<Kernel>> BuildAttentionReference(const OpDescription&, const BuildContext&);
Result<std::unique_ptr<Kernel>> BuildAttentionHighway(const OpDescription&, const BuildContext&);
// For so few queries of each head of keys that packing keys and values would not be repaid: those
// of a decoder's next token. One unit is one head of keys.
Result<std::unique_ptr<Kernel>> BuildAttentionFewRows(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
