// The matrix products of an LSTM with floats in memory and constant weights: float32, or hybrid.
#pragma once

#include <span>
#include <vector>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/short_rows.h"

namespace fuselite::kernels {

// Weights [columns, depth], packed: of one tensor, or of several whose columns lie side by side.
struct LstmMatrix {
  PackedWeights packed;
  int64_t depth = 0, columns = 0;
  // Of the hybrid form, for each column; the second where rows are bytes.
  std::vector<float> scales;
  std::vector<int32_t> sums;  // of its weights
};

// Refuses weights that are not constant.
Status CheckLstmWeights(const TensorInfo& weights);

// Constant weights [columns, depth], those of several tensors of one shape side by side: float32,
// and bytes, to which `offset` is added.
Result<PackedWeights> PackLstmF32(std::span<const TensorInfo> weights, const GemmF32& gemm,
                                  const BuildContext& context);
Result<PackedWeights> PackLstmS16(std::span<const TensorInfo> weights, int32_t offset,
                                  const GemmS16& gemm, const BuildContext& context);
// int8 for FindGemmQuads.
Result<PackedWeights> PackLstmQuads(std::span<const TensorInfo> weights, const GemmS16& gemm,
                                    const BuildContext& context);

// The sum of the weights of each column, of several int8 tensors of one shape side by side.
std::vector<int32_t> LstmWeightSums(std::span<const TensorInfo> weights);

// Bytes of a row of so many values as products read it: whole quads of bytes, or pairs of int16.
constexpr int64_t LstmRowBytes(int64_t depth, bool bytes) {
  return bytes ? (depth + 3) & ~int64_t{3} : 2 * ((depth + 1) & ~int64_t{1});
}

// Rows `pitch` values apart, in the hybrid form quantized and side by side.
struct LstmRows {
  const float* values = nullptr;
  int64_t count = 0, pitch = 0;
  const int16_t* quantized = nullptr;  // or bytes, raised by an offset, two in each
  const float* scales = nullptr;       // for each row
  const int32_t* offsets = nullptr;    // what takes the offset off again
};

class LstmProducts {
 public:
  // The form is that of `op`. kUnsupported where there is no vector target.
  Status Init(const OpDescription& op, Isa isa);
  bool hybrid() const { return store_ != nullptr; }
  int64_t weight_bytes() const {
    if (!hybrid()) return sizeof(float);
    return bytes_ ? sizeof(int8_t) : sizeof(int16_t);
  }

  // Of several tensors of one shape, the columns side by side.
  Result<LstmMatrix> Pack(std::span<const TensorInfo> weights, const BuildContext& context) const;

  // What Prepare and Multiply need for so many rows, and depths and columns up to these.
  size_t scratch_bytes(int64_t rows, int64_t depth, int64_t columns) const;
  // Rows of values, `pitch` apart, as Multiply() reads them; they last until the next call with
  // this scratch.
  LstmRows Prepare(const float* values, int64_t rows, int64_t pitch, int64_t depth,
                   std::byte* scratch) const;

  // c[r][n] = cut(bias[n] + row r times column n, to [-bound, bound]); `bias` may be null. c_pitch
  // counts elements. `scratch` is that of Prepare.
  struct Output {
    const float* bias;
    float bound;
    float* c;
    int64_t c_pitch;
    bool backwards = false;  // GemmF32Block's
  };
  void Multiply(const LstmMatrix& matrix, const LstmRows& rows, const Output& to,
                std::byte* scratch) const;

 private:
  int64_t RowBytes(int64_t depth) const { return LstmRowBytes(depth, bytes_); }
  // Where sums are in scratch, behind the quantized rows, their scales and offsets.
  size_t scales_at(int64_t rows, int64_t depth) const;
  size_t offsets_at(int64_t rows, int64_t depth) const;
  size_t sums_at(int64_t rows, int64_t depth) const;

  const GemmF32* gemm_f32_ = nullptr;
  // Of the hybrid form: of bytes where the core has dot products of these, else of int16, with
  // twice the weights to read.
  const GemmS16* gemm_s16_ = nullptr;
  bool bytes_ = false;
  const ShortRowFunctions* quantize_ = nullptr;
  HybridRowFunction* store_ = nullptr;  // null in float32
  bool asymmetric_ = false;
};

}  // namespace fuselite::kernels
