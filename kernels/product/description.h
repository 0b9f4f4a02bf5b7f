// An operator as matrix products, whatever its types: what CONV_2D, FULLY_CONNECTED, BATCH_MATMUL,
// TRANSPOSE_CONV and their relatives tell those who compute products. Each operator describes
// itself beside its shape rule.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/product/matrix_batches.h"
#include "kernels/window.h"

namespace fuselite::kernels {

// The windows of one product over the image that the source leaves, and the pixels of the output
// that they give. A convolution has one part; a transposed one has a part for each pair of
// remainders by the strides.
struct ProductPart {
  Window window;                     // in the source's image, without padding of its own
  int32_t first_y = 0, first_x = 0;  // where the first window begins
  // Output pixel (y, x) of the part is pixel (out_y + y * step_y, out_x + x * step_x) of the
  // output.
  int32_t out_y = 0, out_x = 0, step_y = 1, step_x = 1;
  // Window, first window and step of a volume's planes, for ProductDescription::volume.
  WindowAxis z = {.input = 1, .output = 1};
  int32_t first_z = 0, out_z = 0, step_z = 1;
  // The weights of the part: for each channel its taps in the order in which they meet the image,
  // as offsets in values from the channel's first weight to the tap's first. Empty: all of them,
  // one after the other. Where k_step is not 1 they follow each other.
  std::vector<int64_t> taps{};
};

struct ProductDescription {
  std::string name;  // "conv"
  Activation activation = Activation::kNone;
  DataType quantized_bias_type = DataType::kNone;

  // The left side: `images` images of input inputs.x. `padding` says how far the windows reach
  // beyond them.
  Window padding;
  int64_t images = 1;
  int64_t channels_in = 0;       // of a pixel
  int64_t pixel_pitch = 0;       // values from a pixel of the input to the next
  bool left_transposed = false;  // BATCH_MATMUL: the left matrices are stored [depth, rows]
  int64_t groups = 1;
  std::vector<ProductPart> parts;
  int32_t out_height = 0, out_width = 0;  // pixels of the output's images

  // CONV_3D: images are volumes, of planes whose padding is `padding`, and windows reach over
  // several planes: how far they reach beyond the volumes' first and last ones. Volumes of a batch
  // are the left matrices of `batch`.
  std::optional<WindowAxis> volume{};
  int32_t out_planes = 1;

  // The right side: weight (k, n) is value k * k_step + n * n_step of inputs.weights. With a
  // right_group_step, n counts from the first channel of a group, whose first weight is that many
  // values behind that of the group before.
  int64_t channels_out = 0;
  int64_t k_step = 1, n_step = 0;
  std::optional<int64_t> right_group_step{};
  // BATCH_MATMUL: the matrices of the two operands meet as `batch` says. The left ones follow each
  // other in one line of pixels, `matrix_rows()` of each.
  std::optional<MatrixBatches> batch{};
  int64_t right_matrices = 1, right_matrix_step = 0;  // values

  // Where float32 activations are quantized at run time.
  struct Hybrid {
    HybridTail tail;
    bool asymmetric = false;
    bool scale_per_row = false;  // else one for each image
    // Each term is scaled before it is added, in float32, rather than the sum of integers.
    bool scales_terms = false;
  };
  std::optional<Hybrid> hybrid{};

  int64_t group_in() const { return channels_in / groups; }
  int64_t matrix_rows() const { return parts.front().window.x.output; }
  int64_t left_matrices() const { return padding.x.input / std::max<int64_t>(1, matrix_rows()); }

  // Describes matrices: `all_rows` on the left, as pixels of one line, of which a product has
  // `rows`. kUnsupported for more than fit 31 bits.
  Status SetRows(int64_t all_rows, int64_t rows) {
    if (all_rows > INT32_MAX) return Unsupported(all_rows, " rows are too many");
    padding.y = {.input = 1, .output = 1};
    padding.x = {.input = static_cast<int32_t>(all_rows), .output = static_cast<int32_t>(all_rows)};
    parts.assign(1, {.window = padding});
    parts[0].window.x.output = static_cast<int32_t>(rows);
    out_height = 1;
    out_width = static_cast<int32_t>(rows);
    return Status();
  }
};

// The descriptions of the operators, each in its folder. They refuse what is no matrix product of
// the kind.
Result<ProductDescription> DescribeConv2DProduct(const OpDescription& op);
Result<ProductDescription> DescribeDepthwiseConv2DProduct(const OpDescription& op);
Result<ProductDescription> DescribeFullyConnectedProduct(const OpDescription& op);
Result<ProductDescription> DescribeBatchMatMulProduct(const OpDescription& op);
Result<ProductDescription> DescribeTransposeConvProduct(const OpDescription& op);
Result<ProductDescription> DescribeConv3DProduct(const OpDescription& op);

}  // namespace fuselite::kernels
