#include "kernels/rotary/rotary.h"

#include "kernels/elementwise/as_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}};

// How a table is read for the rows of x; nullopt where it does not fit.
std::optional<TailOperandUse> TableUse(const OpDescription& op, size_t input) {
  const Shape& table = op.inputs[input].shape;
  Shape rows = op.inputs[0].shape;
  const int32_t width = op.params.as<RotaryParams>().width;
  if (table.rank() == 0 || (table.dim(-1) != width / 2 && table.dim(-1) != width)) {
    return std::nullopt;
  }
  rows.set(rows.rank() - 1, table.dim(-1));
  return AsTailOperand(op.inputs[input], rows);
}

Status InferRotary(OpDescription& op) {
  const Shape& x = op.inputs[0].shape;
  const int32_t width = op.params.as<RotaryParams>().width;
  if (width <= 0 || width % 2 != 0 || x.rank() == 0 || x.dim(-1) % width != 0) {
    return InvalidArgument("heads of ", width, " in ", x);
  }
  for (const size_t i : {1, 2}) {
    if (!TableUse(op, i) || op.inputs[i].shape.dim(-1) != op.inputs[1].shape.dim(-1)) {
      return Unsupported("does not take a table ", op.inputs[i].shape, " for ", x);
    }
  }
  return SetOutput(op, 0, kF32, x);
}

constexpr Candidate kCandidates[] = {
    {"highway", BuildRotaryHighway},
    {"reference", BuildRotaryReference},
};

void RotateHead(const float* x, const float* cos, const float* sin, int64_t half, int64_t second,
                float* y) {
  for (int64_t i = 0; i < half; ++i) {
    y[i] = x[i] * cos[i] - x[i + half] * sin[i];
    y[i + half] = x[i + half] * cos[i + second] + x[i] * sin[i + second];
  }
}

// The row of a table for each row of x.
class TableRows {
 public:
  TableRows(const OpDescription& op, size_t input) : input_(input), use_(*TableUse(op, input)) {}
  const float* Row(const KernelArgs& args, int64_t row) const {
    return static_cast<const float*>(args.inputs[input_]) +
           row / use_.rows_per_batch * use_.operand.batch_stride +
           row % use_.rows_per_batch * use_.operand.row_stride;
  }

 private:
  size_t input_;
  TailOperandUse use_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeRotary(std::string name, const OpDescription& op,
                                           RotateFunction* rotate) {
  if (!op.tail.empty()) return Unsupported("FUSELITE_ROTARY takes no fused tail");
  const TensorInfo &x = op.inputs[0], &y = op.outputs[0];
  const int64_t channels = x.shape.dim(-1), width = op.params.as<RotaryParams>().width;
  const int64_t second = op.inputs[1].shape.dim(-1) == width ? width / 2 : 0;
  const Work work{.units = channels ? x.elements() / channels : 0, .grain = GrainFor(2 * channels)};
  return MakeKernel(std::move(name), work,
                    [=, cos = TableRows(op, 1), sin = TableRows(op, 2), x_pitch = x.pitch(),
                     y_pitch = y.pitch()](const KernelArgs& args, int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        const float* from = static_cast<const float*>(args.inputs[0]);
                        from += row * x_pitch;
                        float* const to = static_cast<float*>(args.outputs[0]) + row * y_pitch;
                        const float *c = cos.Row(args, row), *s = sin.Row(args, row);
                        for (int64_t at = 0; at < channels; at += width) {
                          rotate(from + at, c, s, width / 2, second, to + at);
                        }
                      }
                    });
}

Result<std::unique_ptr<Kernel>> BuildRotaryReference(const OpDescription& op, const BuildContext&) {
  return MakeRotary("rotary f32 reference", op, RotateHead);
}

const OperatorDef& RotaryOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FUSELITE_ROTARY",
      .params_bytes = sizeof(RotaryParams),
      .min_inputs = 3,
      .max_inputs = 3,
      .types = kTypes,
      .infer = InferRotary,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 3.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
