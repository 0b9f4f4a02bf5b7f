// RFFT2D: (input [.., rows, columns], lengths [2]): the Fourier transform of real matrices, cut or
// filled up with zeros to the lengths, which are powers of two: the left half of the columns, the
// middle one included. Computed in double, as TFLite does it.
//
// A row of n reals is transformed as n / 2 complex numbers z[j] = x[2j] + i x[2j + 1]: with Z their
// transform, E = (Z[k] + conj Z[n/2 - k]) / 2 and O = (Z[k] - conj Z[n/2 - k]) / 2i are those of
// the even and the odd elements, and X[k] = E + O exp(-2 pi i k / n). Columns follow as complex
// numbers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

using Complex = std::complex<double>;
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

// The product without C++'s care for infinities.
Complex Times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// The transform of n complex numbers in place: reordered by their reversed index, then joined in
// pairs, fours and so on.
class ComplexTransform {
 public:
  explicit ComplexTransform(int64_t n) : n_(n), reversed_(n), roots_(Roots(n, n / 2)) {
    const int bits = std::bit_width(static_cast<uint64_t>(n)) - 1;
    for (int64_t i = 1; i < n; ++i) {
      reversed_[i] = (reversed_[i >> 1] >> 1) | ((i & 1) << (bits - 1));
    }
  }
  // exp(-2 pi i k / n) for k < count.
  static std::vector<Complex> Roots(int64_t n, int64_t count) {
    std::vector<Complex> roots(count);
    for (int64_t k = 0; k < count; ++k) {
      const double angle = -2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
      roots[k] = {std::cos(angle), std::sin(angle)};
    }
    return roots;
  }
  void Run(Complex* x) const {
    for (int64_t i = 0; i < n_; ++i) {
      if (i < reversed_[i]) std::swap(x[i], x[reversed_[i]]);
    }
    for (int64_t half = 1; half < n_; half *= 2) {
      const int64_t step = n_ / (2 * half);
      for (int64_t first = 0; first < n_; first += 2 * half) {
        for (int64_t k = 0; k < half; ++k) {
          const Complex odd = Times(x[first + half + k], roots_[k * step]);
          const Complex even = x[first + k];
          x[first + k] = even + odd;
          x[first + half + k] = even - odd;
        }
      }
    }
  }

 private:
  int64_t n_;
  std::vector<int64_t> reversed_;
  std::vector<Complex> roots_;
};

// One unit: a matrix. Scratch: the rows' transforms, then one row or column.
class Rfft2d {
 public:
  explicit Rfft2d(const OpDescription& op)
      : in_rows_(op.inputs[0].shape.dim(-2)),
        in_columns_(op.inputs[0].shape.dim(-1)),
        rows_(op.outputs[0].shape.dim(-2)),
        bins_(op.outputs[0].shape.dim(-1)),
        length_(ReadIntegers(op.inputs[1], "the lengths", IntegerTypes::kInt32).value()[1]),
        across_(std::max<int64_t>(1, length_ / 2)),
        down_(rows_),
        turns_(ComplexTransform::Roots(length_, bins_)) {}

  size_t scratch_bytes() const {
    return sizeof(Complex) * (rows_ * bins_ + std::max(rows_, bins_));
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    auto* bins = reinterpret_cast<Complex*>(args.scratch);
    Complex* line = bins + rows_ * bins_;
    for (int64_t matrix = begin; matrix < end; ++matrix) {
      const float* in = static_cast<const float*>(args.inputs[0]) + matrix * in_rows_ * in_columns_;
      for (int64_t r = 0; r < rows_; ++r) {
        TransformRow(r < in_rows_ ? in + r * in_columns_ : nullptr, line, bins + r * bins_);
      }
      for (int64_t c = 0; rows_ > 1 && c < bins_; ++c) {
        for (int64_t r = 0; r < rows_; ++r) line[r] = bins[r * bins_ + c];
        down_.Run(line);
        for (int64_t r = 0; r < rows_; ++r) bins[r * bins_ + c] = line[r];
      }
      auto* out = static_cast<std::complex<float>*>(args.outputs[0]) + matrix * rows_ * bins_;
      for (int64_t i = 0; i < rows_ * bins_; ++i) out[i] = std::complex<float>(bins[i]);
    }
  }

 private:
  // A row of the input; null: of zeros.
  void TransformRow(const float* in, Complex* line, Complex* out) const {
    const int64_t valid = in == nullptr ? 0 : std::min(in_columns_, length_);
    const auto at = [&](int64_t i) { return i < valid ? static_cast<double>(in[i]) : 0.0; };
    const int64_t half = length_ / 2;
    if (half == 0) {
      out[0] = at(0);
      return;
    }
    for (int64_t j = 0; j < half; ++j) line[j] = {at(2 * j), at(2 * j + 1)};
    across_.Run(line);
    for (int64_t k = 0; k <= half; ++k) {
      const Complex z = line[k % half], mirrored = std::conj(line[(half - k) % half]);
      const Complex even = (z + mirrored) * 0.5, difference = (z - mirrored) * 0.5;
      const Complex odd(difference.imag(), -difference.real());
      out[k] = even + Times(odd, turns_[k]);
    }
  }

  int64_t in_rows_, in_columns_, rows_, bins_, length_;
  ComplexTransform across_, down_;
  std::vector<Complex> turns_;
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("RFFT2D takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  Rfft2d transform(op);
  const Work work{.units = op.outputs[0].shape.elements(0, op.outputs[0].shape.rank() - 2),
                  .scratch_bytes = transform.scratch_bytes()};
  return MakeKernel("rfft2d", work, std::move(transform));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& Rfft2dOperator() {
  static const OperatorDef kDef = {
      .name = "RFFT2D",
      .builtin_code = tflite::kTfLiteBuiltinRfft2d,
      .options_type = 105,
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 2 or more",
      .infer = InferRfft2d,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 40.0 * op.outputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
