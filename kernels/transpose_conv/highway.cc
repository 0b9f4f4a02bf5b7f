// Transposed convolution as stride_h * stride_w ordinary ones: the output pixels whose position
// plus padding leaves the same remainder by the stride see the same taps, every stride-th of the
// filter, and neighbours among them see neighbouring input pixels.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/conv2d/windows.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::kernels {
namespace {

// A unit's rows of the left side, in tiles: they stay in L2 while the weights stream by.
constexpr int64_t kLeftSideFloats = 32 * 1024;

// The taps of an axis that remainder `r` sees: r, r + stride, ...
int32_t TapsOf(const WindowAxis& axis, int32_t r) {
  return r < axis.filter ? (axis.filter - r + axis.stride - 1) / axis.stride : 0;
}

class TransposeConvKernel final : public Kernel {
 public:
  Status Build(const OpDescription& op, const BuildContext& context);

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return int64_t{shape_.batch} * shape_.window.y.input; }
  int64_t grain(int) const override { return grain_; }
  size_t scratch_bytes() const override { return block_rows_ * max_depth_ * sizeof(float); }
  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t row = begin; row < end; ++row) RunRow(args, row);
    return Status();
  }

 private:
  // The filter's part for one pair of remainders: depth() terms, in order of the input pixels.
  struct Phase {
    int32_t taps_y, taps_x;
    int64_t offset;  // of its packed weights, in floats
  };

  const Phase& PhaseOf(int32_t ry, int32_t rx) const {
    return phases_[ry * shape_.window.x.stride + rx];
  }
  int64_t DepthOf(const Phase& phase) const {
    return int64_t{phase.taps_y} * phase.taps_x * shape_.channels_in;
  }
  void PackPhase(const float* filters, int32_t ry, int32_t rx, float* packed) const;
  void RunRow(const KernelArgs& args, int64_t row) const;
  void RunPhase(const KernelArgs& args, int64_t row, int32_t rx) const;

  const GemmF32* gemm_ = nullptr;
  TransposeConvShape shape_;
  FloatTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
  std::string name_;
  std::vector<Phase> phases_;  // by remainders (y, x)
  PackedWeights packed_;
  int64_t pitch_ = 0, max_depth_ = 0, block_rows_ = 0, grain_ = 1;
  bool biased_ = false;
};

Status TransposeConvKernel::Build(const OpDescription& op, const BuildContext& context) {
  gemm_ = FindGemmF32(context.isa);
  if (gemm_ == nullptr) return Unsupported("no vector target at isa=", IsaName(context.isa));
  const TensorInfo& filters = op.inputs[1];
  output_ = op.outputs[0];
  for (DataType type : {op.inputs[2].type, filters.type, output_.type}) {
    if (type != DataType::kFloat32) return Unsupported(DataTypeName(type), " is not float32");
  }
  if (!filters.constant()) return Unsupported("filters that are not constant");
  FUSELITE_ASSIGN_OR_RETURN(shape_, ResolveTransposeConv(op));
  FUSELITE_ASSIGN_OR_RETURN(tail_,
                            MakeFloatTail(op, op.params.as<TransposeConvParams>().activation));
  apply_tail_ = ApplyTail(context.isa);
  pitch_ = op.inputs[2].pitch();
  biased_ = op.has_input(3);
  name_ = internal::Join("transpose_conv f32 ", gemm_->tile_rows, "x", gemm_->panel, " ",
                         SimdName(context.isa));
  const auto& [y, x] = shape_.window;
  // Remainders beyond the filter have no taps; many of them would only cost memory here.
  if (int64_t{y.stride} * x.stride > 1024) return Unsupported("a stride beyond 32x32");
  int64_t floats = 0;
  for (int32_t ry = 0; ry < y.stride; ++ry) {
    for (int32_t rx = 0; rx < x.stride; ++rx) {
      phases_.push_back({TapsOf(y, ry), TapsOf(x, rx), floats});
      const int64_t depth = DepthOf(phases_.back());
      max_depth_ = std::max(max_depth_, depth);
      floats += gemm_->PackedBytes(depth, shape_.channels_out) / sizeof(float);
    }
  }
  const int64_t tiles = kLeftSideFloats / std::max<int64_t>(1, max_depth_ * gemm_->tile_rows);
  block_rows_ = std::clamp<int64_t>(tiles, 1, 8) * gemm_->tile_rows;
  grain_ = GrainFor(int64_t{x.output} * shape_.channels_out * max_depth_ / 8);
  PackRequest request;
  request.source = filters.data;
  request.source_bytes = filters.bytes();
  request.bytes = static_cast<size_t>(floats) * sizeof(float);
  request.layout = internal::Join("transpose_conv f32 p", gemm_->panel, " ", filters.shape, " s",
                                  y.stride, "x", x.stride);
  FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* to) {
    // The file may have left the constant misaligned.
    std::vector<float> aligned(filters.elements());
    std::memcpy(aligned.data(), filters.data, filters.bytes());
    for (int32_t ry = 0; ry < shape_.window.y.stride; ++ry) {
      for (int32_t rx = 0; rx < shape_.window.x.stride; ++rx) {
        PackPhase(aligned.data(), ry, rx, reinterpret_cast<float*>(to));
      }
    }
  }));
  return Status();
}

void TransposeConvKernel::PackPhase(const float* filters, int32_t ry, int32_t rx,
                                    float* packed) const {
  const auto& [y, x] = shape_.window;
  const Phase& phase = PhaseOf(ry, rx);
  const int64_t depth = DepthOf(phase), channels = shape_.channels_in;
  std::vector<float> dense(shape_.channels_out * depth);
  float* to = dense.data();
  for (int64_t o = 0; o < shape_.channels_out; ++o) {
    // Later taps meet earlier pixels.
    for (int32_t j = phase.taps_y - 1; j >= 0; --j) {
      for (int32_t i = phase.taps_x - 1; i >= 0; --i, to += channels) {
        const int64_t tap = (o * y.filter + ry + j * y.stride) * x.filter + rx + i * x.stride;
        std::copy_n(filters + tap * channels, channels, to);
      }
    }
  }
  PackPanelsF32({.base = dense.data(),
                 .k_stride = 1,
                 .n_stride = depth,
                 .depth = depth,
                 .columns = shape_.channels_out},
                gemm_->panel, 0, gemm_->panels(shape_.channels_out), packed + phase.offset);
}

void TransposeConvKernel::RunRow(const KernelArgs& args, int64_t row) const {
  const WindowAxis& x = shape_.window.x;
  for (int32_t rx = 0; rx < x.stride; ++rx) RunPhase(args, row, rx);
  if (tail_.rest.empty()) return;
  auto* out = static_cast<float*>(args.outputs[0]) + row * x.input * output_.pitch();
  apply_tail_(tail_.rest, args.inputs,
              {.source = out,
               .source_pitch = output_.pitch(),
               .source_type = DataType::kFloat32,
               .destination = out,
               .destination_pitch = output_.pitch(),
               .destination_type = DataType::kFloat32,
               .row = row * x.input,
               .rows = x.input,
               .channel = 0,
               .channels = shape_.channels_out});
}

// The pixels of an output row whose columns leave the remainder `rx`.
void TransposeConvKernel::RunPhase(const KernelArgs& args, int64_t row, int32_t rx) const {
  const auto& [y, x] = shape_.window;
  const int32_t at_y = static_cast<int32_t>(row % y.input) + y.before;
  const Phase& phase = PhaseOf(at_y % y.stride, rx);
  const int32_t first = (rx - x.before % x.stride + x.stride) % x.stride;
  const int32_t count = first < x.input ? (x.input - first - 1) / x.stride + 1 : 0;
  // The ordinary convolution that these pixels are the output of.
  Conv2DShape conv;
  conv.batch = 1;
  conv.group_in = conv.channels_in = shape_.channels_in;
  conv.window.y = {.input = y.output,
                   .filter = phase.taps_y,
                   .output = 1,
                   .before = phase.taps_y - 1 - at_y / y.stride};
  conv.window.x = {.input = x.output,
                   .filter = phase.taps_x,
                   .output = count,
                   .before = phase.taps_x - 1 - (first + x.before) / x.stride};
  const int64_t depth = DepthOf(phase);
  const float* image =
      static_cast<const float*>(args.inputs[2]) + row / y.input * y.output * x.output * pitch_;
  auto* left = reinterpret_cast<float*>(args.scratch);
  for (int64_t r = 0; r < count; r += block_rows_) {
    const int64_t rows = std::min<int64_t>(block_rows_, count - r);
    if (depth > 0) {
      CopyWindows(conv, 0, pitch_, r, rows, depth, left,
                  [image](int64_t at, int64_t n, float* to) { std::copy_n(image + at, n, to); });
    }
    gemm_->run({.a = left,
                .a_pitch = depth,
                .rows = rows,
                .depth = depth,
                .b = packed_->as<float>() + phase.offset,
                .columns = shape_.channels_out,
                .bias = biased_ ? static_cast<const float*>(args.inputs[3]) : nullptr,
                .min = tail_.min,
                .max = tail_.max,
                .c = static_cast<float*>(args.outputs[0]) +
                     (row * x.input + first + r * x.stride) * output_.pitch(),
                .c_pitch = x.stride * output_.pitch()});
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTransposeConvHighway(const OpDescription& op,
                                                          const BuildContext& context) {
  auto kernel = std::make_unique<TransposeConvKernel>();
  FUSELITE_RETURN_IF_ERROR(kernel->Build(op, context));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuselite::kernels
