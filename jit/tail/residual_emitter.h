// Quantized residuals (TailStage::kQuantizedAdd) added or subtracted in registers, between the
// requantization and the store of integer_tail_emitter.h.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "jit/tail/integer_tail_emitter.h"
#include "kernels/tail/float_sum.h"

namespace fuselite::jit {

// One of the three scalings of a sum: MultiplyByQuantizedMultiplier(v << left, multiplier, shift)
// + zero_point, shift not positive.
struct ResidualScale {
  int left = 0;
  int32_t multiplier = 0, shift = 0, zero_point = 0;

  // Whether the scale is a shift to the left: that of the operand with the larger scale, as a rule.
  bool shifts_left() const;
  // Negative values differ.
  bool has_sign() const { return shift < 0; }
  // The numbers that the code reads.
  int32_t nudge() const;
  int32_t last_shift() const;
  // Tells apart what decides the code.
  int form() const { return shifts_left() ? 0 : has_sign() ? 1 : 2; }
};

struct Residual {
  kernels::QuantizedAdd add;
  int32_t min = 0, max = 0;  // of what is before it, less its zero point where that is left out
  bool is_unsigned = false;
  kernels::TailOperand operand;
  int64_t rows_per_batch = INT64_MAX;  // as a tail's, where its rows do not just follow each other
  // Floats in place of integers, where they are proven to give the same bytes: a third of the
  // instructions. The sum's zero point is then the requantization's store_offset.
  std::optional<kernels::FloatSum> floats{};

  ResidualScale x() const { return {add.left_shift, add.x_multiplier, add.x_shift, 0}; }
  ResidualScale y() const { return {add.left_shift, add.y_multiplier, add.y_shift, 0}; }
  ResidualScale sum() const {
    return {0, add.output_multiplier, add.output_shift, add.output_offset};
  }
  // Writes the constants, as those of residual `index` of the layer.
  void Encode(size_t index, LayerConstants* layer) const;
  // Tells apart what decides the code.
  std::string key() const;
};

// So many have room in a call's arguments: branches of a block before it is joined.
inline constexpr size_t kMostResiduals = 3;

// Takes a residual off the front of `tail`, which follows `requantization` or another residual: the
// sum's range becomes that of the requantization, which is what is stored. nullopt where it has no
// emitter, or where the rows of a run are not at constant steps.
std::optional<Residual> TakeResidual(kernels::Tail* tail, int64_t rows_of_call,
                                     Requantization* requantization);
// Finds the floats of the layer's next residual, which takes some time: when code is to be emitted.
void FindFloats(Residual* residual, Requantization* requantization, Isa isa);

class ResidualEmitter {
 public:
  // `temporaries`: vector registers, clobbered. IntegerTailEmitter::Prepare has run.
  ResidualEmitter(Assembler& assembler, const Residual& residual, const LayerReader& layer,
                  const std::array<int, 3>& temporaries)
      : a_(assembler),
        residual_(residual),
        layer_(layer),
        t0_(temporaries[0]),
        t1_(temporaries[1]),
        y_(temporaries[2]) {}

  // On a group of values that are not clamped yet. `address` is that of the operand's element for
  // the group's first channel; the first `bytes` elements are read.
  void Emit(std::span<const int> regs, int width, const Place& address, int bytes);

 private:
  void EmitFloats(int reg, int width);
  void Load(int group, int v, int width, const Place& address, int bytes);
  // The first `bytes` of a vector, which the others follow as zeros. Clobbers t1_.
  void LoadPieces(int reg, const Place& address, int bytes);
  // Where a scale's numbers are.
  struct ScaleConstants {
    LayerConstant multiplier, nudge, shift;
  };
  void Scale(int reg, int width, const ResidualScale& scale, const ScaleConstants& constants);

  Assembler& a_;
  const Residual& residual_;
  LayerReader layer_;
  int t0_, t1_, y_;
};

}  // namespace fuselite::jit
