// Convolution as a matrix product: rows are output pixels, terms the window's taps and channels.
#include <algorithm>
#include <cstring>

#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/product_f32.h"

namespace fuselite::kernels {
namespace {

class Conv2DKernel final : public ProductKernelF32 {
 public:
  Status Build(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveConv2D(op));
    FUSELITE_RETURN_IF_ERROR(Init("conv", op, context, op.params.as<Conv2DParams>().activation,
                                  {.input = 1,
                                   .matrices = shape_.groups,
                                   .matrix_stride = shape_.group_out * shape_.depth(),
                                   .k_stride = 1,
                                   .n_stride = shape_.depth(),
                                   .depth = shape_.depth(),
                                   .columns = shape_.group_out}));
    pitch_ = op.inputs[0].pitch();
    biased_ = op.has_input(2);
    const auto& [y, x] = shape_.window;
    // Rows of the product are then the input's own pixels.
    direct_ = shape_.window.taps() == 1 && y.stride == 1 && x.stride == 1 &&
              y.before + y.after + x.before + x.after == 0;
    blocks_ = SplitProduct(*gemm_, shape_.pixels_out(), shape_.depth(), shape_.group_out,
                           shape_.groups, context.threads, !direct_);
    SetUnits(shape_.groups, blocks_,
             direct_ ? 0 : blocks_.block_rows * shape_.depth() * sizeof(float));
    return Status();
  }

 private:
  void Compute(const KernelArgs& args, int64_t unit) const override {
    const int64_t column = unit % blocks_.column_blocks * blocks_.block_columns;
    const int64_t group = unit / blocks_.column_blocks % shape_.groups;
    const int64_t row = unit / blocks_.column_blocks / shape_.groups * blocks_.block_rows;
    const auto* input = static_cast<const float*>(args.inputs[0]) + group * shape_.group_in;
    Part part{.a = input + row * pitch_,
              .a_pitch = pitch_,
              .rows = std::min(blocks_.block_rows, blocks_.rows - row),
              .matrix = group,
              .column = column,
              .columns = std::min(blocks_.block_columns, blocks_.columns - column),
              .row = row,
              .channel = group * shape_.group_out + column,
              .bias = nullptr};
    if (biased_) part.bias = static_cast<const float*>(args.inputs[2]) + part.channel;
    if (!direct_) {
      auto* to = reinterpret_cast<float*>(args.scratch);
      CopyWindows(input, row, part.rows, to);
      part.a = to;
      part.a_pitch = shape_.depth();
    }
    RunPart(args, part);
  }

  // The windows of the output pixels [row, row + rows), one behind the other.
  void CopyWindows(const float* input, int64_t row, int64_t rows, float* to) const {
    const auto& [y, x] = shape_.window;
    int32_t ox = static_cast<int32_t>(row % x.output);
    int32_t oy = static_cast<int32_t>(row / x.output % y.output);
    const float* image = input + row / x.output / y.output * y.input * x.input * pitch_;
    for (int64_t r = 0; r < rows; ++r) {
      to = CopyWindow(image, y.start(oy), x.start(ox), to);
      if (++ox < x.output) continue;
      ox = 0;
      if (++oy < y.output) continue;
      oy = 0;
      image += int64_t{y.input} * x.input * pitch_;
    }
  }

  float* CopyWindow(const float* image, int32_t start_y, int32_t start_x, float* to) const {
    const auto& [y, x] = shape_.window;
    const int64_t channels = shape_.group_in, row_floats = x.filter * channels;
    const int32_t first = x.first_tap(start_x), last = x.last_tap(start_x);
    // Taps side by side in memory are copied at once.
    const bool adjacent = x.dilation == 1 && pitch_ == channels;
    for (int32_t ky = 0; ky < y.filter; ++ky, to += row_floats) {
      const int32_t iy = start_y + ky * y.dilation;
      if (iy < 0 || iy >= y.input || first >= last) {
        std::fill_n(to, row_floats, 0.0f);
        continue;
      }
      std::fill_n(to, first * channels, 0.0f);
      std::fill_n(to + last * channels, (x.filter - last) * channels, 0.0f);
      const float* from = image + (int64_t{iy} * x.input + start_x + first * x.dilation) * pitch_;
      if (adjacent) {
        std::copy_n(from, (last - first) * channels, to + first * channels);
        continue;
      }
      for (int32_t kx = first; kx < last; ++kx, from += x.dilation * pitch_) {
        std::copy_n(from, channels, to + kx * channels);
      }
    }
    return to;
  }

  Conv2DShape shape_;
  ProductBlocks blocks_;
  int64_t pitch_ = 0;
  bool biased_ = false;
  bool direct_ = false;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConv2DHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  auto kernel = std::make_unique<Conv2DKernel>();
  FUSELITE_RETURN_IF_ERROR(kernel->Build(op, context));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuselite::kernels
