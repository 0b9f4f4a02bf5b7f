#include "jit/batch_gemm_s8.h"

#include <algorithm>

namespace fuselite::jit {

using kernels::BuildContext;
using kernels::OpDescription;

Result<BatchGemmS8> BatchGemmS8::Build(const OpDescription& op, GemmS8Problem problem,
                                       int64_t left_step, const BuildContext& context) {
  if (op.params.as<kernels::BatchMatMulParams>().adj_x) {
    return Unsupported("a transposed left operand has no emitter");
  }
  BatchGemmS8 batch;
  FUSELITE_ASSIGN_OR_RETURN(batch.shape_, kernels::ResolveBatchMatMul(op));
  const kernels::BatchMatMulShape& shape = batch.shape_;
  if (shape.depth == 0 || shape.output.elements() == 0) {
    return Unsupported("nothing is emitted for an empty product");
  }
  const TensorInfo &left = op.inputs[0], &right = op.inputs[1], &output = op.outputs[0];
  batch.strides_ = kernels::StridesOf(op);
  batch.left_rows_ = left.elements() / shape.depth;
  batch.left_step_ = left_step;
  batch.right_count_ = right.elements() / (int64_t{shape.depth} * shape.columns);
  batch.out_row_bytes_ = output.pitch() * (BitWidth(output.type) / 8);
  batch.constant_ = right.constant();

  problem.channels = shape.columns;
  problem.out_pitch = output.pitch();
  problem.depth.runs = {{0, shape.depth}};
  problem.a_step = left_step;
  problem.line_rows = shape.rows;
  problem.image_step = shape.rows * left_step;  // CorrectRows goes through all matrices
  FUSELITE_ASSIGN_OR_RETURN(batch.gemm_, GemmS8::Build(std::move(problem), context));
  if (batch.constant_) FUSELITE_RETURN_IF_ERROR(batch.PackConstant(right, context));
  return batch;
}

S8Weights BatchGemmS8::Right(const void* values, int64_t matrix) const {
  return {static_cast<const std::byte*>(values) + matrix * strides_.y_matrix, strides_.y_term,
          strides_.y_column, nullptr};
}

Status BatchGemmS8::PackConstant(const TensorInfo& right, const BuildContext& context) {
  const PackRequest request{
      .source = right.data,
      .source_bytes = right.bytes(),
      .layout = internal::Join("batch ", right_count_, " by", strides_.y_matrix, '.',
                               strides_.y_term, '.', strides_.y_column, ' ', gemm_.layout()),
      .bytes = right_count_ * packed_step()};
  const auto pack = [&](std::byte* to) {
    for (int64_t i = 0; i < right_count_; ++i, to += packed_step()) {
      gemm_.Pack(Right(right.data, i), to, 0, gemm_.panels());
    }
  };
  FUSELITE_ASSIGN_OR_RETURN(right_, context.Pack(request, pack));
  return Status();
}

void BatchGemmS8::Pack(const KernelArgs& args, std::byte* packed, int64_t begin,
                       int64_t end) const {
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t matrix = unit / gemm_.panels(), panel = unit % gemm_.panels();
    gemm_.Pack(Right(args.inputs[1], matrix), packed + matrix * packed_step(), panel, panel + 1);
  }
}

void BatchGemmS8::Run(const KernelArgs& args, const Left& left, const std::byte* packed,
                      int64_t begin, int64_t end) const {
  const int64_t rows = shape_.rows;
  if (constant_) packed = right_->data();
  while (begin < end) {
    const int64_t batch = begin / gemm_.units(), first = begin % gemm_.units();
    const int64_t count = std::min(gemm_.units() - first, end - begin);
    const auto pair = shape_.PairOf(batch);
    const int64_t row = pair.x * rows;
    gemm_.Run({.args = args,
               .a = left.a + row * left_step_,
               .packed = packed + pair.y * packed_step(),
               .corrections = left.corrections == nullptr ? nullptr : left.corrections + row,
               .out = static_cast<std::byte*>(args.outputs[0]) + batch * rows * out_row_bytes_,
               .first_row = batch * rows,
               .scales = left.scales == nullptr ? nullptr : left.scales + row},
              first, first + count);
    begin += count;
  }
}

}  // namespace fuselite::jit
