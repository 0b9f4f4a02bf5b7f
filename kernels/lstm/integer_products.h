// The matrix products of the int8 LSTM: rows of int8 by constant int8 weights, exact.
#pragma once

#include <span>
#include <vector>

#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// A row as products read it: one of the two is not null. Whatever is behind its last value, up to
// IntegerProducts::RowBytes(), counts nowhere.
struct IntegerRow {
  int8_t* bytes = nullptr;  // uint8 in truth: values with their highest bit flipped
  int16_t* wide = nullptr;  // values less `zero_point`
  int32_t zero_point = 0;
};

// Weights [columns, depth], packed.
struct IntegerMatrix {
  PackedWeights packed;
  int64_t depth = 0, columns = 0;
  int32_t zero_point = 0;            // of what they are multiplied with
  std::vector<int32_t> corrections;  // what rows of bytes add to each column's sum
};

class IntegerProducts {
 public:
  // kUnsupported where there is no vector target. Where the core has dot products of bytes, rows
  // are bytes, else int16.
  Status Init(Isa isa);
  int64_t weight_bytes() const { return bytes() ? sizeof(int8_t) : sizeof(int16_t); }

  // Several tensors of one shape: the columns side by side. Their zero points are 0.
  Result<IntegerMatrix> Pack(std::span<const TensorInfo> weights, int32_t zero_point,
                             const BuildContext& context) const;

  // Of a row in the form that products read, a multiple of its values' bytes.
  int64_t RowBytes(int64_t depth) const;
  // A row for products with `matrix` in memory of RowBytes().
  IntegerRow RowIn(std::byte* memory, const IntegerMatrix& matrix) const;
  // Fills it; nothing is written behind the last value.
  void Prepare(const int8_t* values, int64_t depth, const IntegerRow& row) const;

  // sums[r][n] = bias[n] + row r times column n, rows RowBytes() apart; `bias` may be null.
  // `scratch`: of matrix.columns.
  struct Output {
    int64_t rows;
    const int32_t* bias;
    int32_t* sums;
    bool backwards;  // GemmS16Block's
  };
  void Multiply(const IntegerMatrix& matrix, const IntegerRow& first, const Output& to,
                int32_t* scratch) const;

 private:
  bool bytes() const { return quads_ != nullptr; }

  const GemmS16* quads_ = nullptr;
  const GemmS16* wide_ = nullptr;
  const ShortRowFunctions* widen_ = nullptr;
};

}  // namespace fuselite::kernels
