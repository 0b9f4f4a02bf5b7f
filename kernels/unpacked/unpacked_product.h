// Products of few rows by matrices known only at run time, which are read where they lie: packing
// them takes as long as the products of several rows.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/unpacked/unpacked_row.h"

namespace fuselite::kernels {

// What a product takes from its operator.
struct UnpackedFormat {
  Activation activation = Activation::kNone;
  DataType bias_hint = DataType::kNone;  // MakeQuantizedTail's
  int64_t channels = 0, depth = 0;
  bool down = false;
  int64_t line_step = 1;  // between the line's values
  // For float32: the step from all others' values for a term of the sums, which lie beside each
  // other, to those for the next. 0: each of the others follows the one before.
  int64_t term_step = 0;
  bool asymmetric = false;  // how float32 is quantized beside int8
};

// Sums of one line of values by each of several others, `depth` values apart, with bias and tail.
// Inputs 0 and 1 are both float32, int8 or uint8, or float32 and int8 (hybrid), of which the line
// is quantized; the line is of input 0, and its sums are channels of an output's row; or, where
// the product goes `down`, which a hybrid one does not, of input 1, and its sums are one channel of
// several rows.
class UnpackedProduct {
 public:
  // kUnsupported for other types.
  static Result<UnpackedProduct> Make(const OpDescription& op, const UnpackedFormat& format,
                                      Isa isa);

  std::string types() const;  // for the kernel's name
  size_t scratch_bytes() const { return line_bytes_ + kBlock * sizeof(int32_t); }
  // The line begins with element `line` of its input, the first of `n` others with element `others`
  // of theirs. To the outputs from `row` (TailTile) and `channel` on.
  void Run(const KernelArgs& args, int64_t line, int64_t others, int64_t n, int64_t row,
           int64_t channel) const;

 private:
  friend struct UnpackedUnits;
  // Others whose sums wait for their tail: a multiple of what is summed at once.
  static constexpr int64_t kBlock = 64;

  // A line as the sums' function takes it.
  struct Line {
    const void* values;
    float scale;  // of a hybrid one
  };
  UnpackedProduct() = default;
  Status MakeTail(const OpDescription& op, const UnpackedFormat& format);
  Line PrepareLine(const KernelArgs& args, int64_t at) const;
  Line QuantizedLine(const KernelArgs& args, const float* values) const;
  void AddBias(const KernelArgs& args, int64_t channel, int64_t n, void* sums) const;
  // Turns sums from int32 to float32, in place.
  void Dequantize(const KernelArgs& args, float scale, int64_t channel, int64_t n,
                  void* sums) const;
  // n integers that go down, all of which the tail treats alike: as one row, then one by one.
  void StoreDown(const KernelArgs& args, void* sums, int64_t n, std::byte* to) const;
  std::byte* Output(const KernelArgs& args, int64_t row, int64_t channel) const;
  void Store(const KernelArgs& args, void* sums, int64_t n, int64_t row, int64_t channel) const;

  void (*sums_)(const UnpackedRow& row) = nullptr;
  const ShortRowFunctions* rows_ = nullptr;
  ApplyTailFunction* apply_ = nullptr;
  HybridRowFunction* store_hybrid_ = nullptr;
  FloatTail floats_{};
  std::optional<HybridTail> hybrid_;
  QuantizedTail bytes_;
  TensorInfo output_;
  DataType type_ = DataType::kNone;  // of the line
  int bias_ = -1;
  int line_input_ = 0;
  int64_t other_bytes_ = 0;  // of a value
  bool asymmetric_ = false;
  bool unchanged_ = false;  // sums, with bias and activation, are the output
  bool alike_ = false;  // of bytes: the tail has neither operands nor numbers of single channels
  int32_t line_zero_ = 0, others_zero_ = 0;
  int64_t depth_ = 0, line_step_ = 1, term_step_ = 0;
  size_t line_bytes_ = 0;
};

// Units of work of lines that each meet the same number of others: a block of these. A thread
// prepares each line of its units once.
struct UnpackedUnits {
  int64_t lines = 0, others = 0;

  int64_t blocks() const {
    return (others + UnpackedProduct::kBlock - 1) / UnpackedProduct::kBlock;
  }
  int64_t count() const { return lines * blocks(); }
  int64_t grain(int64_t depth) const;
  // Calls run(line, first other, how many) for the units [begin, end).
  template <class Function>
  void ForEachLine(int64_t begin, int64_t end, const Function& run) const {
    const int64_t of_line = blocks();
    for (int64_t unit = begin, next = 0; unit < end; unit = next) {
      const int64_t line = unit / of_line, first = unit % of_line * UnpackedProduct::kBlock;
      next = std::min(end, (line + 1) * of_line);
      run(line, first, std::min((next - unit) * UnpackedProduct::kBlock, others - first));
    }
  }
};

// `rows` rows of input 0, `pitch` values apart, by `units` rows of input 1, `depth` values each.
struct UnpackedLayer {
  int64_t rows, units, depth, pitch;
};
// Whether MakeUnpackedLayer takes less time for so many rows by the weights of one unit of bytes
// than a product that fills one lane of its vectors.
bool ReadsOneUnitOfBytes(const OpDescription& op, int64_t rows);

// The kernel "NAME TYPES unpacked ISA" of such a layer with bias, activation and tail. `format`
// says what the layer does not.
Result<std::unique_ptr<Kernel>> MakeUnpackedLayer(std::string_view name, const OpDescription& op,
                                                  UnpackedFormat format, const UnpackedLayer& layer,
                                                  Isa isa);

}  // namespace fuselite::kernels
