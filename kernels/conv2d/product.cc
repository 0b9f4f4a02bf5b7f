#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/parts.h"
#include "kernels/product/description.h"
#include "kernels/rows/along_one_line.h"

namespace fuselite::kernels {

Result<ProductDescription> DescribeConv2DProduct(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const Conv2DShape shape, ResolveConv2D(op));
  const auto& params = op.params.as<Conv2DParams>();
  ProductDescription product;
  product.name = "conv";
  product.activation = params.activation;
  product.quantized_bias_type = params.quantized_bias_type;
  const Window window = AlongOneLine(shape.window);
  product.padding = window;
  product.images = shape.batch;
  product.channels_in = shape.channels_in;
  product.pixel_pitch = op.inputs[0].pitch();
  product.groups = shape.groups;
  if (shape.groups == 1 && op.inputs[1].constant()) {
    product.parts = PartsByTaps(window, shape.batch, shape.channels_in);
  } else {
    product.parts = {{.window = window}};
  }
  if (product.parts.size() > 1) {
    product.name = internal::Join("conv of ", product.parts.size(), " parts");
  }
  product.out_height = window.y.output;
  product.out_width = window.x.output;
  product.channels_out = shape.channels_out;
  product.n_step = shape.depth();
  if (op.inputs[0].type == DataType::kFloat32 && op.inputs[1].type != DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeConv2DHybridTail(op, shape));
    product.hybrid = {.tail = std::move(tail), .asymmetric = Conv2DHasSeveralScales(op, shape)};
  }
  return product;
}

}  // namespace fuselite::kernels
