// A transposed convolution as stride_h * stride_w ordinary ones: the outputs whose position plus
// padding leaves the same remainder by the strides meet the same taps of the filter.
#include "kernels/product/description.h"
#include "kernels/rows/along_one_line.h"
#include "kernels/transpose_conv/axis_parts.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::kernels {
namespace {

// In the order of the inputs that they meet: later taps meet earlier inputs.
std::vector<int64_t> TapsOf(const TransposeConvShape& shape, const AxisPart& y, const AxisPart& x) {
  std::vector<int64_t> taps;
  for (int32_t ty = y.taps - 1; ty >= 0; --ty) {
    for (int32_t tx = x.taps - 1; tx >= 0; --tx) {
      const int64_t ky = y.remainder + ty * shape.window.y.stride;
      const int64_t kx = x.remainder + tx * shape.window.x.stride;
      taps.push_back((ky * shape.window.x.filter + kx) * shape.channels_in);
    }
  }
  return taps;
}

ProductPart MakePart(const TransposeConvShape& shape, const AxisPart& y, const AxisPart& x) {
  ProductPart part;
  part.window.y = {.filter = y.taps, .output = y.outputs};
  part.window.x = {.filter = x.taps, .output = x.outputs};
  part.first_y = y.start;
  part.first_x = x.start;
  part.out_y = y.first;
  part.out_x = x.first;
  part.step_y = shape.window.y.stride;
  part.step_x = shape.window.x.stride;
  part.taps = TapsOf(shape, y, x);
  return part;
}

}  // namespace

Result<ProductDescription> DescribeTransposeConvProduct(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(TransposeConvShape shape, ResolveTransposeConv(op));
  shape.window = AlongOneLine(shape.window);
  const auto& params = op.params.as<TransposeConvParams>();
  const auto& [y, x] = shape.window;
  // Outputs whose remainders are beyond would each have a product of their own.
  if (int64_t{y.stride} * x.stride > 1024)
    return Unsupported("does not take a stride beyond 32x32");
  ProductDescription product;
  product.name = "transpose_conv";
  product.activation = params.activation;
  product.quantized_bias_type = params.quantized_bias_type;
  product.padding.y = PaddedAxis(y);
  product.padding.x = PaddedAxis(x);
  product.images = shape.batch;
  product.channels_in = shape.channels_in;
  product.pixel_pitch = op.inputs[2].pitch();
  product.out_height = y.input;
  product.out_width = x.input;
  product.channels_out = shape.channels_out;
  product.n_step = int64_t{y.filter} * x.filter * shape.channels_in;
  if (op.inputs[2].type == DataType::kFloat32 && op.inputs[1].type != DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(HybridTail tail, MakeTransposeConvHybridTail(op, shape.channels_out));
    product.hybrid = {.tail = std::move(tail), .asymmetric = true, .scales_terms = true};
  }
  for (int32_t ry = 0; ry < y.stride; ++ry) {
    for (int32_t rx = 0; rx < x.stride; ++rx) {
      const AxisPart part_y = PartOf(y, ry), part_x = PartOf(x, rx);
      if (part_y.outputs == 0 || part_x.outputs == 0) continue;
      product.parts.push_back(MakePart(shape, part_y, part_x));
    }
  }
  return product;
}

}  // namespace fuselite::kernels
