#include "kernels/gemm/unpacked_product.h"

#include <algorithm>

#include "kernels/simd.h"
#include "runtime/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

template <class T, class To>
const To* Gathered(const void* from, int64_t at, int64_t step, int64_t n, int32_t zero, To* to) {
  const T* value = static_cast<const T*>(from) + at;
  for (int64_t i = 0; i < n; ++i, value += step) to[i] = static_cast<To>(*value - zero);
  return to;
}

bool OneScale(const TailStage& stage) {
  switch (stage.kind) {
    case TailStage::Kind::kRequantize: return stage.requantize.multipliers.size() == 1;
    case TailStage::Kind::kRescale: return stage.real_scales.size() == 1;
    default: return false;
  }
}

}  // namespace

Result<UnpackedProduct> UnpackedProduct::Make(const OpDescription& op, Activation activation,
                                              DataType bias_hint, int64_t channels, int64_t depth,
                                              bool down, int64_t line_step, Isa isa) {
  const UnpackedFunctions* const functions = FindUnpackedFunctions(isa);
  if (functions == nullptr) return NoVectorTarget(isa);
  const TensorInfo &line = op.inputs[down ? 1 : 0], &others = op.inputs[down ? 0 : 1];
  UnpackedProduct product;
  product.type_ = line.type;
  product.apply_ = ApplyTail(isa);
  product.rows_ = FindShortRowFunctions(isa);
  product.output_ = op.outputs[0];
  product.line_input_ = down ? 1 : 0;
  product.depth_ = depth;
  product.line_step_ = line_step;
  const int bias = op.op->product_inputs->bias;
  if (op.has_input(bias)) product.bias_ = bias;
  if (others.type != line.type) return Unsupported("operands of two types");
  if (line.type == DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(product.floats_, MakeFloatTail(op, activation));
    product.sums_ = functions->floats;
    product.alike_ = product.floats_.rest.empty();
    if (line_step != 1) product.line_bytes_ = AlignUp(depth * sizeof(float));
    return product;
  }
  if (line.type != DataType::kInt8 && line.type != DataType::kUInt8) {
    return Unsupported(DataTypeName(line.type), " is not read where it lies");
  }
  FUSELITE_ASSIGN_OR_RETURN(product.bytes_, MakeQuantizedTail(op, activation, bias_hint, channels));
  product.sums_ = line.type == DataType::kInt8 ? functions->int8 : functions->uint8;
  product.alike_ = BitWidth(op.outputs[0].type) == 8 && op.tail.empty() &&
                   std::ranges::all_of(product.bytes_.tail.stages, OneScale);
  product.line_zero_ = line.quantization.zero_point();
  product.others_zero_ = others.quantization.zero_point();
  product.line_bytes_ = AlignUp(depth * sizeof(int16_t));
  return product;
}

const void* UnpackedProduct::Line(const KernelArgs& args, int64_t at) const {
  const void* const input = args.inputs[line_input_];
  if (type_ == DataType::kFloat32) {
    if (line_step_ == 1) return static_cast<const float*>(input) + at;
    auto* const reals = reinterpret_cast<float*>(args.scratch);
    return Gathered<float>(input, at, line_step_, depth_, 0, reals);
  }
  auto* const line = reinterpret_cast<int16_t*>(args.scratch);
  if (line_step_ != 1) {
    return type_ == DataType::kInt8
               ? Gathered<int8_t>(input, at, line_step_, depth_, line_zero_, line)
               : Gathered<uint8_t>(input, at, line_step_, depth_, line_zero_, line);
  }
  if (type_ == DataType::kInt8) {
    rows_->widen_s8(static_cast<const int8_t*>(input) + at, depth_, -line_zero_, line);
  } else {
    rows_->widen_u8(static_cast<const uint8_t*>(input) + at, depth_, -line_zero_, line);
  }
  return line;
}

void UnpackedProduct::AddBias(const KernelArgs& args, int64_t channel, int64_t n,
                              void* sums) const {
  if (type_ != DataType::kFloat32) {
    auto* const integers = static_cast<int32_t*>(sums);
    for (int64_t i = 0; bytes_.bias_type != DataType::kNone && i < n; ++i) {
      const auto bias = static_cast<uint64_t>(bytes_.Bias(args, channel + i));
      integers[i] = static_cast<int32_t>(static_cast<uint64_t>(integers[i]) + bias);
    }
    return;
  }
  auto* const reals = static_cast<float*>(sums);
  const float* bias = bias_ < 0 ? nullptr : static_cast<const float*>(args.inputs[bias_]) + channel;
  for (int64_t i = 0; i < n; ++i) {
    const float sum = bias != nullptr ? reals[i] + bias[i] : reals[i];
    reals[i] = std::min(std::max(sum, floats_.min), floats_.max);
  }
}

void UnpackedProduct::StoreDown(const KernelArgs& args, void* sums, int64_t n,
                                std::byte* to) const {
  const int64_t pitch = output_.pitch();
  if (type_ == DataType::kFloat32) {
    const auto* from = static_cast<const float*>(sums);
    if (pitch == 1) {
      std::copy_n(from, n, reinterpret_cast<float*>(to));
      return;
    }
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<float*>(to)[i * pitch] = from[i];
    return;
  }
  std::byte gathered[kBlock];
  std::byte* const bytes = pitch == 1 ? to : gathered;
  apply_(bytes_.tail, args.inputs,
         {.source = sums,
          .source_pitch = n,
          .source_type = DataType::kInt32,
          .destination = bytes,
          .destination_pitch = n,
          .destination_type = output_.type,
          .row = 0,
          .rows = 1,
          .channel = 0,
          .channels = n});
  for (int64_t i = 0; pitch != 1 && i < n; ++i) to[i * pitch] = bytes[i];
}

void UnpackedProduct::Run(const KernelArgs& args, int64_t line, int64_t others, int64_t n,
                          int64_t row, int64_t channel) const {
  const bool real = type_ == DataType::kFloat32, down = line_input_ == 1;
  void* const sums = args.scratch + line_bytes_;
  const int64_t value_bytes = BitWidth(type_) / 8, out_bytes = BitWidth(output_.type) / 8;
  sums_({Line(args, line),
         static_cast<const std::byte*>(args.inputs[down ? 0 : 1]) + others * value_bytes, depth_, n,
         others_zero_, sums});
  AddBias(args, channel, n, sums);
  auto* const to =
      static_cast<std::byte*>(args.outputs[0]) + (row * output_.pitch() + channel) * out_bytes;
  if (down && alike_) return StoreDown(args, sums, n, to);
  apply_(real ? floats_.rest : bytes_.tail, args.inputs,
         {.source = sums,
          .source_pitch = down ? 1 : n,
          .source_type = real ? DataType::kFloat32 : DataType::kInt32,
          .destination = to,
          .destination_pitch = output_.pitch(),
          .destination_type = output_.type,
          .row = row,
          .rows = down ? n : 1,
          .channel = channel,
          .channels = down ? 1 : n});
}

}  // namespace fuselite::kernels
