#include "kernels/fully_connected/fully_connected.h"
#include "kernels/product/description.h"

namespace fuselite::kernels {

Result<ProductDescription> DescribeFullyConnectedProduct(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  const TensorInfo &in = op.inputs[0], &weights = op.inputs[1];
  ProductDescription product;
  product.name = "fully_connected";
  product.activation = params.activation;
  product.quantized_bias_type = params.quantized_bias_type;
  FUSELITE_RETURN_IF_ERROR(product.SetRows(shape.rows, shape.rows));
  product.channels_in = shape.depth;
  // The innermost dimension may end elsewhere than the rows of the product do.
  product.pixel_pitch = in.row_pitch ? in.row_pitch : shape.depth;
  product.channels_out = shape.units;
  product.n_step = weights.row_pitch ? weights.row_pitch : shape.depth;
  if (in.type == DataType::kFloat32 && weights.type != DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeHybridTail(op, params.activation, shape.units));
    product.hybrid = {.tail = std::move(tail),
                      .asymmetric = params.asymmetric_quantize_inputs,
                      .scale_per_row = true};
  }
  return product;
}

}  // namespace fuselite::kernels
