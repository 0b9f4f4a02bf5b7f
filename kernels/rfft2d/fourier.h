// Fourier transforms of lengths that are powers of two, in double, as TFLite computes them.
//
// Real and imaginary parts lie apart, so that vectors hold as many numbers as they have lanes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

// Complex numbers, or those of somebody else.
struct SplitComplex {
  double* re;
  double* im;
  SplitComplex At(int64_t i) const { return {re + i, im + i}; }
};
struct SplitRoots {
  const double* re;
  const double* im;
  SplitRoots At(int64_t i) const { return {re + i, im + i}; }
};

// What transforms are made of. "Joins" a and b by a root: a + b root and a - b root take their
// places.
struct FourierFunctions {
  // The first two passes over n numbers, a multiple of 4: joins the 1st and 2nd as the 3rd and 4th
  // of each four by 1, then the 1st and 3rd of these by 1, the 2nd and 4th by -i.
  void (*join_fours)(SplitComplex x, int64_t n);
  // A pass: in each run of 2 `half` numbers joins number k and number half + k by roots[k].
  void (*join)(SplitComplex x, int64_t n, int64_t half, SplitRoots roots);
  // That pass, and the next, whose roots are `next`, in one: numbers are read and written once.
  void (*join_twice)(SplitComplex x, int64_t n, int64_t half, SplitRoots roots, SplitRoots next);
  // Joins `count` numbers of two rows by one root.
  void (*join_rows)(SplitComplex a, SplitComplex b, int64_t count, double root_re, double root_im);
  // RealTransform's last step: out[k] of k <= half, from the `half` numbers of `line`.
  void (*bins)(SplitComplex line, int64_t half, SplitRoots turns, SplitComplex out);
};

// Plain loops.
extern const FourierFunctions kPlainFourier;
// The version for `isa`; null below SSSE3.
const FourierFunctions* FindFourier(Isa isa);

// Doubles from the real parts of `count` numbers to their imaginary parts: a whole number of lines
// of the cache, so that vectors stay within these.
constexpr int64_t ImaginaryOffset(int64_t count) { return (count + 7) & ~int64_t{7}; }

// exp(-2 pi i k / n) for k < count.
class UnitRoots {
 public:
  UnitRoots() = default;
  UnitRoots(int64_t n, int64_t count);
  SplitRoots At(int64_t k) const { return {re_.data() + k, im_.data() + k}; }

 private:
  std::vector<double> re_, im_;
};

// The transform of n complex numbers, which come in the order of their reversed indices and are
// joined in pairs, fours and so on. Precondition: n is a power of two.
class ComplexTransform {
 public:
  ComplexTransform(int64_t n, const FourierFunctions& functions);
  // Where Run() and RunRows() want number i.
  int64_t PlaceOf(int64_t i) const { return reversed_[i]; }
  void Run(SplitComplex x) const;
  // The transform of each column of n rows of `width` numbers.
  void RunRows(SplitComplex x, int64_t width) const;

 private:
  const FourierFunctions& functions_;
  std::vector<int64_t> reversed_;  // of each index
  std::vector<UnitRoots> roots_;   // of each pass
};

// The left half of the transform of n reals, the middle one included: n / 2 + 1 bins.
//
// They are transformed as n / 2 complex numbers z[j] = x[2j] + i x[2j + 1]: with Z their transform,
// E = (Z[k] + conj Z[n/2 - k]) / 2 and O = (Z[k] - conj Z[n/2 - k]) / 2i are those of the even and
// the odd elements, and X[k] = E + O exp(-2 pi i k / n). Precondition: n is a power of two.
class RealTransform {
 public:
  RealTransform(int64_t n, const FourierFunctions& functions)
      : n_(n),
        functions_(functions),
        half_(std::max<int64_t>(1, n / 2), functions),
        turns_(n, bins()) {}

  int64_t bins() const { return n_ / 2 + 1; }
  // Of the numbers between.
  int64_t scratch_doubles() const { return 2 * ImaginaryOffset(bins()); }

  // `at(j)` gives element j; those from `valid` on, at most n, are zeros. `out` has room for bins()
  // numbers.
  template <class At>
  void Run(const At& at, int64_t valid, double* scratch, SplitComplex out) const {
    if (n_ == 1) {
      *out.re = valid > 0 ? at(0) : 0;
      *out.im = 0;
      return;
    }
    const SplitComplex line = {scratch, scratch + ImaginaryOffset(bins())};
    const auto place = [&](int64_t j, double even, double odd) {
      const int64_t to = half_.PlaceOf(j);
      line.re[to] = even;
      line.im[to] = odd;
    };
    int64_t j = 0;
    for (; 2 * j + 1 < valid; ++j) place(j, at(2 * j), at(2 * j + 1));
    if (2 * j < valid) place(j++, at(valid - 1), 0);
    for (; j < n_ / 2; ++j) place(j, 0, 0);
    half_.Run(line);
    functions_.bins(line, n_ / 2, turns_.At(0), out);
  }

 private:
  int64_t n_;
  const FourierFunctions& functions_;
  ComplexTransform half_;
  UnitRoots turns_;
};

}  // namespace fuselite::kernels
