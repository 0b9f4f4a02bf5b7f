#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/numbers/quantization.h"
#include "kernels/pool/pool.h"
#include "kernels/rows/row_tail.h"

namespace fuselite::kernels {
namespace {

float Finish(PoolKind kind, float total, int32_t count) {
  if (kind == PoolKind::kMax) return total;
  const float mean = total / static_cast<float>(count);
  return kind == PoolKind::kL2 ? std::sqrt(mean) : mean;
}

int32_t Finish(PoolKind kind, int32_t total, int32_t count, bool is_signed) {
  if (kind == PoolKind::kMax) return total;
  const bool down = is_signed && total <= 0;
  return (down ? total - count / 2 : total + count / 2) / count;
}

// Sum, sum of squares or maximum of one channel. T: float or an integer; Sum: float or int32_t.
template <class Sum, class T>
Sum Accumulate(PoolKind kind, const PoolShape& shape, const PoolTaps& taps, const T* in,
               int64_t pitch) {
  Sum total = kind == PoolKind::kMax ? static_cast<Sum>(std::numeric_limits<T>::lowest()) : 0;
  for (int32_t y = 0; y < taps.rows; ++y) {
    for (int32_t x = 0; x < taps.columns; ++x) {
      const Sum value = in[(int64_t{y} * shape.window.x.input + x) * pitch];
      if (kind == PoolKind::kMax) {
        total = std::max(total, value);
      } else {
        total += kind == PoolKind::kL2 ? value * value : value;
      }
    }
  }
  return total;
}

Result<std::unique_ptr<Kernel>> BuildFloat(const OpDescription& op, const PoolShape& shape) {
  const PoolKind kind = PoolKindOf(*op.op);
  float low, high;
  ActivationRange(op.params.as<PoolParams>().activation, &low, &high);
  const RowTail tail(op, &ApplyTailReference);
  const Work work{.units = shape.pixels_out(),
                  .grain = GrainFor(int64_t{shape.channels} * shape.window.taps()),
                  .scratch_bytes = tail.scratch_bytes()};
  return MakeKernel(
      "pool f32 reference", work,
      [=, pitch = op.inputs[0].pitch()](const KernelArgs& args, int64_t begin, int64_t end) {
        ForPixels(shape, begin, end, [&](int64_t pixel, const PoolTaps& taps) {
          const auto* in = static_cast<const float*>(args.inputs[0]) + taps.first * pitch;
          float* out = tail.Row(args, pixel);
          for (int32_t c = 0; c < shape.channels; ++c) {
            const auto total = Accumulate<float>(kind, shape, taps, in + c, pitch);
            out[c] = std::clamp(Finish(kind, total, taps.count()), low, high);
          }
          tail.Finish(args, pixel);
        });
      });
}

template <class T>
Result<std::unique_ptr<Kernel>> BuildInteger(const OpDescription& op, const PoolShape& shape) {
  const PoolKind kind = PoolKindOf(*op.op);
  int32_t low, high;
  FUSELITE_RETURN_IF_ERROR(QuantizedActivationRange(op.params.as<PoolParams>().activation,
                                                    op.inputs[0].type, op.outputs[0].quantization,
                                                    &low, &high));
  const Work work{.units = shape.pixels_out(),
                  .grain = GrainFor(int64_t{shape.channels} * shape.window.taps())};
  return MakeKernel("pool " + std::string(DataTypeName(op.inputs[0].type)) + " reference", work,
                    [=, pitch = op.inputs[0].pitch(), out_pitch = op.outputs[0].pitch()](
                        const KernelArgs& args, int64_t begin, int64_t end) {
                      ForPixels(shape, begin, end, [&](int64_t pixel, const PoolTaps& taps) {
                        const auto* in = static_cast<const T*>(args.inputs[0]) + taps.first * pitch;
                        auto* out = static_cast<T*>(args.outputs[0]) + pixel * out_pitch;
                        for (int32_t c = 0; c < shape.channels; ++c) {
                          const auto total = Accumulate<int32_t>(kind, shape, taps, in + c, pitch);
                          const int32_t value =
                              Finish(kind, total, taps.count(), std::is_signed_v<T>);
                          out[c] = static_cast<T>(std::min(std::max(value, low), high));
                        }
                      });
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildPoolReference(const OpDescription& op, const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const PoolShape shape, ResolvePool(op));
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return BuildFloat(op, shape);
    case DataType::kInt8: return BuildInteger<int8_t>(op, shape);
    case DataType::kUInt8: return BuildInteger<uint8_t>(op, shape);
    case DataType::kInt16: return BuildInteger<int16_t>(op, shape);
    default: return Unsupported(DataTypeName(op.inputs[0].type), " pools");
  }
}

}  // namespace fuselite::kernels
