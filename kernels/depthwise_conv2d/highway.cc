// Depthwise convolution row by row: a list of pointers to the pixels under a few neighbouring
// windows, outside ones leading to zeros, makes borders and pitches none of the inner loop's
// business.
#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/depthwise_conv2d/block_f32.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// Half a megabyte: beyond it, the pointers alone leave no cache for the pixels.
constexpr int64_t kMaxPointers = 65536;

class DepthwiseKernel final : public Kernel {
 public:
  Status Plan(const OpDescription& op, const PlanContext& context) {
    simd_ = FindDepthwiseF32(context.isa);
    if (simd_ == nullptr) return NoVectorTarget(context.isa);
    for (int i : {0, 1}) {
      if (op.inputs[i].type != DataType::kFloat32) {
        return Unsupported("takes float32, not ", DataTypeName(op.inputs[i].type));
      }
    }
    FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveDepthwiseConv2D(op));
    FUSELITE_ASSIGN_OR_RETURN(tail_,
                              MakeFloatTail(op, op.params.as<DepthwiseConv2DParams>().activation));
    apply_tail_ = ApplyTail(context.isa);
    name_ = std::string("depthwise f32 ") + SimdName(context.isa);
    output_ = op.outputs[0];
    pitch_ = op.inputs[0].pitch();
    biased_ = op.has_input(2);
    const auto& [y, x] = shape_.window;
    zeros_.assign(shape_.channels_out, 0.0f);
    const int count = std::min(simd_->max_count, std::max(x.output, 1));
    const int64_t pointers =
        y.filter * ((count - 1) * int64_t{x.stride} + (x.filter - 1) * int64_t{x.dilation} + 1);
    if (pointers > kMaxPointers)
      return Unsupported("a window of ", pointers, " pixels is too large");
    pointer_bytes_ = AlignUp(pointers * sizeof(float*));
    if (shape_.multiplier > 1) {
      expanded_bytes_ = AlignUp(int64_t{y.filter} * x.input * shape_.channels_out * sizeof(float));
    }
    if (output_.type != DataType::kFloat32) {
      tile_bytes_ = simd_->max_count * int64_t{shape_.channels_out} * sizeof(float);
    }
    return Status();
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return int64_t{shape_.batch} * shape_.window.y.output; }
  int64_t grain(int) const override {
    // A multiply-add is worth an eighth of what GrainFor counts: a vector does 8 or 16 at once.
    return GrainFor(int64_t{shape_.window.x.output} * shape_.channels_out * shape_.window.taps() /
                    8);
  }
  size_t scratch_bytes() const override { return pointer_bytes_ + expanded_bytes_ + tile_bytes_; }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) RunRow(args, unit);
    return Status();
  }

 private:
  void RunRow(const KernelArgs& args, int64_t unit) const {
    const auto& [y, x] = shape_.window;
    const int32_t start = y.start(static_cast<int32_t>(unit % y.output));
    const int32_t first = y.first_tap(start), last = std::max(first, y.last_tap(start));
    const float* rows = static_cast<const float*>(args.inputs[0]) +
                        (unit / y.output * y.input + start + first * y.dilation) * x.input * pitch_;
    int64_t row_stride = int64_t{y.dilation} * x.input * pitch_, pixel_stride = pitch_;
    if (shape_.multiplier > 1) {
      auto* expanded = reinterpret_cast<float*>(args.scratch + pointer_bytes_);
      Expand(rows, row_stride, last - first, expanded);
      rows = expanded;
      pixel_stride = shape_.channels_out;
      row_stride = x.input * pixel_stride;
    }
    const auto** pixels = reinterpret_cast<const float**>(args.scratch);
    const float* bias = biased_ ? static_cast<const float*>(args.inputs[2]) : nullptr;
    for (int32_t ox = 0; ox < x.output;) {
      const int count =
          std::min<int>(simd_->max_count, std::bit_floor(static_cast<uint32_t>(x.output - ox)));
      const int64_t span = (count - 1) * x.stride + (x.filter - 1) * x.dilation + 1;
      for (int32_t ky = first; ky < last; ++ky) {
        const float* row = rows + (ky - first) * row_stride;
        for (int64_t i = 0; i < span; ++i) {
          const int64_t ix = x.start(ox) + i;
          pixels[(ky - first) * span + i] =
              ix >= 0 && ix < x.input ? row + ix * pixel_stride : zeros_.data();
        }
      }
      DepthwiseBlockF32 block{.pixels = pixels,
                              .span = span,
                              .filters = static_cast<const float*>(args.inputs[1]) +
                                         int64_t{first} * x.filter * shape_.channels_out,
                              .filter_h = last - first,
                              .filter_w = x.filter,
                              .stride = x.stride,
                              .dilation = x.dilation,
                              .channels = shape_.channels_out,
                              .bias = bias,
                              .min = tail_.min,
                              .max = tail_.max,
                              .out = nullptr,
                              .out_pitch = 0};
      RunBlock(args, unit * x.output + ox, count, block);
      ox += count;
    }
  }

  // Each channel `multiplier` times, dense.
  void Expand(const float* from, int64_t row_stride, int64_t rows, float* to) const {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t ix = 0; ix < shape_.window.x.input; ++ix) {
        const float* pixel = from + row * row_stride + ix * pitch_;
        for (int64_t c = 0; c < shape_.channels_in; ++c, to += shape_.multiplier) {
          std::fill_n(to, shape_.multiplier, pixel[c]);
        }
      }
    }
  }

  void RunBlock(const KernelArgs& args, int64_t row, int count, DepthwiseBlockF32& block) const {
    const bool in_place = output_.type == DataType::kFloat32;
    std::byte* out = static_cast<std::byte*>(args.outputs[0]) +
                     row * output_.pitch() * (BitWidth(output_.type) / 8);
    block.out =
        reinterpret_cast<float*>(in_place ? out : args.scratch + pointer_bytes_ + expanded_bytes_);
    block.out_pitch = in_place ? output_.pitch() : shape_.channels_out;
    simd_->run(block, count);
    if (in_place && tail_.rest.empty()) return;
    apply_tail_(tail_.rest, args.inputs,
                {.source = block.out,
                 .source_pitch = block.out_pitch,
                 .source_type = DataType::kFloat32,
                 .destination = out,
                 .destination_pitch = output_.pitch(),
                 .destination_type = output_.type,
                 .row = row,
                 .rows = count,
                 .channel = 0,
                 .channels = shape_.channels_out});
  }

  const DepthwiseF32* simd_ = nullptr;
  std::string name_;
  DepthwiseConv2DShape shape_;
  FloatTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
  int64_t pitch_ = 0;
  bool biased_ = false;
  std::vector<float> zeros_;  // a pixel of padding
  size_t pointer_bytes_ = 0, expanded_bytes_ = 0, tile_bytes_ = 0;
};

}  // namespace

Result<KernelPlan> PlanDepthwiseConv2DHighway(const OpDescription& op, const PlanContext& context) {
  if (op.inputs[1].type != DataType::kFloat32) {
    // Vectors of channels would hold one each.
    if (op.inputs[0].shape[3] == 1) {
      if (Result<KernelPlan> product = PlanHighwayProductS16(op, context); product.ok()) {
        return product;
      }
    }
    return PlanDepthwiseConv2DHighwayS8(op, context);
  }
  auto kernel = std::make_unique<DepthwiseKernel>();
  FUSELITE_RETURN_IF_ERROR(kernel->Plan(op, context));
  return KernelPlan(std::move(kernel));
}

}  // namespace fuselite::kernels
