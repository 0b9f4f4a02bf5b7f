// Fourier transforms of lengths that are powers of two, in double, as TFLite computes them.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <vector>

namespace fuselite::kernels {

using Complex = std::complex<double>;

// The product without C++'s care for infinities.
inline Complex Times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-2 pi i k / n) for k < count.
std::vector<Complex> UnitRoots(int64_t n, int64_t count);

// The transform of n complex numbers in place: reordered by their reversed index, then joined in
// pairs, fours and so on. Precondition: n is a power of two.
class ComplexTransform {
 public:
  explicit ComplexTransform(int64_t n);
  void Run(Complex* x) const;
  // The transform of each column of n rows of `width` numbers.
  void RunColumns(Complex* x, int64_t width) const;

 private:
  std::vector<int64_t> reversed_;  // of each index
  std::vector<Complex> roots_;
};

// The left half of the transform of n reals, the middle one included: n / 2 + 1 bins.
//
// They are transformed as n / 2 complex numbers z[j] = x[2j] + i x[2j + 1]: with Z their transform,
// E = (Z[k] + conj Z[n/2 - k]) / 2 and O = (Z[k] - conj Z[n/2 - k]) / 2i are those of the even and
// the odd elements, and X[k] = E + O exp(-2 pi i k / n). Precondition: n is a power of two.
class RealTransform {
 public:
  explicit RealTransform(int64_t n)
      : n_(n), half_(std::max<int64_t>(1, n / 2)), turns_(UnitRoots(n, bins())) {}

  int64_t bins() const { return n_ / 2 + 1; }

  // `at(j)` gives element j. `line` has room for bins() numbers, as has `out`, which may not
  // overlap it.
  template <class At>
  void Run(const At& at, Complex* line, Complex* out) const {
    if (n_ == 1) {
      out[0] = at(0);
      return;
    }
    for (int64_t j = 0; j < n_ / 2; ++j) line[j] = {at(2 * j), at(2 * j + 1)};
    Finish(line, out);
  }

 private:
  void Finish(Complex* line, Complex* out) const;

  int64_t n_;
  ComplexTransform half_;
  std::vector<Complex> turns_;
};

}  // namespace fuselite::kernels
