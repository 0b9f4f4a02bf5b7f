#include "kernels/convert/convert.h"
#include "kernels/make_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/convert/quantize_run-inl.h"
#include "kernels/simd.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void QuantizeInt8(const float* in, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeToBytes(in, static_cast<int8_t*>(out), n, scale, zero_point);
}
void QuantizeUInt8(const float* in, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeToBytes(in, static_cast<uint8_t*>(out), n, scale, zero_point);
}
void QuantizeInt16(const float* in, void* out, int64_t n, float scale, int32_t zero_point) {
  QuantizeRun(in, static_cast<int16_t*>(out), n, scale, zero_point);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Whether scale and zero point are one, and the latter within 16 bits.
Status CheckVectorizable(const OpDescription& op, const TensorInfo& quantized) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  if (quantized.quantization.per_channel()) return Unsupported("does not take scales per channel");
  return CheckZeroPoints(quantized.quantization);
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildQuantizeHighway(const OpDescription& op,
                                                     const BuildContext& context) {
  constexpr auto kInt8 = FUSELITE_SIMD_TABLE(QuantizeInt8);
  constexpr auto kUInt8 = FUSELITE_SIMD_TABLE(QuantizeUInt8);
  constexpr auto kInt16 = FUSELITE_SIMD_TABLE(QuantizeInt16);
  const TensorInfo& out = op.outputs[0];
  if (op.inputs[0].type != DataType::kFloat32) return BuildRequantizeHighway(op, context);
  if (BitWidth(out.type) < 8) return Unsupported("packed integers have scalar code alone");
  FUSELITE_RETURN_IF_ERROR(CheckVectorizable(op, out));
  const auto& table = out.type == DataType::kInt8    ? kInt8
                      : out.type == DataType::kUInt8 ? kUInt8
                                                     : kInt16;
  FUSELITE_ASSIGN_OR_RETURN(auto* const function, table.Require(context.isa));
  const Pieces pieces(op.inputs[0], out);
  return MakeKernel(
      "quantize " + std::string(DataTypeName(out.type)) + " " + SimdName(context.isa),
      {.units = pieces.units, .grain = 1},
      [=, scale = out.quantization.scale(), zero = out.quantization.zero_point(),
       bytes = BitWidth(out.type) / 8](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const float*>(args.inputs[0]);
        auto* to = static_cast<std::byte*>(args.outputs[0]);
        pieces.ForEach(begin, end, [&](int64_t i, int64_t o, int64_t, int64_t count) {
          function(in + i, to + o * bytes, count, scale, zero);
        });
      });
}

}  // namespace fuselite::kernels
#endif
