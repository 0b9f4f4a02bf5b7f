// What 8-bit, 16-bit and hybrid kernels around the matrix product share: activations as int16,
// packed weights, sums, the tail.
#pragma once

#include <string>

#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/product_f32.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/gemm/wide_product.h"

namespace fuselite::kernels {

// Base of the kernels: 8-bit or 16-bit activations, or float32 ones quantized at run time, with
// 8-bit or 4-bit right-hand matrices, or both sides of 16 bits. Where activations are shared
// between units they are brought to int16 in phases of their own (ShortRows); right-hand matrices
// that are not constant are packed in one; the last phase computes.
class ProductKernelS16 : public Kernel {
 public:
  std::string_view name() const final { return name_; }
  int phases() const final { return rows_.phases() + (packs_at_run() ? 2 : 1); }
  int64_t units(int phase) const final;
  int64_t grain(int phase) const final;
  size_t scratch_bytes() const final {
    return a_bytes_ + tile_bytes_ * (tail_.wide ? 1 + sizeof(int64_t) / sizeof(int32_t) : 1);
  }
  size_t shared_bytes() const final;
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const final;

  // Packs a constant right side, for PlanThenPack.
  Status Pack(const OpDescription& op, const BuildContext& context);

 protected:
  // `products` of rows x depth by depth x columns. Matrix m of the right side begins m *
  // matrix_stride elements behind the start of input 1.
  struct Size {
    int64_t products, rows, depth, columns;
    int64_t matrices, matrix_stride, k_stride, n_stride;
  };
  // A block of the output that a unit computes: of product `product` the rows [row, row + rows) and
  // the columns [column, column + columns).
  struct Part {
    int64_t product, row, rows, column, columns;
    int64_t matrix;     // of the right side
    int64_t out_row;    // of the output
    int64_t channel;    // of the output
    int64_t scale_row;  // row r has the scale of group (scale_row + r) / rows_per_scale
  };

  virtual void Compute(const KernelArgs& args, int64_t unit) const = 0;

  // The activations must be 8-bit or 16-bit with `tail`. `a_copied`: units copy their rows into
  // LeftSide.
  Status Init(const char* operation, const OpDescription& op, const PlanContext& context,
              QuantizedTail tail, const Size& size, bool a_copied);
  // The activations must be float32, and be prepared by InitRows.
  Status InitHybrid(const char* operation, const OpDescription& op, const PlanContext& context,
                    HybridTail tail, int64_t rows_per_scale, const Size& size, bool a_copied);
  Status InitRows(const OpDescription& op, const PlanContext& context,
                  const ShortRowsLayout& layout) {
    return rows_.Init(op.inputs[0], layout, context.isa);
  }

  // With the part's matrix and place in the output where products are groups of channels.
  Part PartOf(int64_t unit) const;
  // Where the rows of a unit's left side go: even_depth() values each, zero points taken off.
  int16_t* LeftSide(const KernelArgs& args) const {
    return reinterpret_cast<int16_t*>(args.scratch);
  }
  int64_t even_depth() const { return (size_.depth + 1) & ~int64_t{1}; }
  // `n` integer activations from the input's element `at`.
  void Widen(const KernelArgs& args, int64_t at, int64_t n, int16_t* to) const;
  // Multiplies the rows at `a`, even_depth() values apart, and stores through the tail.
  void RunPart(const KernelArgs& args, const Part& part, const int16_t* a) const;

  ShortRows rows_;

 private:
  Status InitProduct(const char* operation, const OpDescription& op, const PlanContext& context,
                     const Size& size, bool a_copied);
  // Packs panels [begin, end) of matrix `matrix` of the right side at `data` to its place at `to`.
  void PackPanels(const void* data, int64_t matrix, int64_t begin, int64_t end, int16_t* to) const;
  bool packs_at_run() const { return packed_at_run_; }
  // How many values one matrix has, or one byte of each of its elements.
  int64_t plane_values() const { return gemm_->PackedValues(size_.depth, size_.columns); }
  int64_t matrix_values() const { return plane_values() + wide_.high_values; }
  const int16_t* Matrix(const KernelArgs& args, int64_t matrix) const;
  // The sums of the columns from `column` of the right side on, without bias, to `sums`.
  GemmS16Block BlockOf(const KernelArgs& args, const Part& part, const int16_t* a, int64_t column,
                       int32_t* sums) const;
  void StoreWide(const KernelArgs& args, const Part& part, const GemmS16Block& block) const;
  void StoreFloats(const KernelArgs& args, const Part& part, int32_t* sums) const;
  void Store(const KernelArgs& args, const Part& part, const Tail& tail, DataType type,
             const void* values) const;
  std::byte* Destination(const KernelArgs& args, const Part& part) const;

  const GemmS16* gemm_ = nullptr;
  const ShortRowFunctions* functions_ = nullptr;
  ApplyTailFunction* apply_tail_ = nullptr;
  std::string name_;
  QuantizedTail tail_;
  HybridTail hybrid_;
  HybridRowFunction* store_hybrid_ = nullptr;  // null for integer activations
  int64_t rows_per_scale_ = 1;
  TensorInfo output_;
  Size size_{};
  ProductBlocks blocks_;
  PackedWeights packed_;
  bool packed_at_run_ = false;
  DataType x_type_ = DataType::kNone, right_type_ = DataType::kNone;
  int32_t x_offset_ = 0, right_offset_ = 0;
  int64_t units_ = 0, grain_ = 1;
  size_t a_bytes_ = 0, tile_bytes_ = 0;
  WideProduct wide_;  // with 16-bit activations
};

}  // namespace fuselite::kernels
