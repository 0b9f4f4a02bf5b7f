// What float32 kernels around the matrix product share: the packed right-hand side, the split into
// blocks, the tail.
#pragma once

#include <string>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/output_tail.h"

namespace fuselite::kernels {

// Where the right-hand matrices stand: matrix m begins `m * matrix_stride` elements behind the
// start of input `input`, element (k, n) of it k * k_stride + n * n_stride further on.
struct RightSide {
  int input = 1;
  int64_t matrices = 1, matrix_stride = 0;
  int64_t k_stride = 1, n_stride = 1;
  int64_t depth = 0, columns = 0;
};

// How rows and columns of a product are split into units. Columns are split only where the rows
// alone do not give every thread something to do.
struct ProductBlocks {
  int64_t rows = 0, columns = 0;              // of one product
  int64_t block_rows = 1, block_columns = 1;  // of a unit; the last ones are smaller
  int64_t row_blocks = 0, column_blocks = 0;

  int64_t units() const { return row_blocks * column_blocks; }
};

// The register tile of a matrix product.
struct TileSize {
  int rows, panel;
};

// `row_bytes`: of a row of the left side. `a_copied`: units copy their rows of it into scratch,
// which must stay in the cache. `products`: how many there are of this size.
ProductBlocks SplitProduct(const TileSize& tile, int64_t rows, int64_t row_bytes, int64_t columns,
                           int64_t products, int threads, bool a_copied);

// Base of the kernels. A constant right side is packed when the kernel is built, another one in a
// phase of its own at each run; the last phase computes.
class ProductKernelF32 : public Kernel {
 public:
  std::string_view name() const final { return name_; }
  int phases() const final { return packs_at_run() ? 2 : 1; }
  int64_t units(int phase) const final {
    return phase + 1 == phases() ? compute_units_ : right_.matrices * panels_;
  }
  int64_t grain(int phase) const final;
  size_t scratch_bytes() const final { return a_bytes_ + tile_bytes_; }
  size_t shared_bytes() const final {
    return packs_at_run() ? matrix_floats_ * right_.matrices * sizeof(float) : 0;
  }
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const final;

  // Packs a constant right side, for PlanThenPack.
  Status Pack(const OpDescription& op, const BuildContext& context);

 protected:
  // Unit `unit` of `compute_units_`.
  virtual void Compute(const KernelArgs& args, int64_t unit) const = 0;

  // `operation` becomes part of the name: "conv f32 14x32 avx512".
  Status Init(const char* operation, const OpDescription& op, const PlanContext& context,
              Activation activation, const RightSide& right);
  void SetUnits(int64_t products, const ProductBlocks& blocks, size_t a_bytes);

  // rows x columns of the output at (row, channel), from `a` and the columns [column, column +
  // columns) of matrix `matrix`. `column` is a multiple of the panel.
  struct Part {
    const float* a;
    int64_t a_pitch;
    int64_t rows;
    int64_t matrix, column, columns;
    int64_t row, channel;
    const float* bias;  // of the first column; null for none
  };
  void RunPart(const KernelArgs& args, const Part& part) const;

  const GemmF32* gemm_ = nullptr;
  RightSide right_;

 private:
  bool packs_at_run() const { return run_time_; }
  const float* Matrix(const KernelArgs& args, int64_t matrix) const;

  std::string name_;
  FloatTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
  PackedWeights packed_;
  bool run_time_ = false;
  int64_t panels_ = 0;
  int64_t matrix_floats_ = 0;
  int64_t compute_units_ = 0, unit_work_ = 1;
  size_t a_bytes_ = 0, tile_bytes_ = 0;
};

}  // namespace fuselite::kernels
