#include "kernels/rfft2d/fourier.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace fuselite::kernels {

std::vector<Complex> UnitRoots(int64_t n, int64_t count) {
  std::vector<Complex> roots(count);
  for (int64_t k = 0; k < count; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

ComplexTransform::ComplexTransform(int64_t n) : n_(n), reversed_(n), roots_(UnitRoots(n, n / 2)) {
  const int bits = std::bit_width(static_cast<uint64_t>(n)) - 1;
  for (int64_t i = 1; i < n; ++i) {
    reversed_[i] = (reversed_[i >> 1] >> 1) | ((i & 1) << (bits - 1));
  }
}

void ComplexTransform::Run(Complex* x) const {
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
