#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/product/description.h"

namespace fuselite::kernels {

// With a single input channel every filter sees all of it: a convolution, whose filters lie in
// another order.
Result<ProductDescription> DescribeDepthwiseConv2DProduct(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const DepthwiseConv2DShape shape, ResolveDepthwiseConv2D(op));
  if (shape.channels_in != 1) {
    return Unsupported("several channels that do not mix are no matrix product");
  }
  if (op.inputs[0].type == DataType::kFloat32 && op.inputs[1].type != DataType::kFloat32) {
    return Unsupported("dynamic range: no product of a single channel");
  }
  ProductDescription product;
  product.name = "conv";
  product.activation = op.params.as<DepthwiseConv2DParams>().activation;
  product.padding = shape.window;
  product.images = shape.batch;
  product.channels_in = 1;
  product.pixel_pitch = op.inputs[0].pitch();
  product.parts = {{.window = shape.window}};
  product.out_height = shape.window.y.output;
  product.out_width = shape.window.x.output;
  product.channels_out = shape.channels_out;
  product.k_step = shape.channels_out;
  product.n_step = 1;
  return product;
}

}  // namespace fuselite::kernels
