#include "kernels/unpacked/unpacked_product.h"

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

template <class T, class To>
const To* Gathered(const void* from, int64_t at, int64_t step, int64_t n, int32_t zero, To* to) {
  const T* value = static_cast<const T*>(from) + at;
  for (int64_t i = 0; i < n; ++i, value += step) to[i] = static_cast<To>(*value - zero);
  return to;
}

// To every `step`-th value, which has the sums' type.
void StoreSums(const void* sums, int64_t n, int64_t step, std::byte* to) {
  const auto* from = static_cast<const std::byte*>(sums);
  constexpr int64_t kBytes = sizeof(int32_t);
  if (step == 1) {
    std::memcpy(to, from, n * kBytes);
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * step * kBytes, from + i * kBytes, kBytes);
}

bool OneScale(const TailStage& stage) {
  switch (stage.kind) {
    case TailStage::Kind::kRequantize: return stage.requantize.multipliers.size() == 1;
    case TailStage::Kind::kRescale: return stage.real_scales.size() == 1;
    default: return false;
  }
}

}  // namespace

Result<UnpackedProduct> UnpackedProduct::Make(const OpDescription& op, const UnpackedFormat& format,
                                              Isa isa) {
  const UnpackedFunctions* const functions = FindUnpackedFunctions(isa);
  if (functions == nullptr) return NoVectorTarget(isa);
  const TensorInfo& line = op.inputs[format.down ? 1 : 0];
  const TensorInfo& others = op.inputs[format.down ? 0 : 1];
  const bool hybrid = line.type == DataType::kFloat32 && others.type == DataType::kInt8;
  if (hybrid ? format.down : others.type != line.type)
    return Unsupported("does not take operands of two types");
  UnpackedProduct product;
  switch (others.type) {
    case DataType::kFloat32:
      product.sums_ = format.term_step > 0 ? functions->floats_across : functions->floats;
      break;
    case DataType::kInt8: product.sums_ = functions->int8; break;
    case DataType::kUInt8: product.sums_ = functions->uint8; break;
    default: return Unsupported("does not read ", DataTypeName(others.type), " where it lies");
  }
  product.type_ = line.type;
  product.other_bytes_ = BitWidth(others.type) / 8;
  product.apply_ = ApplyTail(isa);
  product.rows_ = FindShortRowFunctions(isa);
  product.store_hybrid_ = FindHybridRow(isa);
  product.output_ = op.outputs[0];
  product.line_input_ = format.down ? 1 : 0;
  product.depth_ = format.depth;
  product.line_step_ = format.line_step;
  product.term_step_ = format.term_step;
  product.asymmetric_ = format.asymmetric;
  const int bias = op.op->product_inputs->bias;
  if (op.has_input(bias)) product.bias_ = bias;
  FUSELITE_RETURN_IF_ERROR(product.MakeTail(op, format));
  if (line.type == DataType::kFloat32) {
    if (hybrid) product.line_bytes_ += AlignUp(format.depth * sizeof(int16_t));
    if (format.line_step != 1) product.line_bytes_ += AlignUp(format.depth * sizeof(float));
    return product;
  }
  product.line_zero_ = line.quantization.zero_point();
  product.others_zero_ = others.quantization.zero_point();
  product.line_bytes_ = AlignUp(format.depth * sizeof(int16_t));
  return product;
}

std::string UnpackedProduct::types() const {
  return hybrid_ ? "hybrid int8" : std::string(DataTypeName(type_));
}

Status UnpackedProduct::MakeTail(const OpDescription& op, const UnpackedFormat& format) {
  if (type_ != DataType::kFloat32) {
    FUSELITE_ASSIGN_OR_RETURN(
        bytes_, MakeQuantizedTail(op, format.activation, format.bias_hint, format.channels));
    unchanged_ = output_.type == DataType::kInt32 && bytes_.tail.stages.empty();
    alike_ = BitWidth(output_.type) == 8 && op.tail.empty() &&
             std::ranges::all_of(bytes_.tail.stages, OneScale);
    return Status();
  }
  if (other_bytes_ == sizeof(float)) {
    FUSELITE_ASSIGN_OR_RETURN(floats_, MakeFloatTail(op, format.activation));
  } else {
    FUSELITE_ASSIGN_OR_RETURN(hybrid_, MakeHybridTail(op, format.activation, format.channels));
    floats_ = hybrid_->tail;
  }
  unchanged_ = floats_.rest.empty();
  return Status();
}

UnpackedProduct::Line UnpackedProduct::PrepareLine(const KernelArgs& args, int64_t at) const {
  const void* const input = args.inputs[line_input_];
  if (type_ == DataType::kFloat32) {
    const float* reals = static_cast<const float*>(input) + at;
    if (line_step_ != 1) {
      const size_t before = hybrid_ ? AlignUp(depth_ * sizeof(int16_t)) : 0;
      reals = Gathered<float>(input, at, line_step_, depth_, 0,
                              reinterpret_cast<float*>(args.scratch + before));
    }
    return hybrid_ ? QuantizedLine(args, reals) : Line{reals, 1};
  }
  auto* const line = reinterpret_cast<int16_t*>(args.scratch);
  if (line_step_ != 1) {
    type_ == DataType::kInt8 ? Gathered<int8_t>(input, at, line_step_, depth_, line_zero_, line)
                             : Gathered<uint8_t>(input, at, line_step_, depth_, line_zero_, line);
  } else if (type_ == DataType::kInt8) {
    rows_->widen_s8(static_cast<const int8_t*>(input) + at, depth_, -line_zero_, line);
  } else {
    rows_->widen_u8(static_cast<const uint8_t*>(input) + at, depth_, -line_zero_, line);
  }
  return {line, 1};
}

UnpackedProduct::Line UnpackedProduct::QuantizedLine(const KernelArgs& args,
                                                     const float* values) const {
  auto* const line = reinterpret_cast<int16_t*>(args.scratch);
  DynamicRange range{values[0], values[0]};
  rows_->extend_range(values, depth_, &range);
  const DynamicScale scale = MakeDynamicScale(range, asymmetric_);
  rows_->quantize(values, depth_, scale, line);
  return {line, scale.scale};
}

void UnpackedProduct::AddBias(const KernelArgs& args, int64_t channel, int64_t n,
                              void* sums) const {
  const int64_t step = line_input_ == 1 ? 0 : 1;  // down a channel it is one
  if (type_ != DataType::kFloat32) {
    auto* const integers = static_cast<int32_t*>(sums);
    for (int64_t i = 0; bytes_.bias_type != DataType::kNone && i < n; ++i) {
      const auto bias = static_cast<uint64_t>(bytes_.Bias(args, channel + i * step));
      integers[i] = static_cast<int32_t>(static_cast<uint64_t>(integers[i]) + bias);
    }
    return;
  }
  auto* const reals = static_cast<float*>(sums);
  if (bias_ >= 0) {
    const float* const bias = static_cast<const float*>(args.inputs[bias_]) + channel;
    for (int64_t i = 0; i < n; ++i) reals[i] += bias[i * step];
  }
  // A copy, which the sums that are written cannot change.
  const float min = floats_.min, max = floats_.max;
  for (int64_t i = 0; i < n; ++i) reals[i] = std::min(std::max(reals[i], min), max);
}

void UnpackedProduct::StoreDown(const KernelArgs& args, void* sums, int64_t n,
                                std::byte* to) const {
  const int64_t pitch = output_.pitch();
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

void UnpackedProduct::Dequantize(const KernelArgs& args, float scale, int64_t channel, int64_t n,
                                 void* sums) const {
  const float* bias = bias_ < 0 ? nullptr : static_cast<const float*>(args.inputs[bias_]) + channel;
  store_hybrid_({.sums = static_cast<const int32_t*>(sums),
                 .n = n,
                 .scale = scale,
                 .scales = hybrid_->scales.data() + channel,
                 .weights_first = hybrid_->weights_first,
                 .bias = bias,
                 .min = floats_.min,
                 .max = floats_.max,
                 .to = static_cast<float*>(sums)});
}

std::byte* UnpackedProduct::Output(const KernelArgs& args, int64_t row, int64_t channel) const {
  const int64_t out_bytes = BitWidth(output_.type) / 8;
  return static_cast<std::byte*>(args.outputs[0]) + (row * output_.pitch() + channel) * out_bytes;
}

void UnpackedProduct::Store(const KernelArgs& args, void* sums, int64_t n, int64_t row,
                            int64_t channel) const {
  const bool real = type_ == DataType::kFloat32, down = line_input_ == 1;
  std::byte* const to = Output(args, row, channel);
  // The function for any tail takes 30 ns to leave a single sum as it is (Zen 4).
  if (unchanged_) return StoreSums(sums, n, down ? output_.pitch() : 1, to);
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

void UnpackedProduct::Run(const KernelArgs& args, int64_t line, int64_t others, int64_t n,
                          int64_t row, int64_t channel) const {
  const bool down = line_input_ == 1;
  const auto* values = static_cast<const std::byte*>(args.inputs[down ? 0 : 1]);
  const bool in_place = unchanged_ && !down;
  const Line prepared = PrepareLine(args, line);
  const int64_t step = term_step_ > 0 ? 1 : depth_;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    const int64_t to_row = down ? row + first : row, to_channel = down ? channel : channel + first;
    void* const sums = in_place ? Output(args, to_row, to_channel) : args.scratch + line_bytes_;
    sums_({.x = prepared.values,
           .w = values + (others + first * step) * other_bytes_,
           .depth = depth_,
           .units = count,
           .w_zero = others_zero_,
           .sums = sums,
           .term_step = term_step_});
    if (hybrid_) {
      Dequantize(args, prepared.scale, to_channel, count, sums);
    } else {
      AddBias(args, to_channel, count, sums);
    }
    if (!in_place) Store(args, sums, count, to_row, to_channel);
  }
}

bool ReadsOneUnitOfBytes(const OpDescription& op, int64_t rows) {
  constexpr int64_t kManyRows = 16, kDeep = 128;
  const TensorInfo &in = op.inputs[0], &weights = op.inputs[1];
  const bool bytes = in.type == DataType::kInt8 || in.type == DataType::kUInt8;
  const int64_t depth = weights.shape.dim(-1);
  return bytes && weights.type == in.type && op.tail.empty() && rows >= kManyRows &&
         depth >= kDeep && weights.shape.elements() == depth;
}

// More rows than units go down: of a unit, the sums with several rows are computed at once.
Result<std::unique_ptr<Kernel>> MakeUnpackedLayer(std::string_view name, const OpDescription& op,
                                                  UnpackedFormat format, const UnpackedLayer& layer,
                                                  Isa isa) {
  const bool alike = op.inputs[0].type == op.inputs[1].type;
  const bool down = alike && layer.pitch == layer.depth && layer.rows > layer.units;
  format.channels = layer.units;
  format.depth = layer.depth;
  format.down = down;
  FUSELITE_ASSIGN_OR_RETURN(const UnpackedProduct product, UnpackedProduct::Make(op, format, isa));
  const UnpackedUnits units{.lines = down ? layer.units : layer.rows,
                            .others = down ? layer.rows : layer.units};
  return MakeKernel(internal::Join(name, ' ', product.types(), " unpacked ", SimdName(isa)),
                    {.units = units.count(),
                     .grain = units.grain(layer.depth),
                     .scratch_bytes = product.scratch_bytes()},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      units.ForEachLine(begin, end, [&](int64_t line, int64_t first, int64_t n) {
                        const int64_t at = line * (down ? layer.depth : layer.pitch);
                        product.Run(args, at, first * layer.depth, n, down ? first : line,
                                    down ? line : first);
                      });
                    });
}

int64_t UnpackedUnits::grain(int64_t depth) const {
  return GrainFor(depth * std::min(others, UnpackedProduct::kBlock) / 4);
}

}  // namespace fuselite::kernels
