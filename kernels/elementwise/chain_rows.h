// The innermost part of a float32 elementwise chain: rows of values through all stages in
// registers. Whoever emits it implements this interface; kernels/elementwise/chain_kernel.h does
// everything around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/tail/operands.h"
#include "runtime/support/status.h"

namespace fuselite::kernels {

struct ChainRowsSpec {
  int64_t in_step = 0, out_step = 0;       // bytes between rows
  bool bf16_in = false, bf16_out = false;  // bfloat16 in memory
  Tail tail;                               // all of it is computed
};

// Loads values, applies the stages and stores them, `rows` rows of one length one after the other.
// `out` may be `in`. Nothing outside of the rows is read or written.
struct ChainRowsArgs {
  const std::byte* in;
  std::byte* out;
  int64_t rows;
  TailSlots operands;  // at the first row and channel
};

class ChainRows {
 public:
  virtual ~ChainRows() = default;

  virtual std::string target() const = 0;  // "avx512 jit"
  virtual int lanes() const = 0;           // of a vector

  // kUnsupported, with the reason, for what Emit does not take.
  virtual Status Check(const ChainRowsSpec& spec) const = 0;
  // These rows with the code that Run calls: for rows of lengths[i] channels, which is 1 at least.
  virtual Result<std::shared_ptr<const ChainRows>> Emit(const ChainRowsSpec& spec,
                                                        std::span<const int64_t> lengths,
                                                        const std::string& name) const = 0;
  // Rows of lengths[i] channels. The arguments are consumed.
  virtual void Run(size_t i, ChainRowsArgs* args) const = 0;
};

}  // namespace fuselite::kernels
