#include "kernels/gemm/product_f32.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// Half of the smallest L2 cache in use: a unit's rows of the left side stay there while the panels
// stream by.
constexpr int64_t kLeftSideBytes = 128 * 1024;
constexpr int64_t kMaxRowTiles = 8;
// A tile that waits for its tail stays in L1.
constexpr int64_t kTailFloats = 4096;

}  // namespace

ProductBlocks SplitProduct(const TileSize& tile, int64_t rows, int64_t row_bytes, int64_t columns,
                           int64_t products, int threads, bool a_copied) {
  ProductBlocks blocks{.rows = rows, .columns = columns};
  const int64_t tile_bytes = std::max<int64_t>(1, tile.rows * row_bytes);
  int64_t tiles = std::clamp<int64_t>(kLeftSideBytes / tile_bytes, 1, kMaxRowTiles);
  // Enough units for every thread, as far as whole tiles go.
  const int64_t wanted = threads > 1 ? 3 * int64_t{threads} : 1;
  const int64_t row_tiles = (rows + tile.rows - 1) / tile.rows;
  tiles = std::clamp<int64_t>(row_tiles * products / wanted, 1, tiles);
  blocks.block_rows = tiles * tile.rows;
  blocks.row_blocks = (rows + blocks.block_rows - 1) / blocks.block_rows;
  // Copies are repeated by every column block: four panels repay them.
  const int64_t step = tile.panel * (a_copied ? 4 : 1);
  const int64_t steps = (columns + step - 1) / step;
  const int64_t have = std::max<int64_t>(1, blocks.row_blocks * products);
  const int64_t splits =
      std::clamp<int64_t>((wanted + have - 1) / have, 1, std::max<int64_t>(1, steps));
  blocks.block_columns = std::max<int64_t>(1, (steps + splits - 1) / splits) * step;
  blocks.column_blocks = (columns + blocks.block_columns - 1) / blocks.block_columns;
  return blocks;
}

Status ProductKernelF32::Init(const char* operation, const OpDescription& op,
                              const PlanContext& context, Activation activation,
                              const RightSide& right) {
  gemm_ = FindGemmF32(context.isa);
  if (gemm_ == nullptr) return NoVectorTarget(context.isa);
  for (int i : {0, right.input}) {
    if (op.inputs[i].type != DataType::kFloat32) {
      return Unsupported(DataTypeName(op.inputs[i].type), " is not float32");
    }
  }
  name_ = std::string(operation) + " f32 " + std::to_string(gemm_->tile_rows) + "x" +
          std::to_string(gemm_->panel) + " " + SimdName(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(tail_, MakeFloatTail(op, activation));
  apply_tail_ = ApplyTail(context.isa);
  output_ = op.outputs[0];
  right_ = right;
  panels_ = gemm_->panels(right.columns);
  matrix_floats_ =
      static_cast<int64_t>(gemm_->PackedBytes(right.depth, right.columns) / sizeof(float));
  run_time_ = !op.inputs[right.input].constant();
  return Status();
}

Status ProductKernelF32::Pack(const OpDescription& op, const BuildContext& context) {
  if (run_time_) return Status();
  const RightSide& right = right_;
  const TensorInfo& source = op.inputs[right.input];
  PackRequest request;
  request.source = source.data;
  request.source_bytes = source.bytes();
  request.bytes = static_cast<size_t>(matrix_floats_ * right.matrices) * sizeof(float);
  request.layout = internal::Join("gemm f32 p", gemm_->panel, " m", right.matrices, "*",
                                  right.matrix_stride, " k", right.depth, "*", right.k_stride, " n",
                                  right.columns, "*", right.n_stride);
  FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* to) {
    // The file may have left the constant misaligned.
    std::vector<float> aligned;
    const void* from = source.data;
    if (reinterpret_cast<uintptr_t>(from) % alignof(float) != 0) {
      aligned.resize(source.elements());
      from = std::memcpy(aligned.data(), from, source.bytes());
    }
    for (int64_t m = 0; m < right.matrices; ++m) {
      PackPanelsF32({.base = static_cast<const float*>(from) + m * right.matrix_stride,
                     .k_stride = right.k_stride,
                     .n_stride = right.n_stride,
                     .depth = right.depth,
                     .columns = right.columns},
                    gemm_->panel, 0, panels_, reinterpret_cast<float*>(to) + m * matrix_floats_);
    }
  }));
  return Status();
}

void ProductKernelF32::SetUnits(int64_t products, const ProductBlocks& blocks, size_t a_bytes) {
  compute_units_ = products * blocks.units();
  unit_work_ = blocks.block_rows * std::min(blocks.block_columns, blocks.columns) * right_.depth;
  a_bytes_ = AlignUp(a_bytes);
  // Float outputs are written in place.
  if (output_.type != DataType::kFloat32) {
    tile_bytes_ = std::max(kTailFloats, blocks.block_rows * gemm_->panel) * sizeof(float);
  }
}

int64_t ProductKernelF32::grain(int phase) const {
  // A multiply-add is worth an eighth of what GrainFor counts: a vector does 8 or 16 at once.
  return phase + 1 == phases() ? GrainFor(unit_work_ / 8) : GrainFor(right_.depth * gemm_->panel);
}

const float* ProductKernelF32::Matrix(const KernelArgs& args, int64_t matrix) const {
  const std::byte* packed = run_time_ ? args.shared : packed_->data();
  return reinterpret_cast<const float*>(packed) + matrix * matrix_floats_;
}

Status ProductKernelF32::Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const {
  if (phase + 1 == phases()) {
    for (int64_t unit = begin; unit < end; ++unit) Compute(args, unit);
    return Status();
  }
  const auto* base = static_cast<const float*>(args.inputs[right_.input]);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t matrix = unit / panels_, panel = unit % panels_;
    PackPanelsF32({.base = base + matrix * right_.matrix_stride,
                   .k_stride = right_.k_stride,
                   .n_stride = right_.n_stride,
                   .depth = right_.depth,
                   .columns = right_.columns},
                  gemm_->panel, panel, panel + 1,
                  reinterpret_cast<float*>(args.shared) + matrix * matrix_floats_);
  }
  return Status();
}

void ProductKernelF32::RunPart(const KernelArgs& args, const Part& part) const {
  const bool in_place = output_.type == DataType::kFloat32;
  const bool tailed = !in_place || !tail_.rest.empty();
  // Without a tail there is nothing to wait for in L1.
  const int64_t fitting = kTailFloats / part.rows / gemm_->panel * gemm_->panel;
  const int64_t step = tailed ? std::max<int64_t>(gemm_->panel, fitting) : part.columns;
  const int64_t out_pitch = output_.pitch();
  const int64_t out_width = BitWidth(output_.type) / 8;
  for (int64_t n = 0; n < part.columns; n += step) {
    const int64_t columns = std::min(step, part.columns - n);
    const int64_t channel = part.channel + n;
    std::byte* out =
        static_cast<std::byte*>(args.outputs[0]) + (part.row * out_pitch + channel) * out_width;
    float* tile = reinterpret_cast<float*>(in_place ? out : args.scratch + a_bytes_);
    const int64_t tile_pitch = in_place ? out_pitch : columns;
    gemm_->run({.a = part.a,
                .a_pitch = part.a_pitch,
                .rows = part.rows,
                .depth = right_.depth,
                .b = Matrix(args, part.matrix) + (part.column + n) * right_.depth,
                .columns = columns,
                .bias = part.bias == nullptr ? nullptr : part.bias + n,
                .min = tail_.min,
                .max = tail_.max,
                .c = tile,
                .c_pitch = tile_pitch});
    if (!tailed) continue;
    apply_tail_(tail_.rest, args.inputs,
                {.source = tile,
                 .source_pitch = tile_pitch,
                 .source_type = DataType::kFloat32,
                 .destination = out,
                 .destination_pitch = out_pitch,
                 .destination_type = output_.type,
                 .row = part.row,
                 .rows = part.rows,
                 .channel = channel,
                 .channels = columns});
  }
}

}  // namespace fuselite::kernels
