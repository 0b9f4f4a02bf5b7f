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
  std::vector<float> scales;  // of the hybrid form: for each column
};

// Refuses weights that are not constant.
Status CheckLstmWeights(const TensorInfo& weights);

// The weights of all gates that there are: inputs `first` + gate of `op`, which Infer has found to
// have one shape. One product of a row with all of them has few sums in vectors that are not full.
std::span<const TensorInfo> LstmGateWeights(const OpDescription& op, int first);

// Constant weights [columns, depth], those of several tensors of one shape side by side: float32,
// and bytes, to which `offset` is added.
Result<PackedWeights> PackLstmF32(std::span<const TensorInfo> weights, const GemmF32& gemm,
                                  const BuildContext& context);
Result<PackedWeights> PackLstmS16(std::span<const TensorInfo> weights, int32_t offset,
                                  const GemmS16& gemm, const BuildContext& context);
// int8 for FindGemmQuads.
Result<PackedWeights> PackLstmQuads(std::span<const TensorInfo> weights, const GemmS16& gemm,
                                    const BuildContext& context);

// Rows side by side, quantized in the hybrid form.
struct LstmRows {
  const float* values = nullptr;
  int64_t count = 0;
  const int16_t* quantized = nullptr;
  const float* scales = nullptr;  // for each row
};

class LstmProducts {
 public:
  // The form is that of `op`. kUnsupported where there is no vector target.
  Status Init(const OpDescription& op, Isa isa);
  bool hybrid() const { return store_ != nullptr; }

  // Of several tensors of one shape, the columns side by side.
  Result<LstmMatrix> Pack(std::span<const TensorInfo> weights, const BuildContext& context) const;

  // What Prepare and Multiply need for so many rows, and depths and columns up to these.
  size_t scratch_bytes(int64_t rows, int64_t depth, int64_t columns) const;
  // The rows as Multiply() reads them; they last until the next call with this scratch.
  LstmRows Prepare(const float* values, int64_t rows, int64_t depth, std::byte* scratch) const;

  // c[r][n] = cut(bias[n] + row r times column n, to [-bound, bound]); `bias` may be null. c_pitch
  // counts elements. `scratch` is that of Prepare.
  struct Output {
    const float* bias;
    float bound;
    float* c;
    int64_t c_pitch;
  };
  void Multiply(const LstmMatrix& matrix, const LstmRows& rows, const Output& to,
                std::byte* scratch) const;

 private:
  // Where sums are in scratch, behind the quantized rows and their scales.
  size_t sums_at(int64_t rows, int64_t depth) const;
  size_t scales_at(int64_t rows, int64_t depth) const;

  const GemmF32* gemm_f32_ = nullptr;
  const GemmS16* gemm_s16_ = nullptr;
  const ShortRowFunctions* quantize_ = nullptr;
  HybridRowFunction* store_ = nullptr;  // null in float32
  bool asymmetric_ = false;
};

}  // namespace fuselite::kernels
