// The steps of FourierFunctions for single numbers: the plain version, and the ends of the others.
#pragma once

#include "kernels/rfft2d/fourier.h"

namespace fuselite::kernels {

inline void JoinNumbers(SplitComplex a, SplitComplex b, SplitRoots root) {
  const double re = *b.re * *root.re - *b.im * *root.im;
  const double im = *b.re * *root.im + *b.im * *root.re;
  *b.re = *a.re - re;
  *b.im = *a.im - im;
  *a.re += re;
  *a.im += im;
}

// Joins number i and the one `half` behind it.
inline void JoinAt(SplitComplex x, int64_t i, int64_t half, SplitRoots root) {
  JoinNumbers(x.At(i), x.At(i + half), root);
}

// Sums and differences of pairs, then those of fours, in which -i (re, im) is (im, -re).
inline void JoinFours(double* re, double* im) {
  const double sum_re = re[0] + re[1], sum_im = im[0] + im[1];
  const double difference_re = re[0] - re[1], difference_im = im[0] - im[1];
  const double far_re = re[2] + re[3], far_im = im[2] + im[3];
  const double turned_re = im[2] - im[3], turned_im = re[3] - re[2];
  re[0] = sum_re + far_re;
  im[0] = sum_im + far_im;
  re[1] = difference_re + turned_re;
  im[1] = difference_im + turned_im;
  re[2] = sum_re - far_re;
  im[2] = sum_im - far_im;
  re[3] = difference_re - turned_re;
  im[3] = difference_im - turned_im;
}

// The first bin and the last: the middle number of the transform turns by -1.
inline void OuterBins(SplitComplex line, int64_t half, SplitComplex out) {
  const double even = *line.re, odd = *line.im;
  out.re[0] = even + odd;
  out.re[half] = even - odd;
  out.im[0] = out.im[half] = 0;
}

// Bin k of 0 < k < half.
inline void Bin(SplitComplex line, int64_t half, int64_t k, SplitRoots turns, SplitComplex out) {
  const double re = line.re[k], im = line.im[k];
  const double mirrored_re = line.re[half - k], mirrored_im = -line.im[half - k];
  const double odd_re = (im - mirrored_im) * 0.5, odd_im = (mirrored_re - re) * 0.5;
  out.re[k] = (re + mirrored_re) * 0.5 + (odd_re * turns.re[k] - odd_im * turns.im[k]);
  out.im[k] = (im + mirrored_im) * 0.5 + (odd_re * turns.im[k] + odd_im * turns.re[k]);
}

}  // namespace fuselite::kernels
