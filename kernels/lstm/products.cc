#include "kernels/lstm/products.h"

#include <cstring>

#include "kernels/lstm/lstm.h"
#include "kernels/simd.h"
#include "runtime/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

int64_t Even(int64_t depth) { return (depth + 1) & ~int64_t{1}; }

// All but the size of what is packed.
PackRequest RequestFor(const TensorInfo& weights, std::string_view type, int panel) {
  PackRequest request;
  request.source = weights.data;
  request.source_bytes = weights.bytes();
  request.layout =
      internal::Join("lstm ", type, " p", panel, " k", weights.shape[1], " n", weights.shape[0]);
  return request;
}

}  // namespace

Status CheckLstmWeights(const TensorInfo& weights) {
  return weights.constant() ? Status() : Unsupported("weights are not constant");
}

Status LstmProducts::Init(const OpDescription& op, Isa isa) {
  gemm_f32_ = FindGemmF32(isa);
  if (gemm_f32_ == nullptr) return NoVectorTarget(isa);
  if (!IsHybridLstm(op)) return Status();
  gemm_s16_ = FindGemmS16(isa);
  quantize_ = FindShortRowFunctions(isa);
  store_ = FindHybridRow(isa);
  asymmetric_ = op.params.as<LstmParams>().asymmetric_quantize_inputs;
  return Status();
}

Result<PackedWeights> PackLstmS16(const TensorInfo& weights, const GemmS16& gemm,
                                  const BuildContext& context) {
  const int64_t columns = weights.shape[0], depth = weights.shape[1];
  PackRequest request = RequestFor(weights, "s16", gemm.panel);
  request.bytes = gemm.PackedValues(depth, columns) * sizeof(int16_t);
  return context.Pack(request, [&](std::byte* to) {
    PackPanelsS16({.type = weights.type,
                   .data = weights.data,
                   .first = 0,
                   .k_stride = 1,
                   .n_stride = depth,
                   .offset = 0,
                   .depth = depth,
                   .columns = columns},
                  gemm.panel, 0, gemm.panels(columns), reinterpret_cast<int16_t*>(to));
  });
}

Result<PackedWeights> LstmProducts::PackFloats(const TensorInfo& weights,
                                               const BuildContext& context) const {
  const int64_t columns = weights.shape[0], depth = weights.shape[1];
  PackRequest request = RequestFor(weights, "f32", gemm_f32_->panel);
  request.bytes = gemm_f32_->PackedBytes(depth, columns);
  return context.Pack(request, [&](std::byte* to) {
    // The file may have left the constant misaligned.
    std::vector<float> aligned(static_cast<size_t>(weights.elements()));
    std::memcpy(aligned.data(), weights.data, weights.bytes());
    PackPanelsF32({.base = aligned.data(),
                   .k_stride = 1,
                   .n_stride = depth,
                   .depth = depth,
                   .columns = columns},
                  gemm_f32_->panel, 0, gemm_f32_->panels(columns), reinterpret_cast<float*>(to));
  });
}

Result<LstmMatrix> LstmProducts::Pack(const TensorInfo& weights,
                                      const BuildContext& context) const {
  LstmMatrix matrix;
  matrix.columns = weights.shape[0];
  matrix.depth = weights.shape[1];
  if (hybrid()) matrix.scales.assign(matrix.columns, weights.quantization.scale());
  FUSELITE_ASSIGN_OR_RETURN(matrix.packed, hybrid() ? PackLstmS16(weights, *gemm_s16_, context)
                                                    : PackFloats(weights, context));
  return matrix;
}

size_t LstmProducts::scales_at(int64_t rows, int64_t depth) const {
  return AlignUp(rows * Even(depth) * sizeof(int16_t));
}

size_t LstmProducts::sums_at(int64_t rows, int64_t depth) const {
  return scales_at(rows, depth) + AlignUp(rows * sizeof(float));
}

size_t LstmProducts::scratch_bytes(int64_t rows, int64_t depth, int64_t columns) const {
  return hybrid() ? sums_at(rows, depth) + AlignUp(rows * columns * sizeof(int32_t)) : 0;
}

LstmRows LstmProducts::Prepare(const float* values, int64_t rows, int64_t depth,
                               std::byte* scratch) const {
  if (!hybrid()) return {.values = values, .count = rows};
  auto* quantized = reinterpret_cast<int16_t*>(scratch);
  auto* scales = reinterpret_cast<float*>(scratch + scales_at(rows, depth));
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = values + r * depth;
    int16_t* to = quantized + r * Even(depth);
    DynamicRange range{row[0], row[0]};
    quantize_->extend_range(row, depth, &range);
    const DynamicScale scale = MakeDynamicScale(range, asymmetric_);
    quantize_->quantize(row, depth, scale, to);
    if (depth % 2 == 1) to[depth] = 0;
    scales[r] = scale.scale;
  }
  return {.values = values, .count = rows, .quantized = quantized, .scales = scales};
}

void LstmProducts::Multiply(const LstmMatrix& matrix, const LstmRows& rows, const Output& to,
                            std::byte* scratch) const {
  if (!hybrid()) {
    return gemm_f32_->run({.a = rows.values,
                           .a_pitch = matrix.depth,
                           .rows = rows.count,
                           .depth = matrix.depth,
                           .b = matrix.packed->as<float>(),
                           .columns = matrix.columns,
                           .bias = to.bias,
                           .min = -to.bound,
                           .max = to.bound,
                           .c = to.c,
                           .c_pitch = to.c_pitch});
  }
  auto* sums = reinterpret_cast<int32_t*>(scratch + sums_at(rows.count, matrix.depth));
  gemm_s16_->run({.a = rows.quantized,
                  .rows = rows.count,
                  .depth = Even(matrix.depth),
                  .b = matrix.packed->as<int16_t>(),
                  .columns = matrix.columns,
                  .bias = nullptr,
                  .c = sums,
                  .c_pitch = matrix.columns});
  for (int64_t r = 0; r < rows.count; ++r) {
    store_({.sums = sums + r * matrix.columns,
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
