#include "kernels/rfft2d/fourier.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <type_traits>

namespace fuselite::kernels {

std::vector<Complex> UnitRoots(int64_t n, int64_t count) {
  std::vector<Complex> roots(count);
  for (int64_t k = 0; k < count; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

ComplexTransform::ComplexTransform(int64_t n) : reversed_(n), roots_(UnitRoots(n, n / 2)) {
  const int bits = std::bit_width(static_cast<uint64_t>(n)) - 1;
  for (int64_t i = 1; i < n; ++i) {
    reversed_[i] = (reversed_[i >> 1] >> 1) | ((i & 1) << (bits - 1));
  }
}

namespace {

// Turns `odd` by `root`, and makes the sums and differences of both.
inline void Join(const Complex& root, Complex* even, Complex* odd, int64_t width) {
  for (int64_t c = 0; c < width; ++c) {
    const Complex a = even[c], b = Times(odd[c], root);
    even[c] = a + b;
    odd[c] = a - b;
  }
}

// Transforms the columns of rows of `width` numbers; `width` may be a compile-time constant.
template <class Width>
void Transform(const std::vector<Complex>& roots, const std::vector<int64_t>& reversed, Complex* x,
               Width width) {
  const auto n = static_cast<int64_t>(reversed.size());
  for (int64_t i = 0; i < n; ++i) {
    Complex* const row = x + i * width;
    if (i < reversed[i]) std::swap_ranges(row, row + width, x + reversed[i] * width);
  }
  for (int64_t half = 1; half < n; half *= 2) {
    const int64_t step = n / (2 * half);
    for (int64_t first = 0; first < n; first += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        Complex* const even = x + (first + k) * width;
        Join(roots[k * step], even, even + half * width, width);
      }
    }
  }
}

}  // namespace

void ComplexTransform::Run(Complex* x) const {
  Transform(roots_, reversed_, x, std::integral_constant<int64_t, 1>());
}

void ComplexTransform::RunColumns(Complex* x, int64_t width) const {
  Transform(roots_, reversed_, x, width);
}

void RealTransform::Finish(Complex* line, Complex* out) const {
  const int64_t half = n_ / 2;
  half_.Run(line);
  for (int64_t k = 0; k <= half; ++k) {
    const Complex z = line[k % half], mirrored = std::conj(line[(half - k) % half]);
    const Complex even = (z + mirrored) * 0.5, difference = (z - mirrored) * 0.5;
    const Complex odd(difference.imag(), -difference.real());
    out[k] = even + Times(odd, turns_[k]);
  }
}

}  // namespace fuselite::kernels
