// What other people bring to the interpreter: an operator and a delegate. They do what they should,
// and now and then what they should not: fail, report, resize as nothing can be, ask for what is
// not there.
#pragma once

#include "runtime/tflite/abi.h"
#include "runtime/tflite/operator.h"
#include "tests/kernels/random.h"

namespace fuselite::fuzz {

// The operator "Stranger" gives its first input, one larger. The delegate computes zeros.
// Both draw from `random`; all of them outlive the interpreters that they are given to.
class Stranger {
 public:
  explicit Stranger(kernels::testing::Random& random);
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  const tflite::TfLiteOperator& op() const { return op_; }
  tflite::TfLiteDelegate* delegate() { return &delegate_; }

 private:
  struct Calls;

  kernels::testing::Random& random_;
  char name_[9] = "Stranger";
  tflite::TfLiteOperator op_{};
  tflite::TfLiteDelegate delegate_{};
};

}  // namespace fuselite::fuzz
