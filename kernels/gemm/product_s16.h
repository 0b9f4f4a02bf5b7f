// What 8-bit kernels around the matrix product share: packed weights, sums, the tail.
#pragma once

#include <string>

#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/product_f32.h"
#include "kernels/gemm/quantized_tail.h"

namespace fuselite::kernels {

// Base of the kernels: 8-bit activations with constant 8-bit or 4-bit weights [matrices * columns]
// [depth], row-major. One phase.
class ProductKernelS16 : public Kernel {
 public:
  std::string_view name() const final { return name_; }
  int64_t units(int) const final { return units_; }
  int64_t grain(int) const final { return grain_; }
  size_t scratch_bytes() const final { return a_bytes_ + tile_bytes_; }
  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const final {
    for (int64_t unit = begin; unit < end; ++unit) Compute(args, unit);
    return Status();
  }

 protected:
  struct Size {
    int64_t matrices, rows, depth, columns;
  };

  virtual void Compute(const KernelArgs& args, int64_t unit) const = 0;

  Status Init(const char* operation, const OpDescription& op, const BuildContext& context,
              QuantizedTail tail, const Size& size);

  // The block of the output that a unit computes: rows [row, row + rows), and of matrix `matrix`
  // the columns [column, column + columns).
  struct Part {
    int64_t matrix, row, rows, column, columns;
  };
  Part PartOf(int64_t unit) const;
  // Where the rows of a unit's left side go: even_depth() values each, zero points taken off.
  int16_t* LeftSide(const KernelArgs& args) const {
    return reinterpret_cast<int16_t*>(args.scratch);
  }
  int64_t even_depth() const { return (size_.depth + 1) & ~int64_t{1}; }
  // `n` activations from the input's element `at`.
  void Widen(const KernelArgs& args, int64_t at, int64_t n, int16_t* to) const;
  // Multiplies the left side, and stores through the tail.
  void RunPart(const KernelArgs& args, const Part& part) const;

 private:
  Status PackWeights(const OpDescription& op, const BuildContext& context);

  const GemmS16* gemm_ = nullptr;
  ApplyTailFunction* apply_tail_ = nullptr;
  std::string name_;
  QuantizedTail tail_;
  Size size_{};
  ProductBlocks blocks_;
  PackedWeights packed_;
  DataType x_type_ = DataType::kNone;
  int32_t x_offset_ = 0;
  int64_t units_ = 0, grain_ = 1;
  size_t a_bytes_ = 0, tile_bytes_ = 0;
};

}  // namespace fuselite::kernels
