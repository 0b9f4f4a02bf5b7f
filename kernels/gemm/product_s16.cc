#include "kernels/gemm/product_s16.h"

#include <algorithm>

#include "kernels/gemm/quantized_operands.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// A tile of sums that waits for its tail stays in L1.
constexpr int64_t kTailSums = 4096;

bool IsByte(DataType type) { return type == DataType::kInt8 || type == DataType::kUInt8; }

// One matrix: element (k, n) is weights[first + n * depth + k] + offset.
template <class Weights>
void PackPairs(const Weights& weights, int64_t first, int32_t offset, int64_t depth,
               int64_t columns, int panel, int16_t* to) {
  for (int64_t n0 = 0; n0 < columns; n0 += panel) {
    for (int64_t k = 0; k < depth; k += 2) {
      for (int64_t n = n0; n < n0 + panel; ++n, to += 2) {
        const int64_t at = first + n * depth + k;
        to[0] = n < columns ? static_cast<int16_t>(weights[at] + offset) : 0;
        to[1] = n < columns && k + 1 < depth ? static_cast<int16_t>(weights[at + 1] + offset) : 0;
      }
    }
  }
}

}  // namespace

Status ProductKernelS16::Init(const char* operation, const OpDescription& op,
                              const BuildContext& context, QuantizedTail tail, const Size& size) {
  gemm_ = FindGemmS16(context.isa);
  if (gemm_ == nullptr) return Unsupported("no vector target at isa=", IsaName(context.isa));
  x_type_ = op.inputs[0].type;
  const TensorInfo& weights = op.inputs[1];
  if (!IsByte(x_type_) || !(IsByte(weights.type) || weights.type == DataType::kInt4)) {
    return Unsupported(DataTypeName(x_type_), " with ", DataTypeName(weights.type),
                       " weights are not 8-bit");
  }
  if (!weights.constant()) return Unsupported("weights that are not constant");
  x_offset_ = -op.inputs[0].quantization.zero_point();
  if (std::abs(x_offset_) > 255) return Unsupported("a zero point beyond 8 bits");
  tail_ = std::move(tail);
  size_ = size;
  apply_tail_ = ApplyTail(context.isa);
  name_ = internal::Join(operation, " ", DataTypeName(x_type_), " ", gemm_->tile_rows, "x",
                         gemm_->panel, " ", SimdName(context.isa));
  blocks_ = SplitProduct({.rows = gemm_->tile_rows, .panel = gemm_->panel}, size.rows,
                         even_depth() * sizeof(int16_t), size.columns, size.matrices,
                         context.threads, true);
  units_ = blocks_.units() * size.matrices;
  // A multiply-add is worth an eighth of what GrainFor counts.
  grain_ =
      GrainFor(blocks_.block_rows * std::min(blocks_.block_columns, size.columns) * size.depth / 8);
  a_bytes_ = AlignUp(blocks_.block_rows * even_depth() * sizeof(int16_t));
  tile_bytes_ = std::max(kTailSums, blocks_.block_rows * gemm_->panel) * sizeof(int32_t);
  return PackWeights(op, context);
}

Status ProductKernelS16::PackWeights(const OpDescription& op, const BuildContext& context) {
  const TensorInfo& weights = op.inputs[1];
  const int32_t offset = -weights.quantization.zero_point();
  if (std::abs(offset) > 255) return Unsupported("a zero point beyond 8 bits");
  const int64_t values = gemm_->PackedValues(size_.depth, size_.columns);
  PackRequest request;
  request.source = weights.data;
  request.source_bytes = weights.bytes();
  request.bytes = static_cast<size_t>(values * size_.matrices) * sizeof(int16_t);
  request.layout =
      internal::Join("gemm s16 p", gemm_->panel, " m", size_.matrices, " k", size_.depth, " n",
                     size_.columns, " +", offset, " ", DataTypeName(weights.type));
  FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* bytes) {
    for (int64_t m = 0; m < size_.matrices; ++m) {
      // The activations' type is only there to pick the weights'.
      const DataType x = weights.type == DataType::kUInt8 ? DataType::kUInt8 : DataType::kInt8;
      WithQuantizedOperands(
          x, nullptr, weights.type, weights.data, [&](const auto*, const auto& w) {
            PackPairs(w, m * size_.columns * size_.depth, offset, size_.depth, size_.columns,
                      gemm_->panel, reinterpret_cast<int16_t*>(bytes) + m * values);
          });
    }
  }));
  return Status();
}

ProductKernelS16::Part ProductKernelS16::PartOf(int64_t unit) const {
  Part part;
  part.column = unit % blocks_.column_blocks * blocks_.block_columns;
  unit /= blocks_.column_blocks;
  part.matrix = unit % size_.matrices;
  part.row = unit / size_.matrices * blocks_.block_rows;
  part.rows = std::min(blocks_.block_rows, blocks_.rows - part.row);
  part.columns = std::min(blocks_.block_columns, blocks_.columns - part.column);
  return part;
}

void ProductKernelS16::Widen(const KernelArgs& args, int64_t at, int64_t n, int16_t* to) const {
  if (x_type_ == DataType::kUInt8) {
    gemm_->widen_u8(static_cast<const uint8_t*>(args.inputs[0]) + at, n, x_offset_, to);
  } else {
    gemm_->widen_s8(static_cast<const int8_t*>(args.inputs[0]) + at, n, x_offset_, to);
  }
}

void ProductKernelS16::RunPart(const KernelArgs& args, const Part& part) const {
  auto* sums = reinterpret_cast<int32_t*>(args.scratch + a_bytes_);
  const auto* packed = reinterpret_cast<const int16_t*>(packed_->data()) +
                       part.matrix * gemm_->PackedValues(size_.depth, size_.columns);
  const int64_t fitting = kTailSums / part.rows / gemm_->panel * gemm_->panel;
  const int64_t step = std::max<int64_t>(gemm_->panel, fitting);
  const TensorInfo& output = tail_.output;
  for (int64_t n = 0; n < part.columns; n += step) {
    const int64_t columns = std::min(step, part.columns - n);
    const int64_t channel = part.matrix * size_.columns + part.column + n;
    const auto* bias = tail_.bias_type == DataType::kNone
                           ? nullptr
                           : static_cast<const int32_t*>(args.inputs[tail_.inputs.bias]) + channel;
    gemm_->run({.a = LeftSide(args),
                .rows = part.rows,
                .depth = even_depth(),
                .b = packed + (part.column + n) * even_depth(),
                .columns = columns,
                .bias = bias,
                .c = sums,
                .c_pitch = columns});
    apply_tail_(tail_.tail, args.inputs,
                {.source = sums,
                 .source_pitch = columns,
                 .source_type = DataType::kInt32,
                 .destination = static_cast<std::byte*>(args.outputs[0]) +
                                (part.row * output.pitch() + channel) * BitWidth(output.type) / 8,
                 .destination_pitch = output.pitch(),
                 .destination_type = output.type,
                 .row = part.row,
                 .rows = part.rows,
                 .channel = channel,
                 .channels = columns});
  }
}

}  // namespace fuselite::kernels
