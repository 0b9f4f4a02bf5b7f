#include "kernels/gemm/product_s16.h"

#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/packed_integers.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// A tile of sums that waits for its tail stays in L1.
constexpr int64_t kTailSums = 4096;

bool IsByte(DataType type) { return type == DataType::kInt8 || type == DataType::kUInt8; }

}  // namespace

Status ProductKernelS16::Init(const char* operation, const OpDescription& op,
                              const PlanContext& context, QuantizedTail tail, const Size& size,
                              bool a_copied) {
  if (!IsByte(op.inputs[0].type) && op.inputs[0].type != DataType::kInt16) {
    return Unsupported(DataTypeName(op.inputs[0].type),
                       " activations are neither 8-bit nor 16-bit");
  }
  if (!tail.wide && tail.bias_type != DataType::kNone && tail.bias_type != DataType::kInt32) {
    return Unsupported("a bias of ", DataTypeName(tail.bias_type));
  }
  x_offset_ = -op.inputs[0].quantization.zero_point();
  if (std::abs(x_offset_) > 255) return Unsupported("a zero point beyond 8 bits");
  tail_ = std::move(tail);
  return InitProduct(operation, op, context, size, a_copied);
}

Status ProductKernelS16::InitHybrid(const char* operation, const OpDescription& op,
                                    const PlanContext& context, HybridTail tail,
                                    int64_t rows_per_scale, const Size& size, bool a_copied) {
  hybrid_ = std::move(tail);
  rows_per_scale_ = rows_per_scale;
  store_hybrid_ = FindHybridRow(context.isa);
  return InitProduct(operation, op, context, size, a_copied);
}

Status ProductKernelS16::InitProduct(const char* operation, const OpDescription& op,
                                     const PlanContext& context, const Size& size, bool a_copied) {
  gemm_ = FindGemmS16(context.isa);
  functions_ = FindShortRowFunctions(context.isa);
  if (gemm_ == nullptr) return NoVectorTarget(context.isa);
  const TensorInfo& right = op.inputs[1];
  const bool shorts = right.type == DataType::kInt16 && tail_.wide;
  if (!IsByte(right.type) && !IsPacked(right.type) && !shorts) {
    return Unsupported(DataTypeName(right.type), " weights are not 8-bit");
  }
  x_type_ = op.inputs[0].type;
  right_type_ = right.type;
  right_offset_ = -right.quantization.zero_point();
  if (std::abs(right_offset_) > (shorts ? 0 : 255)) {
    return Unsupported("a zero point beyond ", shorts ? "0" : "8 bits");
  }
  output_ = op.outputs[0];
  size_ = size;
  wide_ = {.gemm = gemm_,
           .rows = FindWideRowFunctions(context.isa),
           .exact_terms = ExactTerms(right.type, right_offset_),
           .high_values = shorts ? plane_values() : 0};
  apply_tail_ = ApplyTail(context.isa);
  name_ = internal::Join(operation, store_hybrid_ == nullptr ? " " : " hybrid ",
                         DataTypeName(store_hybrid_ == nullptr ? x_type_ : right_type_), " ",
                         gemm_->tile_rows, "x", gemm_->panel, " ", SimdName(context.isa));
  blocks_ = SplitProduct({.rows = gemm_->tile_rows, .panel = gemm_->panel}, size.rows,
                         even_depth() * sizeof(int16_t), size.columns, size.products,
                         context.threads, a_copied);
  units_ = blocks_.units() * size.products;
  // A multiply-add is worth an eighth of what GrainFor counts.
  grain_ =
      GrainFor(blocks_.block_rows * std::min(blocks_.block_columns, size.columns) * size.depth / 8);
  a_bytes_ = a_copied ? AlignUp(blocks_.block_rows * even_depth() * sizeof(int16_t)) : 0;
  tile_bytes_ = std::max(kTailSums, blocks_.block_rows * gemm_->panel) * sizeof(int32_t);
  packed_at_run_ = !right.constant();
  return Status();
}

void ProductKernelS16::PackPanels(const void* data, int64_t matrix, int64_t begin, int64_t end,
                                  int16_t* to) const {
  using Bytes = GemmS16Source::Bytes;
  GemmS16Source source{.type = right_type_,
                       .data = data,
                       .first = matrix * size_.matrix_stride,
                       .k_stride = size_.k_stride,
                       .n_stride = size_.n_stride,
                       .offset = right_offset_,
                       .depth = size_.depth,
                       .columns = size_.columns};
  if (wide_.high_values == 0) return PackPanelsS16(source, gemm_->panel, begin, end, to);
  source.bytes = Bytes::kLow;
  PackPanelsS16(source, gemm_->panel, begin, end, to);
  source.bytes = Bytes::kHigh;
  PackPanelsS16(source, gemm_->panel, begin, end, to + wide_.high_values);
}

Status ProductKernelS16::Pack(const OpDescription& op, const BuildContext& context) {
  if (packed_at_run_) return Status();
  const TensorInfo& right = op.inputs[1];
  PackRequest request;
  request.source = right.data;
  request.source_bytes = right.bytes();
  request.bytes = static_cast<size_t>(matrix_values() * size_.matrices) * sizeof(int16_t);
  request.layout =
      internal::Join("gemm s16 p", gemm_->panel, " m", size_.matrices, "*", size_.matrix_stride,
                     " k", size_.depth, "*", size_.k_stride, " n", size_.columns, "*",
                     size_.n_stride, " +", right_offset_, " ", DataTypeName(right.type));
  FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* bytes) {
    for (int64_t m = 0; m < size_.matrices; ++m) {
      PackPanels(right.data, m, 0, gemm_->panels(size_.columns),
                 reinterpret_cast<int16_t*>(bytes) + m * matrix_values());
    }
  }));
  return Status();
}

int64_t ProductKernelS16::units(int phase) const {
  if (phase < rows_.phases()) return rows_.units();
  return phase + 1 == phases() ? units_ : size_.matrices * gemm_->panels(size_.columns);
}

int64_t ProductKernelS16::grain(int phase) const {
  if (phase < rows_.phases()) return rows_.grain();
  return phase + 1 == phases() ? grain_ : GrainFor(size_.depth * gemm_->panel);
}

size_t ProductKernelS16::shared_bytes() const {
  const size_t rows = rows_.phases() == 0 ? 0 : rows_.shared_bytes();
  return rows + (packs_at_run() ? matrix_values() * size_.matrices * sizeof(int16_t) : 0);
}

Status ProductKernelS16::Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const {
  if (phase < rows_.phases()) {
    rows_.Run(args.inputs[0], args.shared, phase, begin, end);
    return Status();
  }
  for (int64_t unit = begin; unit < end; ++unit) {
    if (phase + 1 == phases()) {
      Compute(args, unit);
      continue;
    }
    const int64_t panels = gemm_->panels(size_.columns), matrix = unit / panels;
    PackPanels(args.inputs[1], matrix, unit % panels, unit % panels + 1,
               const_cast<int16_t*>(Matrix(args, matrix)));
  }
  return Status();
}

const int16_t* ProductKernelS16::Matrix(const KernelArgs& args, int64_t matrix) const {
  const std::byte* packed = packs_at_run()
                                ? args.shared + (rows_.phases() == 0 ? 0 : rows_.shared_bytes())
                                : packed_->data();
  return reinterpret_cast<const int16_t*>(packed) + matrix * matrix_values();
}

ProductKernelS16::Part ProductKernelS16::PartOf(int64_t unit) const {
  Part part;
  part.column = unit % blocks_.column_blocks * blocks_.block_columns;
  unit /= blocks_.column_blocks;
  part.product = unit % size_.products;
  part.row = unit / size_.products * blocks_.block_rows;
  part.rows = std::min(blocks_.block_rows, blocks_.rows - part.row);
  part.columns = std::min(blocks_.block_columns, blocks_.columns - part.column);
  part.matrix = part.product;
  part.out_row = part.scale_row = part.row;
  part.channel = part.product * size_.columns + part.column;
  return part;
}

void ProductKernelS16::Widen(const KernelArgs& args, int64_t at, int64_t n, int16_t* to) const {
  if (x_type_ == DataType::kInt16) {
    std::copy_n(static_cast<const int16_t*>(args.inputs[0]) + at, n, to);
  } else if (x_type_ == DataType::kUInt8) {
    functions_->widen_u8(static_cast<const uint8_t*>(args.inputs[0]) + at, n, x_offset_, to);
  } else {
    functions_->widen_s8(static_cast<const int8_t*>(args.inputs[0]) + at, n, x_offset_, to);
  }
}

void ProductKernelS16::RunPart(const KernelArgs& args, const Part& part, const int16_t* a) const {
  auto* sums = reinterpret_cast<int32_t*>(args.scratch + a_bytes_);
  const int64_t fitting = kTailSums / part.rows / gemm_->panel * gemm_->panel;
  const int64_t step = std::max<int64_t>(gemm_->panel, fitting);
  Part block = part;
  for (int64_t n = 0; n < part.columns; n += step) {
    block.channel = part.channel + n;
    block.columns = std::min(step, part.columns - n);
    GemmS16Block product = BlockOf(args, block, a, part.column + n, sums);
    if (tail_.wide) {
      StoreWide(args, block, product);
      continue;
    }
    if (store_hybrid_ == nullptr && tail_.bias_type != DataType::kNone) {
      product.bias = static_cast<const int32_t*>(args.inputs[tail_.inputs.bias]) + block.channel;
    }
    gemm_->run(product);
    if (store_hybrid_ == nullptr) {
      Store(args, block, tail_.tail, DataType::kInt32, sums);
    } else {
      StoreFloats(args, block, sums);
    }
  }
}

GemmS16Block ProductKernelS16::BlockOf(const KernelArgs& args, const Part& part, const int16_t* a,
                                       int64_t column, int32_t* sums) const {
  return {.a = a,
          .rows = part.rows,
          .depth = even_depth(),
          .b = Matrix(args, part.matrix) + column * even_depth(),
          .columns = part.columns,
          .bias = nullptr,
          .c = sums,
          .c_pitch = part.columns};
}

void ProductKernelS16::StoreWide(const KernelArgs& args, const Part& part,
                                 const GemmS16Block& block) const {
  auto* totals = reinterpret_cast<int64_t*>(reinterpret_cast<std::byte*>(block.c) + tile_bytes_);
  const bool narrow = wide_.FitsNarrow(block.depth);
  if (narrow) {
    gemm_->run(block);
  } else {
    wide_.Multiply(block, totals, part.columns);
  }
  // Without a tail the values go to the output right away, otherwise they replace the sums.
  const bool tailed = output_.type != DataType::kInt16 || !tail_.tail.empty();
  auto* to = reinterpret_cast<int16_t*>(tailed ? reinterpret_cast<std::byte*>(block.c)
                                               : Destination(args, part));
  const int64_t pitch = tailed ? part.columns : output_.pitch();
  for (int64_t r = 0; r < part.rows; ++r) {
    const int64_t at = r * part.columns;
    int16_t* row = to + r * pitch;
    wide_.rows->scale(narrow ? tail_.WideRowOf(args, part.channel, part.columns, block.c + at, row)
                             : tail_.WideRowOf(args, part.channel, part.columns, totals + at, row));
  }
  if (tailed) Store(args, part, tail_.tail, DataType::kInt16, to);
}

std::byte* ProductKernelS16::Destination(const KernelArgs& args, const Part& part) const {
  return static_cast<std::byte*>(args.outputs[0]) +
         (part.out_row * output_.pitch() + part.channel) * BitWidth(output_.type) / 8;
}

// Without a tail the floats go to the output right away, otherwise they replace the sums.
void ProductKernelS16::StoreFloats(const KernelArgs& args, const Part& part, int32_t* sums) const {
  const bool tailed = output_.type != DataType::kFloat32 || !hybrid_.tail.rest.empty();
  auto* to = reinterpret_cast<float*>(tailed ? reinterpret_cast<std::byte*>(sums)
                                             : Destination(args, part));
  const int64_t pitch = tailed ? part.columns : output_.pitch();
  HybridRow row{.sums = sums,
                .n = part.columns,
                .scale = 0,
                .scales = hybrid_.scales.data() + part.channel,
                .weights_first = hybrid_.weights_first,
                .bias = nullptr,
                .min = hybrid_.tail.min,
                .max = hybrid_.tail.max,
                .to = to};
  if (hybrid_.bias >= 0) {
    row.bias = static_cast<const float*>(args.inputs[hybrid_.bias]) + part.channel;
  }
  for (int64_t r = 0; r < part.rows; ++r, row.sums += part.columns, row.to += pitch) {
    row.scale = rows_.Scale(args.shared, (part.scale_row + r) / rows_per_scale_);
    store_hybrid_(row);
  }
  if (tailed) Store(args, part, hybrid_.tail.rest, DataType::kFloat32, sums);
}

void ProductKernelS16::Store(const KernelArgs& args, const Part& part, const Tail& tail,
                             DataType type, const void* values) const {
  apply_tail_(tail, args.inputs,
              {.source = values,
               .source_pitch = part.columns,
               .source_type = type,
               .destination = Destination(args, part),
               .destination_pitch = output_.pitch(),
               .destination_type = output_.type,
               .row = part.out_row,
               .rows = part.rows,
               .channel = part.channel,
               .channels = part.columns});
}

}  // namespace fuselite::kernels
