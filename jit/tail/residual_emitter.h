// A quantized residual (TailStage::kQuantizedAdd) added or subtracted in registers, between the
// requantization and the store of integer_tail_emitter.h.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "jit/tail/integer_tail_emitter.h"

namespace fuselite::jit {

struct Residual {
  kernels::QuantizedAdd add;
  int32_t min = 0, max = 0;  // of the requantization before it, less its store_offset
  bool is_unsigned = false;
  kernels::TailOperand operand;

  std::string key() const;
};

// Takes the residual off the front of `tail`, which follows `requantization`: the sum's range
// becomes that of the requantization, which is what is stored. nullopt where it has no emitter, or
// where rows are not at constant steps. `whole_vectors`: no group of sums ends within a vector.
std::optional<Residual> TakeResidual(kernels::Tail* tail, const VectorIsa& isa, bool whole_vectors,
                                     Requantization* requantization);

class ResidualEmitter {
 public:
  // `t0`, `t1`, `y`: vector registers, clobbered. IntegerTailEmitter::Prepare has run.
  ResidualEmitter(Assembler& assembler, const Residual& residual, int t0, int t1, int y)
      : a_(assembler), residual_(residual), t0_(t0), t1_(t1), y_(y) {}

  // On a group of values that are not clamped yet. `address` is that of the operand's element for
  // the group's first channel; the first `bytes` elements are read.
  void Emit(std::span<const int> regs, int width, const Xbyak::RegExp& address, int bytes);

 private:
  void Load(int group, int v, int width, const Xbyak::RegExp& address, bool partial);
  // v = (v + offset) * 2^left_shift scaled, with `zero_point` added.
  void Scale(int v, int width, int left, int32_t multiplier, int32_t shift, int32_t zero_point);

  Assembler& a_;
  const Residual& residual_;
  int t0_, t1_, y_;
};

}  // namespace fuselite::jit
