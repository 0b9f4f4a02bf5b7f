// The products of BATCH_MATMUL on 8-bit integers: which matrices meet, and where the packed right
// ones lie. The common part of quantized and hybrid ones.
#pragma once

#include "jit/gemm_s8.h"
#include "kernels/batch_matmul/batch_matmul.h"

namespace fuselite::jit {

class BatchGemmS8 {
 public:
  // `problem` lacks what follows from the operands' shapes. Rows of the left matrices are
  // `left_step` bytes apart as they are multiplied. kUnsupported for a transposed left operand and
  // for empty products. A constant right operand is packed here.
  static Result<BatchGemmS8> Build(const kernels::OpDescription& op, GemmS8Problem problem,
                                   int64_t left_step, const kernels::BuildContext& context);

  const GemmS8& gemm() const { return gemm_; }
  int64_t left_rows() const { return left_rows_; }  // of all matrices

  // Packing a right operand that is not constant, in units of a panel each, into `packed`, which
  // has packed_bytes(); no units otherwise.
  int64_t pack_units() const { return constant_ ? 0 : right_count_ * gemm_.panels(); }
  size_t packed_bytes() const { return constant_ ? 0 : right_count_ * packed_step(); }
  void Pack(const KernelArgs& args, std::byte* packed, int64_t begin, int64_t end) const;

  int64_t units() const { return shape_.batches() * gemm_.units(); }
  // What belongs to the left matrices' first row.
  struct Left {
    const std::byte* a;
    const int32_t* corrections = nullptr;  // if gemm().corrects()
    const RowScale* scales = nullptr;      // of float outputs
  };
  void Run(const KernelArgs& args, const Left& left, const std::byte* packed, int64_t begin,
           int64_t end) const;

 private:
  size_t packed_step() const { return AlignUp(gemm_.packed_bytes()); }
  S8Weights Right(const void* values, int64_t matrix) const;
  Status PackConstant(const TensorInfo& right, const kernels::BuildContext& context);

  GemmS8 gemm_;
  kernels::BatchMatMulShape shape_;
  kernels::BatchMatMulStrides strides_ = {};
  int64_t left_rows_ = 0, left_step_ = 0;
  int64_t right_count_ = 0;
  int64_t out_row_bytes_ = 0;
  bool constant_ = false;
  PackedWeights right_;  // if constant
};

}  // namespace fuselite::jit
