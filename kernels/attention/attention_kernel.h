// Attention a block of queries of one head at a time, over whatever computes its matrix products.
#pragma once

#include <memory>

#include "kernels/attention/attention.h"
#include "kernels/attention/block.h"
#include "kernels/gemm/gemm_f32.h"

namespace fuselite::kernels {

// The two products of attention, scores [rows, N] and means [rows, D], whose right sides, the keys
// and values of a head, are packed once per run, panel by panel.
class AttentionProducts {
 public:
  virtual ~AttentionProducts() = default;

  virtual std::string name() const = 0;    // the kernel's: "attention f32 avx512"
  virtual int64_t block_rows() const = 0;  // most rows of a block, AttentionBlock::kMaxRows
  virtual bool repeats_rows() const = 0;   // blocks have as many; the last one begins earlier
  virtual int64_t score_pitch(int64_t keys) const = 0;  // of a block that sees so many keys
  virtual size_t scratch_bytes() const = 0;             // of Score() and Mean()

  virtual int64_t key_panels() const = 0;
  virtual int64_t value_panels() const = 0;
  virtual size_t key_bytes() const = 0;  // of a head's panels, aligned
  virtual size_t value_bytes() const = 0;
  // Panel `panel` of a head's keys, each multiplied by `factor`, and of its values; nothing where
  // keys.columns, as many as are seen, do not reach it. `packed` is panel 0's place.
  virtual void PackKeys(const GemmSource& keys, float factor, int64_t panel,
                        std::byte* packed) const = 0;
  virtual void PackValues(const GemmSource& values, int64_t panel, std::byte* packed) const = 0;

  // Queries are dense values, `pitch` values from one to the next.
  virtual void Score(const float* queries, int64_t pitch, const AttentionBlock& block,
                     const std::byte* keys, std::byte* scratch) const = 0;
  // Means of block.scores' rows, which follow each other; other scores are clobbered.
  virtual void Mean(const AttentionBlock& block, const std::byte* values, std::byte* scratch,
                    float* means) const = 0;
};

// What scales, masks and weighs is of `isa`. kUnsupported below SSSE3, and for keys of bytes by
// columns.
Result<std::unique_ptr<Kernel>> MakeAttentionKernel(
    const OpDescription& op, Isa isa, std::shared_ptr<const AttentionProducts> products);

}  // namespace fuselite::kernels
