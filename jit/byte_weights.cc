#include "jit/byte_weights.h"

#include <algorithm>
#include <cstring>

namespace fuselite::jit {
namespace {

constexpr int64_t kStep = 4;

}  // namespace

Result<ByteWeights> ReadByteWeights(const kernels::OpDescription& op, int64_t channels) {
  const TensorInfo &in = op.inputs[0], &weights = op.inputs[1];
  const bool is_unsigned = weights.type == DataType::kUInt8;
  if (weights.type != DataType::kInt8 && !is_unsigned) {
    return Unsupported(DataTypeName(weights.type), " weights have no emitter");
  }
  for (const int32_t zero_point : weights.quantization.zero_points) {
    if (zero_point != (is_unsigned ? 128 : 0)) {
      return Unsupported("weights with zero point ", zero_point, " have no emitter");
    }
  }
  const bool biased = op.op->max_inputs > 2 && op.has_input(2);
  if (biased && op.inputs[2].type != DataType::kInt32) {
    return Unsupported(DataTypeName(op.inputs[2].type), " biases have no emitter");
  }
  ByteWeights result;
  result.values.resize(weights.elements());
  std::memcpy(result.values.data(), weights.data, result.values.size());
  if (is_unsigned) {
    for (int8_t& value : result.values) value = static_cast<int8_t>(value ^ 0x80);
  }
  result.view.values = result.values.data();
  result.view.depth = weights.elements() / channels;
  result.view.bias.resize(channels);
  const int64_t offset =
      in.quantization.zero_point() + (in.type == DataType::kInt8 ? int64_t{128} : 0);
  for (int64_t c = 0; c < channels; ++c) {
    int32_t bias = 0;
    if (biased) {
      std::memcpy(&bias, static_cast<const std::byte*>(op.inputs[2].data) + c * 4, sizeof(bias));
    }
    int64_t sum = 0, magnitudes = 0;
    const int8_t* row = result.values.data() + c * result.view.depth;
    for (int64_t k = 0; k < result.view.depth; ++k) {
      sum += row[k];
      magnitudes += std::abs(row[k]);
    }
    const int64_t folded = bias - offset * sum;
    result.view.bias[c] = static_cast<int32_t>(folded);
    const int64_t bound = 255 * magnitudes + std::max(std::abs(folded), std::abs(int64_t{bias}));
    result.sum_bound = std::max(result.sum_bound, bound);
  }
  return result;
}

void AddByteRuns(const std::vector<DepthRuns::Run>& runs, DepthRuns& depth,
                 ByteWeightsView& weights) {
  int64_t row_depth = 0;
  for (const DepthRuns::Run& run : runs) {
    const int64_t whole = run.length / kStep, rest = run.length % kStep;
    if (whole > 0) depth.runs.push_back({run.offset, whole});
    if (rest > 0) {
      depth.runs.push_back({run.offset + std::max<int64_t>(0, run.length - kStep), 1});
    }
    row_depth += run.length;
  }
  for (int64_t row = 0; row < depth.outer; ++row) {
    int64_t k = row * row_depth;
    for (const DepthRuns::Run& run : runs) {
      const int64_t whole = run.length / kStep;
      const auto rest = static_cast<int>(run.length % kStep);
      for (int64_t i = 0; i < whole; ++i) weights.quads.push_back({k + i * kStep, 0, kStep});
      if (rest > 0 && whole > 0) weights.quads.push_back({k + run.length - kStep, 4 - rest, 4});
      if (rest > 0 && whole == 0) weights.quads.push_back({k, 0, rest});
      k += run.length;
    }
  }
}

Result<PackedWeights> PackByteWeights(const kernels::OpDescription& op, const Gemm& gemm,
                                      const ByteWeights& weights,
                                      const kernels::BuildContext& context) {
  const TensorInfo& in = op.inputs[0];
  const bool biased = op.op->max_inputs > 2 && op.has_input(2);
  PackRequest request;
  request.source = op.inputs[1].data;
  request.source_bytes = op.inputs[1].bytes();
  if (biased) {
    request.source2 = op.inputs[2].data;
    request.source2_bytes = op.inputs[2].bytes();
  }
  // The bias holds the activations' zero point; the parameters behind the weights hold scales.
  request.layout = internal::Join(gemm.layout(), " z", in.quantization.zero_point());
  for (const ByteWeightsView::Quad& quad : weights.view.quads) {
    if (quad.first != 0 || quad.last != kStep) {
      request.layout += internal::Join(" q", quad.k, '.', quad.first, '.', quad.last);
    }
  }
  request.bytes = gemm.packed_bytes();
  return context.Pack(request, [&](std::byte* to) { gemm.PackBytes(weights.view, to); });
}

}  // namespace fuselite::jit
