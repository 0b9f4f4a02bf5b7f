// Functions of one or two numbers, as operators and as stages of a fused tail.
#pragma once

#include <cstdint>
#include <string_view>

namespace fuselite::kernels {

enum class UnaryKind : uint8_t {
  kIdentity,
  kClamp,        // min(max(x, a), b): RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1 are clamps
  kLeakyRelu,    // x < 0 ? a x : x
  kElu,          // x < 0 ? exp(x) - 1 : x
  kGelu,         // x/2 (1 + erf(x / sqrt 2))
  kGeluTanh,     // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kHardSwish,    // x min(max(x + 3, 0), 6) / 6
  kHardSigmoid,  // min(max(a x + b, 0), 1)
  kLogistic,
  kSilu,  // x logistic(x)
  kTanh,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kAbs,
  kNeg,
  kFloor,
  kCeil,
  kRound,  // half to even
  kSquare,
  kSin,
  kCos,
  kSign,
  kErf,
  kSoftsign,  // x / (|x| + 1)
  kAffine,    // a x + b, rounded once per operation
};
inline constexpr int kUnaryKindCount = 27;
std::string_view UnaryName(UnaryKind kind);

// x is the value that flows through the tail, y the operand.
enum class BinaryKind : uint8_t {
  kAdd,
  kSub,         // x - y
  kReverseSub,  // y - x
  kMul,
  kDiv,             // x / y
  kReverseDiv,      // y / x
  kMaximum,         // x > y ? x : y
  kReverseMaximum,  // y > x ? y : x, which differs for NaN and zeros of two signs
  kMinimum,         // x < y ? x : y
  kReverseMinimum,  // y < x ? y : x
  kSquaredDifference,
  kPrelu,  // x < 0 ? x y : x
};
inline constexpr int kBinaryKindCount = 12;
std::string_view BinaryName(BinaryKind kind);
// What gives the same with x and y exchanged. Precondition: not kPrelu.
BinaryKind Reversed(BinaryKind kind);

}  // namespace fuselite::kernels
