// Products of few rows by matrices known only at run time, which are read where they lie: packing
// them takes as long as the products of several rows.
#pragma once

#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/gemm/unpacked_row.h"

namespace fuselite::kernels {

// Sums of one line of values by each of several others, `depth` values apart, with bias and tail.
// Inputs 0 and 1 are float32, or int8 or uint8; the line is of input 0, and its sums are channels
// of an output's row; or, where the product goes `down`, of input 1, and its sums are one channel
// of several rows.
class UnpackedProduct {
 public:
  // Lines that are multiplied at once: a multiple of what is summed at once.
  static constexpr int64_t kBlock = 64;

  // `bias_hint` and `channels` as for MakeQuantizedTail. The line's values are `line_step` apart.
  // kUnsupported for other types.
  static Result<UnpackedProduct> Make(const OpDescription& op, Activation activation,
                                      DataType bias_hint, int64_t channels, int64_t depth,
                                      bool down, int64_t line_step, Isa isa);

  size_t scratch_bytes() const { return line_bytes_ + kBlock * sizeof(int32_t); }
  // The line begins with element `line` of its input, the first of `n` <= kBlock others with
  // element `others` of theirs. To the outputs from `row` (TailTile) and `channel` on.
  void Run(const KernelArgs& args, int64_t line, int64_t others, int64_t n, int64_t row,
           int64_t channel) const;

 private:
  UnpackedProduct() = default;
  // The line as the sums' function takes it.
  const void* Line(const KernelArgs& args, int64_t at) const;
  void AddBias(const KernelArgs& args, int64_t channel, int64_t n, void* sums) const;
  // n results that go down, all of which the tail treats alike: as one row, then one by one.
  void StoreDown(const KernelArgs& args, void* sums, int64_t n, std::byte* to) const;

  void (*sums_)(const UnpackedRow& row) = nullptr;
  const ShortRowFunctions* rows_ = nullptr;
  ApplyTailFunction* apply_ = nullptr;
  FloatTail floats_{};
  QuantizedTail bytes_;
  TensorInfo output_;
  DataType type_ = DataType::kNone;
  int bias_ = -1;
  int line_input_ = 0;
  bool alike_ = false;  // the tail has neither operands nor numbers of single channels
  int32_t line_zero_ = 0, others_zero_ = 0;
  int64_t depth_ = 0, line_step_ = 1;
  size_t line_bytes_ = 0;
};

}  // namespace fuselite::kernels
