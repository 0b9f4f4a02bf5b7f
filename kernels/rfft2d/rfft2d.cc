// RFFT2D: (input [.., rows, columns], lengths [2]): the Fourier transform of real matrices, cut or
// filled up with zeros to the lengths, which are powers of two: the left half of the columns, the
// middle one included. Computed in double, as TFLite does it. Rows are transformed first,
// then columns.
#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/rfft2d/fourier_candidates.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr TypeRow kTypes[] = {{{DataType::kFloat32, DataType::kInt32}, DataType::kComplex64}};

bool IsPowerOfTwo(int64_t n) { return n > 0 && std::has_single_bit(static_cast<uint64_t>(n)); }

Status InferRfft2d(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  if (in.rank() < 2) return InvalidArgument("the input ", in, " is no matrix");
  if (op.inputs[1].shape != Shape{2}) return InvalidArgument("lengths of ", op.inputs[1].shape);
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                            ReadIntegers(op.inputs[1], "the lengths", IntegerTypes::kInt32));
  if (!IsPowerOfTwo(lengths[0]) || !IsPowerOfTwo(lengths[1])) {
    return InvalidArgument("lengths ", lengths[0], " and ", lengths[1], " are no powers of two");
  }
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims[in.rank() - 2] = lengths[0];
  dims[in.rank() - 1] = lengths[1] / 2 + 1;
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, DataType::kComplex64, shape);
}

// One unit: a matrix. Scratch: the rows' transforms, then what a row's needs.
class Rfft2d {
 public:
  Rfft2d(const OpDescription& op, const FourierFunctions& functions)
      : in_rows_(op.inputs[0].shape.dim(-2)),
        in_columns_(op.inputs[0].shape.dim(-1)),
        rows_(op.outputs[0].shape.dim(-2)),
        bins_(op.outputs[0].shape.dim(-1)),
        length_(ReadIntegers(op.inputs[1], "the lengths", IntegerTypes::kInt32).value()[1]),
        across_(length_, functions),
        down_(rows_, functions) {}

  size_t scratch_bytes() const {
    return sizeof(double) * (2 * ImaginaryOffset(rows_ * bins_) + across_.scratch_doubles());
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    auto* const scratch = reinterpret_cast<double*>(args.scratch);
    const int64_t count = rows_ * bins_, offset = ImaginaryOffset(count);
    const SplitComplex bins = {scratch, scratch + offset};
    for (int64_t matrix = begin; matrix < end; ++matrix) {
      const float* in = static_cast<const float*>(args.inputs[0]) + matrix * in_rows_ * in_columns_;
      for (int64_t r = 0; r < rows_; ++r) {
        TransformRow(r < in_rows_ ? in + r * in_columns_ : nullptr, scratch + 2 * offset,
                     bins.At(down_.PlaceOf(r) * bins_));
      }
      down_.RunRows(bins, bins_);
      float* out = static_cast<float*>(args.outputs[0]) + matrix * 2 * count;
      for (int64_t i = 0; i < count; ++i) {
        out[2 * i] = static_cast<float>(bins.re[i]);
        out[2 * i + 1] = static_cast<float>(bins.im[i]);
      }
    }
  }

 private:
  // A row of the input; null: of zeros.
  void TransformRow(const float* in, double* scratch, SplitComplex out) const {
    const int64_t valid = in == nullptr ? 0 : std::min(in_columns_, length_);
    across_.Run([&](int64_t i) { return static_cast<double>(in[i]); }, valid, scratch, out);
  }

  int64_t in_rows_, in_columns_, rows_, bins_, length_;
  RealTransform across_;
  ComplexTransform down_;
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, std::string_view target,
                                      const FourierFunctions& functions) {
  if (!op.tail.empty()) return Unsupported("RFFT2D takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  Rfft2d transform(op, functions);
  const Work work{.units = op.outputs[0].shape.elements(0, op.outputs[0].shape.rank() - 2),
                  .scratch_bytes = transform.scratch_bytes()};
  return MakeKernel(internal::Join("rfft2d ", target), work, std::move(transform));
}

}  // namespace

const OperatorDef& Rfft2dOperator() {
  static constexpr OperatorDef kDef = {
      .name = "RFFT2D",
      .builtin_code = tflite::kTfLiteBuiltinRfft2d,
      .options_type = 105,
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 2 or more",
      .infer = InferRfft2d,
      .candidates = kFourierCandidates<Build>,
      .cost = [](const OpDescription& op) { return 40.0 * op.outputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
