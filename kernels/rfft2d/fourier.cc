#include "kernels/rfft2d/fourier.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "kernels/rfft2d/fourier_steps.h"

namespace fuselite::kernels {
namespace {

void JoinAllFours(SplitComplex x, int64_t n) {
  for (int64_t i = 0; i < n; i += 4) JoinFours(x.re + i, x.im + i);
}

void JoinPass(SplitComplex x, int64_t n, int64_t half, SplitRoots roots) {
  for (int64_t first = 0; first < n; first += 2 * half) {
    for (int64_t k = 0; k < half; ++k) JoinAt(x, first + k, half, roots.At(k));
  }
}

void JoinTwice(SplitComplex x, int64_t n, int64_t half, SplitRoots roots, SplitRoots next) {
  JoinPass(x, n, half, roots);
  JoinPass(x, n, 2 * half, next);
}

void JoinRows(SplitComplex a, SplitComplex b, int64_t count, double root_re, double root_im) {
  for (int64_t i = 0; i < count; ++i) JoinNumbers(a.At(i), b.At(i), {&root_re, &root_im});
}

void Bins(SplitComplex line, int64_t half, SplitRoots turns, SplitComplex out) {
  OuterBins(line, half, out);
  for (int64_t k = 1; k < half; ++k) Bin(line, half, k, turns, out);
}

}  // namespace

constexpr FourierFunctions kPlainFourier = {.join_fours = JoinAllFours,
                                            .join = JoinPass,
                                            .join_twice = JoinTwice,
                                            .join_rows = JoinRows,
                                            .bins = Bins};

UnitRoots::UnitRoots(int64_t n, int64_t count) : re_(count), im_(count) {
  for (int64_t k = 0; k < count; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    re_[k] = std::cos(angle);
    im_[k] = std::sin(angle);
  }
}

ComplexTransform::ComplexTransform(int64_t n, const FourierFunctions& functions)
    : functions_(functions), reversed_(n) {
  const int bits = std::bit_width(static_cast<uint64_t>(n)) - 1;
  for (int64_t i = 1; i < n; ++i) {
    reversed_[i] = (reversed_[i >> 1] >> 1) | ((i & 1) << (bits - 1));
  }
  for (int64_t half = 1; half < n; half *= 2) roots_.emplace_back(2 * half, half);
}

void ComplexTransform::Run(SplitComplex x) const {
  const auto n = static_cast<int64_t>(reversed_.size());
  size_t pass = 0;
  if (n >= 4) {
    functions_.join_fours(x, n);
    pass = 2;
  }
  for (; pass + 1 < roots_.size(); pass += 2) {
    functions_.join_twice(x, n, int64_t{1} << pass, roots_[pass].At(0), roots_[pass + 1].At(0));
  }
  if (pass < roots_.size()) functions_.join(x, n, n / 2, roots_[pass].At(0));
}

void ComplexTransform::RunRows(SplitComplex x, int64_t width) const {
  const auto n = static_cast<int64_t>(reversed_.size());
  for (size_t pass = 0; pass < roots_.size(); ++pass) {
    const int64_t half = int64_t{1} << pass;
    for (int64_t first = 0; first < n; first += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const SplitRoots root = roots_[pass].At(k);
        functions_.join_rows(x.At((first + k) * width), x.At((first + half + k) * width), width,
                             *root.re, *root.im);
      }
    }
  }
}

}  // namespace fuselite::kernels
