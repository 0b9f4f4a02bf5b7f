#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/numbers/quantization.h"
#include "kernels/rows/row_kernel.h"
#include "kernels/softmax/quantized.h"

namespace fuselite::kernels {
namespace {

// Exponentials below exp(-10) are cut off.
constexpr double kReach = 10, kSteps = 65535;
// Sums of 15 fraction bits then fit into 31.
constexpr int32_t kMaxRow = 65535;

using Table = Int16Softmax::Table;

// exp over [-10, 0], where 32767 stands for 0, with 15 fraction bits.
const Table& ExpTable16() {
  static const Table kTable({kReach / kSteps, 32767}, {2 / kSteps, 0},
                            [](double x) { return std::exp(x); });
  return kTable;
}

// 1 / (1 + x) over [0, 1], where -32768 stands for 0.
const Table& OneOverOnePlusTable() {
  static const Table kTable({1 / kSteps, -32768}, {2 / kSteps, 0},
                            [](double x) { return 1 / (1 + x); });
  return kTable;
}

int32_t Saturate(int64_t x) { return static_cast<int32_t>(std::clamp<int64_t>(x, -32768, 32767)); }

}  // namespace

Status CheckInt16Softmax(const OpDescription& op) {
  const Quantization& in = op.inputs[0].quantization;
  const Quantization& out = op.outputs[0].quantization;
  if (in.zero_point() != 0 || out.zero_point() != 0) {
    return InvalidArgument("the zero points of int16 operands must be 0");
  }
  if (!(std::abs(out.scale() - 0x1p-15f) <= 0.001f * 0x1p-15f)) {
    return Unsupported("does not take an output scale of ", out.scale(), ", not 1/32768");
  }
  const float scaled = in.scale() * op.params.as<SoftmaxParams>().beta;
  if (!(scaled > 0) || !std::isfinite(scaled)) {
    return Unsupported("does not take an input scale times beta of ", scaled);
  }
  if (op.inputs[0].shape.dim(-1) > kMaxRow)
    return Unsupported("does not take rows beyond ", kMaxRow);
  return Status();
}

Int16Softmax::Int16Softmax(const OpDescription& op)
    : exp(&ExpTable16()), n(op.inputs[0].shape.dim(-1)) {
  const float scaled = op.inputs[0].quantization.scale() * op.params.as<SoftmaxParams>().beta;
  scale = ToFixedPoint(scaled / (kReach / kSteps));
}

void Int16SoftmaxScalarRow(const Int16Softmax& softmax, const int16_t* in, int16_t* out) {
  const auto [multiplier, shift] = softmax.scale;
  const int32_t largest = *std::max_element(in, in + softmax.n);
  int32_t sum = 0;
  for (int64_t i = 0; i < softmax.n; ++i) {
    const int32_t difference = MultiplyByQuantizedMultiplier(in[i] - largest, multiplier, shift);
    out[i] = (*softmax.exp)(Saturate(int64_t{difference} + 32767));
    sum += out[i];
  }
  const InverseOfSum inverse = Int16Softmax::InverseOf(sum);
  for (int64_t i = 0; i < softmax.n; ++i) {
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
    const int32_t y = (out[i] * inverse.factor + (1 << (inverse.shift - 1))) >> inverse.shift;
    out[i] = static_cast<int16_t>(std::min(y, 32767));
  }
}

// The sum as 2^k (1 + x).
InverseOfSum Int16Softmax::InverseOf(int32_t sum) {
  const int zeros = std::countl_zero(static_cast<uint32_t>(sum));
  const int64_t one_plus_x = ((int64_t{sum} << (zeros - 1)) + (1 << 13)) >> 14;
  const int32_t x = Saturate(one_plus_x - (int64_t{1} << 15) - (int64_t{1} << 16));
  return {OneOverOnePlusTable()(x), 31 - zeros};
}

Result<std::unique_ptr<Kernel>> BuildInt16Softmax(const OpDescription& op) {
  return MakeQuantizedRowKernel<int16_t, int16_t>(
      "softmax int16 reference", op, 8, 0,
      [softmax = Int16Softmax(op)](const KernelArgs&, const int16_t* x, int16_t* y) {
        Int16SoftmaxScalarRow(softmax, x, y);
      });
}

}  // namespace fuselite::kernels
