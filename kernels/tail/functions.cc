// The scalar functions of tail stages.
#include <algorithm>
#include <cmath>

#include "kernels/tail/apply.h"

// A function that a switch forgets, or takes for another by a default, would compute wrong numbers.
#pragma GCC diagnostic error "-Wswitch-enum"

namespace fuselite::kernels {

float ApplyUnary(UnaryKind kind, float x, float a, float b) {
  switch (kind) {
    case UnaryKind::kIdentity: return x;
    case UnaryKind::kClamp: return std::min(std::max(x, a), b);
    case UnaryKind::kLeakyRelu: return x < 0 ? x * a : x;
    case UnaryKind::kElu: return x < 0 ? std::expm1(x) : x;
    case UnaryKind::kGelu: return 0.5f * x * std::erfc(x * static_cast<float>(-M_SQRT1_2));
    case UnaryKind::kGeluTanh: {
      const float inner = static_cast<float>(M_2_SQRTPI * M_SQRT1_2) * (x + 0.044715f * x * x * x);
      return 0.5f * x * (1.0f + std::tanh(inner));
    }
    case UnaryKind::kHardSwish: return x * std::min(6.0f, std::max(0.0f, x + 3.0f)) / 6.0f;
    case UnaryKind::kHardSigmoid: return std::min(std::max(a * x + b, 0.0f), 1.0f);
    case UnaryKind::kLogistic: return 1.0f / (1.0f + std::exp(-x));
    case UnaryKind::kSilu: return x * (1.0f / (1.0f + std::exp(-x)));
    case UnaryKind::kTanh: return std::tanh(x);
    case UnaryKind::kExp: return std::exp(x);
    case UnaryKind::kLog: return std::log(x);
    case UnaryKind::kSqrt: return std::sqrt(x);
    case UnaryKind::kRsqrt: return 1.0f / std::sqrt(x);
    case UnaryKind::kAbs: return std::abs(x);
    case UnaryKind::kNeg: return -x;
    case UnaryKind::kFloor: return std::floor(x);
    case UnaryKind::kCeil: return std::ceil(x);
    case UnaryKind::kRound: return std::nearbyint(x);
    case UnaryKind::kSquare: return x * x;
    case UnaryKind::kSin: return std::sin(x);
    case UnaryKind::kCos: return std::cos(x);
    case UnaryKind::kSign: return std::isnan(x) ? x : static_cast<float>((x > 0) - (x < 0));
    case UnaryKind::kErf: return std::erf(x);
    case UnaryKind::kSoftsign: return x / (std::abs(x) + 1.0f);
    case UnaryKind::kAffine: return a * x + b;
  }
  return x;
}

float ApplyBinary(BinaryKind kind, float x, float y) {
  switch (kind) {
    case BinaryKind::kAdd: return x + y;
    case BinaryKind::kSub: return x - y;
    case BinaryKind::kReverseSub: return y - x;
    case BinaryKind::kMul: return x * y;
    case BinaryKind::kDiv: return x / y;
    case BinaryKind::kReverseDiv: return y / x;
    // Two zeros, or a NaN beside anything, give the number behind the colon.
    case BinaryKind::kMaximum: return x > y ? x : y;
    case BinaryKind::kReverseMaximum: return y > x ? y : x;
    case BinaryKind::kMinimum: return x < y ? x : y;
    case BinaryKind::kReverseMinimum: return y < x ? y : x;
    case BinaryKind::kSquaredDifference: return (x - y) * (x - y);
    case BinaryKind::kPrelu: return x < 0 ? x * y : x;
  }
  return x;
}

}  // namespace fuselite::kernels
