#include "kernels/lstm/products.h"

#include <cstring>
#include <numeric>

#include "kernels/lstm/lstm.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

// By how much bytes of activations are raised, beside their zero point.
constexpr int32_t kRaised = 128;

// Tensors of one shape as one matrix, aligned for whatever its values are.
class JoinedWeights {
 public:
  // Without memory for a copy data() is null.
  explicit JoinedWeights(std::span<const TensorInfo> weights) : weights_(weights.front()) {
    data_ = weights_.data;
    columns_ = weights_.shape[0] * static_cast<int64_t>(weights.size());
    const auto misaligned = reinterpret_cast<uintptr_t>(data_) % alignof(float) != 0;
    if (weights.size() == 1 && !misaligned) return;
    copy_ = AlignedBuffer(bytes());
    data_ = copy_.data();
    if (data_ == nullptr) return;
    std::byte* to = copy_.data();
    for (const TensorInfo& part : weights) {
      std::memcpy(to, part.data, part.bytes());
      to += part.bytes();
    }
  }

  const void* data() const { return data_; }
  int64_t columns() const { return columns_; }
  int64_t depth() const { return weights_.shape[1]; }

  // Of bytes.
  GemmS16Source Source(int32_t offset) const {
    return {.type = weights_.type,
            .data = data_,
            .first = 0,
            .k_stride = 1,
            .n_stride = depth(),
            .offset = offset,
            .depth = depth(),
            .columns = columns_};
  }

  // All but the size of what is packed.
  PackRequest Request(std::string_view type, int panel) const {
    PackRequest request;
    request.source = data_;
    request.source_bytes = bytes();
    request.layout = internal::Join("lstm ", type, " p", panel, " k", depth(), " n", columns());
    return request;
  }

 private:
  size_t bytes() const { return weights_.bytes() / weights_.shape[0] * columns_; }

  const TensorInfo& weights_;
  const void* data_;
  int64_t columns_;
  AlignedBuffer copy_;
};

Status NoMemoryToJoin() { return OutOfMemory("no memory to join the gates' weights"); }

}  // namespace

Status CheckLstmWeights(const TensorInfo& weights) {
  return weights.constant() ? Status() : Unsupported("weights are not constant");
}

Status LstmProducts::Init(const OpDescription& op, Isa isa) {
  gemm_f32_ = FindGemmF32(isa);
  if (gemm_f32_ == nullptr) return NoVectorTarget(isa);
  if (!IsHybridLstm(op)) return Status();
  gemm_s16_ = FindGemmQuads(isa);
  bytes_ = gemm_s16_ != nullptr;
  if (!bytes_) gemm_s16_ = FindGemmS16(isa);
  quantize_ = FindShortRowFunctions(isa);
  store_ = FindHybridRow(isa);
  asymmetric_ = op.params.as<LstmParams>().asymmetric_quantize_inputs;
  return Status();
}

Result<PackedWeights> PackLstmF32(std::span<const TensorInfo> weights, const GemmF32& gemm,
                                  const BuildContext& context) {
  const JoinedWeights joined(weights);
  if (joined.data() == nullptr) return NoMemoryToJoin();
  PackRequest request = joined.Request("f32", gemm.panel);
  request.bytes = gemm.PackedBytes(joined.depth(), joined.columns());
  return context.Pack(request, [&](std::byte* to) {
    PackPanelsF32({.base = static_cast<const float*>(joined.data()),
                   .k_stride = 1,
                   .n_stride = joined.depth(),
                   .depth = joined.depth(),
                   .columns = joined.columns()},
                  gemm.panel, 0, gemm.panels(joined.columns()), reinterpret_cast<float*>(to));
  });
}

Result<PackedWeights> PackLstmS16(std::span<const TensorInfo> weights, int32_t offset,
                                  const GemmS16& gemm, const BuildContext& context) {
  const JoinedWeights joined(weights);
  if (joined.data() == nullptr) return NoMemoryToJoin();
  PackRequest request = joined.Request(
      internal::Join(DataTypeName(weights.front().type), " s16 ", offset), gemm.panel);
  request.bytes = gemm.PackedValues(joined.depth(), joined.columns()) * sizeof(int16_t);
  return context.Pack(request, [&](std::byte* to) {
    PackPanelsS16(joined.Source(offset), gemm.panel, 0, gemm.panels(joined.columns()),
                  reinterpret_cast<int16_t*>(to));
  });
}

Result<PackedWeights> PackLstmQuads(std::span<const TensorInfo> weights, const GemmS16& gemm,
                                    const BuildContext& context) {
  const JoinedWeights joined(weights);
  if (joined.data() == nullptr) return NoMemoryToJoin();
  PackRequest request = joined.Request("quads", gemm.panel);
  request.bytes = gemm.panels(joined.columns()) * gemm.panel * ((joined.depth() + 3) & ~int64_t{3});
  return context.Pack(request, [&](std::byte* to) {
    PackQuads(joined.Source(0), gemm.panel, reinterpret_cast<int8_t*>(to));
  });
}

std::vector<int32_t> LstmWeightSums(std::span<const TensorInfo> weights) {
  std::vector<int32_t> sums;
  for (const TensorInfo& part : weights) {
    const auto* row = static_cast<const int8_t*>(part.data);
    const int64_t depth = part.shape[1];
    for (int64_t n = 0; n < part.shape[0]; ++n, row += depth) {
      sums.push_back(std::accumulate(row, row + depth, int32_t{0}));
    }
  }
  return sums;
}

Result<LstmMatrix> LstmProducts::Pack(std::span<const TensorInfo> weights,
                                      const BuildContext& context) const {
  LstmMatrix matrix;
  matrix.depth = weights.front().shape[1];
  for (const TensorInfo& part : weights) {
    matrix.columns += part.shape[0];
    if (hybrid()) matrix.scales.resize(matrix.columns, part.quantization.scale());
  }
  if (bytes_) {
    matrix.sums = LstmWeightSums(weights);
    FUSELITE_ASSIGN_OR_RETURN(matrix.packed, PackLstmQuads(weights, *gemm_s16_, context));
  } else {
    FUSELITE_ASSIGN_OR_RETURN(matrix.packed, hybrid() ? PackLstmS16(weights, 0, *gemm_s16_, context)
                                                      : PackLstmF32(weights, *gemm_f32_, context));
  }
  return matrix;
}

size_t LstmProducts::scales_at(int64_t rows, int64_t depth) const {
  return AlignUp(rows * RowBytes(depth));
}

size_t LstmProducts::offsets_at(int64_t rows, int64_t depth) const {
  return scales_at(rows, depth) + AlignUp(rows * sizeof(float));
}

size_t LstmProducts::sums_at(int64_t rows, int64_t depth) const {
  return offsets_at(rows, depth) + AlignUp(rows * sizeof(int32_t));
}

size_t LstmProducts::scratch_bytes(int64_t rows, int64_t depth, int64_t columns) const {
  return hybrid() ? sums_at(rows, depth) + AlignUp(rows * columns * sizeof(int32_t)) : 0;
}

LstmRows LstmProducts::Prepare(const float* values, int64_t rows, int64_t pitch, int64_t depth,
                               std::byte* scratch) const {
  if (!hybrid()) return {.values = values, .count = rows, .pitch = pitch};
  auto* scales = reinterpret_cast<float*>(scratch + scales_at(rows, depth));
  auto* offsets = reinterpret_cast<int32_t*>(scratch + offsets_at(rows, depth));
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = values + r * pitch;
    std::byte* const to = scratch + r * RowBytes(depth);
    DynamicRange range{row[0], row[0]};
    quantize_->extend_range(row, depth, &range);
    const DynamicScale scale = MakeDynamicScale(range, asymmetric_);
    scales[r] = scale.scale;
    offsets[r] = -(scale.offset + kRaised);
    if (bytes_) {
      // What is behind the last value meets weights of 0.
      quantize_->quantize_u8(row, depth, scale, reinterpret_cast<uint8_t*>(to));
      continue;
    }
    auto* const shorts = reinterpret_cast<int16_t*>(to);
    quantize_->quantize(row, depth, scale, shorts);
    if (depth % 2 == 1) shorts[depth] = 0;
  }
  return {.values = values,
          .count = rows,
          .quantized = reinterpret_cast<const int16_t*>(scratch),
          .scales = scales,
          .offsets = offsets};
}

void LstmProducts::Multiply(const LstmMatrix& matrix, const LstmRows& rows, const Output& to,
                            std::byte* scratch) const {
  if (!hybrid()) {
    return gemm_f32_->run({.a = rows.values,
                           .a_pitch = rows.pitch,
                           .rows = rows.count,
                           .depth = matrix.depth,
                           .b = matrix.packed->as<float>(),
                           .columns = matrix.columns,
                           .bias = to.bias,
                           .min = -to.bound,
                           .max = to.bound,
                           .c = to.c,
                           .c_pitch = to.c_pitch,
                           .backwards = to.backwards});
  }
  auto* sums = reinterpret_cast<int32_t*>(scratch + sums_at(rows.count, matrix.depth));
  gemm_s16_->run({.a = rows.quantized,
                  .rows = rows.count,
                  .depth = RowBytes(matrix.depth) / 2,
                  .b = matrix.packed->as<int16_t>(),
                  .columns = matrix.columns,
                  .bias = nullptr,
                  .c = sums,
                  .c_pitch = matrix.columns,
                  .backwards = to.backwards});
  for (int64_t r = 0; r < rows.count; ++r) {
    store_({.sums = sums + r * matrix.columns,
            .weight_sums = bytes_ ? matrix.sums.data() : nullptr,
            .offset = rows.offsets[r],
            .n = matrix.columns,
            .scale = rows.scales[r],
            .scales = matrix.scales.data(),
            .weights_first = false,
            .bias = to.bias,
            .min = -to.bound,
            .max = to.bound,
            .to = to.c + r * to.c_pitch});
  }
}

}  // namespace fuselite::kernels
