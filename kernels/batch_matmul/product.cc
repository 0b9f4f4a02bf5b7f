#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/product/description.h"

namespace fuselite::kernels {

Result<ProductDescription> DescribeBatchMatMulProduct(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  const auto& params = op.params.as<BatchMatMulParams>();
  const TensorInfo &left = op.inputs[0], &right = op.inputs[1];
  const BatchMatMulStrides strides = StridesOf(op);
  if (shape.depth == 0 || shape.output.elements() == 0) {
    return Unsupported("the product is empty");
  }
  FUSELITE_RETURN_IF_ERROR(RequireWorthPacking(op, shape));
  ProductDescription product;
  product.name = "batch_matmul";
  FUSELITE_RETURN_IF_ERROR(product.SetRows(left.elements() / shape.depth, shape.rows));
  product.channels_in = shape.depth;
  product.pixel_pitch = left.pitch();
  product.left_transposed = params.adj_x;
  product.channels_out = shape.columns;
  product.k_step = strides.y_term;
  product.n_step = strides.y_column;
  product.right_matrices = right.elements() / (int64_t{shape.depth} * shape.columns);
  product.right_matrix_step = strides.y_matrix;
  product.batch = shape.batch;
  if (left.type == DataType::kFloat32 && right.type != DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(HybridTail tail,
                              MakeHybridTail(op, Activation::kNone, shape.columns));
    product.hybrid = {.tail = std::move(tail),
                      .asymmetric = params.asymmetric_quantize_inputs,
                      .scale_per_row = true};
  }
  return product;
}

}  // namespace fuselite::kernels
