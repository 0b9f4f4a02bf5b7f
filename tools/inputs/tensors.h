// Filling inputs and comparing outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "interpreter/interpreter.h"
#include "kernels/candidate.h"
#include "runtime/support/status.h"
#include "tools/inputs/npy.h"

namespace fuselite::tools {

// Values that repeat for a seed: floats in [-1, 1], 8-bit integers and int16 over their range,
// other integers and bool 0 or 1, strings of one letter. Each input has its own sequence. Fails
// where there is no memory for strings.
Status FillRandom(interpreter::Interpreter& interpreter, uint64_t seed);

// Values for one input that repeat for a seed, uniform in [low, high]; integers include both ends.
// kInvalidArgument where the type is no number or does not hold the bounds.
Status FillRandomWithin(interpreter::Interpreter& interpreter, int place, double low, double high,
                        uint64_t seed);

// Changes each element of the float32 inputs by a random part of 2^-20: what sixteen roundings
// amount to. The same changes for a seed.
void PerturbInputs(interpreter::Interpreter& interpreter, uint64_t seed);

// A copy of the tensor's value, of strings with their table; kUnsupported for types without a size.
Result<Array> CopyTensor(const interpreter::TensorView& tensor);

// The elements as doubles.
std::vector<double> ToDoubles(const Array& array);

struct Difference {
  double max = 0, mean = 0,
         deviation = 0;  // of |actual - expected|; infinite where only one is NaN
  // Largest minus smallest expected value; where there is but one element, its magnitude: one value
  // has no range, but it is rounded all the same.
  double range = 0;
  bool same_shape = true;
  bool is_nan = false;  // all expected values are NaN: nothing was compared
};
Difference Compare(const Array& actual, const Array& expected);

// The part of an output's range by which floats may differ without being at fault.
inline constexpr double kFloatPart = 1e-5;
// kFloatPart, or more where activations are rounded before they are multiplied: 2% with operators
// of dynamic range (a last bit of a float rounds an activation to the next of its row's 127 steps,
// in each layer; ViT-tiny's outputs are 0.6% of their range away from the reference, XNNPACK's
// too), 10% with precision=fast (the 8 bits of bfloat16 move MobileNetV2's largest probability by
// 7%).
double AllowedPart(const interpreter::Model& model, kernels::Precision precision);

// The greatest difference that is no fault: 0 for integers, else `part` of the range or, where that
// is more, 1e-6.
double DefaultTolerance(DataType type, double range, double part);

}  // namespace fuselite::tools
