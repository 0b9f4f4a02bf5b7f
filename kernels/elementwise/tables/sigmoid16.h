// LOGISTIC and TANH of int16 as TFLite's reference kernels compute them.
#pragma once

#include <cstdint>

#include "runtime/support/status.h"

namespace fuselite::kernels {

// LOGISTIC and TANH with 15 fraction bits, from one table of the logistic function of multiples of
// 1/24. Fails on scales that TFLite's tables do not reach.
class Sigmoid16 {
 public:
  static Result<Sigmoid16> Logistic(float in_scale);
  static Result<Sigmoid16> Tanh(float in_scale);
  int16_t operator()(int32_t x) const { return tanh_ ? TanhOf(Scaled(x)) : LogisticOf(Scaled(x)); }

 private:
  static Result<Sigmoid16> Make(float in_scale, bool tanh);
  int32_t Scaled(int32_t x) const { return (x * multiplier_ + round_) >> shift_; }
  static int16_t LogisticOf(int32_t x);
  static int16_t TanhOf(int32_t x);

  bool tanh_ = false;
  int32_t multiplier_ = 0;
  int shift_ = 0;
  int32_t round_ = 0;
};

}  // namespace fuselite::kernels
