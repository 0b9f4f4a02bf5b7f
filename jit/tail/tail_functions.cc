// The tail's functions of one number. Polynomials are least-maximum fits to the function in double
// precision, made for this file; results are within 4 units in the last place.
#include "jit/tail/tail_emitter.h"

// A function that a switch forgets, or takes for another by a default, would compute wrong numbers.
#pragma GCC diagnostic error "-Wswitch-enum"

namespace fuselite::jit {

using kernels::TailStage;
using kernels::UnaryKind;
using Xbyak::Xmm;

namespace {

// exp(r) = 1 + r + r^2 (c0 + c1 r + c2 r^2 + c3 r^3) for |r| <= ln(2) / 2: 1e-7 relative.
constexpr float kExp[] = {1.0f,
                          1.0f,
                          0.4999910891056061f,
                          0.16666457056999207f,
                          0.04190314933657646f,
                          0.008374694734811783f};
constexpr float kLog2E = 1.44269504f;
constexpr float kLn2High = 0.693145752f;  // ln 2 to 17 bits: n * kLn2High is exact
constexpr float kLn2Low = 1.42860677e-6f;
constexpr float kLn2 = 0.693147182f;
// Between these, exp and 2^n of its reduction are normal numbers.
constexpr float kNormalLow = -87.0f, kNormalHigh = 88.0f;
// Here exp is 0 in float, and that of the negative infinite.
constexpr float kZeroLow = -104.0f;

// tanh(z) = z P(z^2) / Q(z^2) for |z| <= 8.6: 1.4e-8 relative. At the limit the quotient is 3e-7
// above 1 and is cut to it, so that results saturate exactly.
constexpr float kTanhLimit = 9.1f;
constexpr float kTanhP[] = {1.0f, 0.1340688318014145f, 0.003526410786435008f,
                            2.112252877850551e-05f, 1.4082665700243524e-08f};
constexpr float kTanhQ[] = {1.0f, 0.46740204095840454f, 0.025993935763835907f,
                            0.0003336285299155861f, 8.070718422459322e-07f};

// erf(z / sqrt(2)) / 2 = z P(z^2) / Q(z^2) for |z| <= 5.56: 5.4e-8 relative. At the limit 2.5e-7
// above 1/2, likewise.
constexpr float kHalfErfLimit = 5.671f;
constexpr float kHalfErfP[] = {0.3989422619342804f,    0.035496704280376434f,
                               0.004480257630348206f,  0.00016513149603269994f,
                               3.1485355975746643e-6f, -2.1603662858637982e-8f,
                               1.0946517997600935e-10f};
constexpr float kHalfErfQ[] = {1.0f, 0.255642831325531f, 0.02883976697921753f,
                               0.0018032932421192527f, 6.0239737649681047e-5f};

// tanh(sqrt(2 / pi) (z + 0.044715 z^3)) / 2 = z P(z^2) / Q(z^2) for |z| <= 5: 6.8e-9 relative. At
// the limit 1.8e-7 above 1/2, likewise.
constexpr float kHalfGeluTanhLimit = 5.2f;
constexpr float kHalfGeluTanhP[] = {
    0.3989422917366028f,    0.026209082454442978f,   0.003042421070858836f,  8.553743828088045e-05f,
    3.572560217435239e-06f, -3.059178510511629e-08f, 1.7352130843306668e-10f};
constexpr float kHalfGeluTanhQ[] = {1.0f, 0.2331879585981369f, 0.021111777052283287f,
                                    0.0009033447131514549f, 5.164595859241672e-05f};

constexpr uint32_t kSignBit = 0x80000000u;
constexpr uint32_t kOneBits = 0x3f800000u;

// How to round: no exceptions, and to the nearest (ties to even), down, or up.
constexpr int kNearest = 8, kDown = 9, kUp = 10;

}  // namespace

void TailEmitter::ClampNaN(int v, float low, float high, int t) {
  a_.vmaxps(a_.Vec(v), a_.InRegister(low, t), a_.Vec(v));
  a_.vminps(a_.Vec(v), a_.InRegister(high, t), a_.Vec(v));
}

void TailEmitter::Horner(int result, int x, std::span<const float> coefficients) {
  a_.LoadConst(result, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) {
    a_.vfmadd213ps(a_.Vec(result), a_.Vec(x), a_.Const(coefficients[i]));
  }
}

void TailEmitter::Round(int to, int from, int mode) {
  if (a_.isa().avx512) return a_.vrndscaleps(a_.Vec(to), a_.Vec(from), mode);
  a_.vroundps(a_.Vec(to), a_.Vec(from), mode);
}

void TailEmitter::ReduceByLn2(int v, float low, float high) {
  const Xmm x = a_.Vec(v), n = a_.Vec(t(0));
  ClampNaN(v, low, high, t(0));
  a_.vmulps(n, x, a_.Const(kLog2E));
  Round(t(0), t(0), kNearest);
  a_.vfnmadd231ps(x, n, a_.Const(kLn2High));
  a_.vfnmadd231ps(x, n, a_.Const(kLn2Low));
}

// exp(v) = 2^n exp(r).
void TailEmitter::Exp(int v, float low, float high) {
  ReduceByLn2(v, low, high);
  Horner(t(1), v, kExp);
  TimesPowerOfTwo(v, low >= kNormalLow && high <= kNormalHigh);
}

// v = 2^n p, n being the whole number in temporary 0 and p temporary 1. `normal`: 2^n is.
void TailEmitter::TimesPowerOfTwo(int v, bool normal) {
  const Xmm x = a_.Vec(v), n = a_.Vec(t(0)), p = a_.Vec(t(1));
  if (a_.isa().avx512) return a_.vscalefps(x, p, n);
  a_.vcvtps2dq(n, n);
  if (normal) {
    a_.vpslld(n, n, 23);
    a_.vpaddd(n, n, a_.Const(kOneBits));
    return a_.vmulps(x, p, n);
  }
  // A product of two: n may reach beyond the exponents of one float.
  a_.vpsrad(x, n, 1);
  a_.vpsubd(n, n, x);
  for (const Xmm& half : {x, n}) {
    a_.vpslld(half, half, 23);
    a_.vpaddd(half, half, a_.Const(kOneBits));
  }
  a_.vmulps(x, x, p);
  a_.vmulps(x, x, n);
}

// exp(v) - 1 = 2^n (exp(r) - 1) + (2^n - 1), which does not cancel near 0.
void TailEmitter::Expm1NonPositive(int v) {
  const Xmm x = a_.Vec(v), n = a_.Vec(t(0)), p = a_.Vec(t(1));
  ReduceByLn2(v, -30.0f, 0.0f);
  Horner(t(1), v, std::span(kExp).subspan(1));
  a_.vmulps(x, x, p);
  if (a_.isa().avx512) {
    a_.vscalefps(n, a_.InRegister(1.0f, t(1)), n);
  } else {
    a_.vcvtps2dq(n, n);
    a_.vpslld(n, n, 23);
    a_.vpaddd(n, n, a_.Const(kOneBits));
  }
  a_.vsubps(p, n, a_.Const(1.0f));
  a_.vfmadd213ps(x, n, p);
}

// 1 where v > 0, -1 where v < 0, NaN where it is NaN, else 0.
void TailEmitter::Sign(int v) {
  constexpr int kLess = 0x11;  // ordered, quiet
  const Xmm x = a_.Vec(v), zero = a_.Vec(t(0));
  const Xmm& one = a_.InRegister(1.0f, t(1));  // may be one that is kept: it is only read
  a_.Zero(t(0));
  const auto one_where_less = [&](int to, const Xmm& a, const Xmm& b) {
    if (a_.isa().avx512) {
      a_.vcmpps(a_.k2, a, b, kLess);
      return a_.vmovaps(a_.Vec(to) | a_.k2 | a_.T_z, one);
    }
    a_.vcmpps(a_.Vec(to), a, b, kLess);
    a_.vandps(a_.Vec(to), a_.Vec(to), one);
  };
  one_where_less(t(2), zero, x);
  one_where_less(t(3), x, zero);
  a_.vsubps(a_.Vec(t(2)), a_.Vec(t(2)), a_.Vec(t(3)));
  constexpr int kOrdered = 7;
  if (a_.isa().avx512) {
    a_.vcmpps(a_.k2, x, x, kOrdered);
    a_.vmovaps(x | a_.k2, a_.Vec(t(2)));
  } else {
    a_.vcmpps(a_.Vec(t(3)), x, x, kOrdered);
    a_.vblendvps(x, x, a_.Vec(t(2)), a_.Vec(t(3)));
  }
}

// v / by. Where a division of 16 floats takes long, the approximation to 14 bits with one Newton
// step is three times as fast, at one more unit of error; it needs a finite, normal divisor and
// quotient.
void TailEmitter::Divide(int v, int by, int temporary) {
  const Xmm x = a_.Vec(v), y = a_.Vec(by), r = a_.Vec(temporary);
  if (!ApproximatesQuotients()) return a_.vdivps(x, x, y);
  a_.vrcp14ps(r, y);
  a_.vfnmadd213ps(y, r, a_.Const(2.0f));
  a_.vmulps(r, r, y);
  a_.vmulps(x, x, r);
}

// 1 / sqrt(v). The approximation y to 14 bits takes a Newton step, y + y e / 2 with e = 1 - v y y,
// which is twice as fast as root and division of 16 floats. Where v is 0 or infinite e is a NaN,
// which the minimum takes for 1: y, which is infinite or 0, stays.
void TailEmitter::InverseRoot(int v) {
  const Xmm x = a_.Vec(v), y = a_.Vec(t(0)), e = a_.Vec(t(1));
  if (!a_.isa().avx512) return InverseRootOf12Bits(v);
  a_.vrsqrt14ps(y, x);
  a_.vmulps(e, x, y);
  a_.vfnmadd213ps(e, y, a_.Const(1.0f));
  a_.vminps(e, e, a_.Const(1.0f));
  a_.vmulps(x, y, a_.Const(0.5f));
  a_.vfmadd213ps(x, e, y);
}

// The same from an approximation to 12 bits, which takes a step of the third order,
// y + y e (1/2 + 3/8 e): a Newton step would leave 1.7 units. Denormal numbers are 0 to the
// approximation, and multiplied by 2^24 for it. RSQRT of 56x56x24 floats takes 18.3 us on a Zen 3,
// and took 26.1 by root and division.
void TailEmitter::InverseRootOf12Bits(int v) {
  constexpr int kLess = 0x11;  // ordered, quiet
  constexpr float kLeastNormal = 0x1p-126f;
  const Xmm x = a_.Vec(v), y = a_.Vec(t(0)), e = a_.Vec(t(1)), times = a_.Vec(t(2));
  const Xmm& one = a_.InRegister(1.0f, t(3));
  a_.vcmpps(e, x, a_.Const(kLeastNormal), kLess);
  a_.vblendvps(y, one, a_.Const(0x1p24f), e);
  a_.vblendvps(times, one, a_.Const(0x1p12f), e);
  a_.vmulps(x, x, y);
  a_.vrsqrtps(y, x);
  a_.vmulps(e, x, y);
  a_.vfnmadd213ps(e, y, a_.Const(1.0f));
  a_.vminps(e, e, a_.Const(1.0f));
  a_.LoadConst(v, 0.375f);
  a_.vfmadd213ps(x, e, a_.Const(0.5f));
  a_.vmulps(x, x, e);
  a_.vfmadd213ps(x, y, y);
  a_.vmulps(x, x, times);
}

// Where a division makes 0 of an infinite exponential, the logistic function needs it no normal
// number.
float TailEmitter::LogisticLow() const { return a_.isa().divides_fast ? kZeroLow : kNormalLow; }

// 1 + exp(-v), for LogisticLow() <= v <= -kNormalLow. ln 2 is one float in the reduction, which
// costs the exponential a unit in the last place at 50 and two at 87.
void TailEmitter::OnePlusExpOfNegative(int v) {
  const Xmm x = a_.Vec(v), n = a_.Vec(t(0));
  a_.vmulps(n, x, a_.Const(-kLog2E));
  Round(t(0), t(0), kNearest);
  a_.vfnmsub231ps(x, n, a_.Const(kLn2));
  Horner(t(1), v, kExp);
  TimesPowerOfTwo(v, true);
  a_.vaddps(x, x, a_.Const(1.0f));
}

void TailEmitter::Logistic(int v) {
  const Xmm x = a_.Vec(v), y = a_.Vec(t(0));
  ClampNaN(v, LogisticLow(), -kNormalLow, t(0));
  OnePlusExpOfNegative(v);
  if (!ApproximatesQuotients()) return a_.vdivps(x, a_.InRegister(1.0f, t(0)), x);
  a_.vrcp14ps(y, x);
  a_.vfnmadd213ps(x, y, a_.Const(2.0f));
  a_.vmulps(x, x, y);
}

// v / (1 + exp(-v)). The bound below, where the result is 0, keeps it so at minus infinity.
void TailEmitter::Silu(int v) {
  const Xmm x = a_.Vec(v), bounded = a_.Vec(t(2));
  a_.vmaxps(x, a_.InRegister(kZeroLow, t(2)), x);
  a_.vminps(bounded, a_.InRegister(-kNormalLow, t(2)), x);
  if (LogisticLow() > kZeroLow) {
    a_.vmaxps(bounded, a_.InRegister(LogisticLow(), t(0)), bounded);
  }
  OnePlusExpOfNegative(t(2));
  Divide(v, t(2), t(0));
}

void TailEmitter::Quotient(int v, const OddQuotient& f) {
  a_.vmulps(a_.Vec(t(0)), a_.Vec(v), a_.Vec(v));
  Horner(t(1), t(0), f.p);
  Horner(t(2), t(0), f.q);
  a_.vmulps(a_.Vec(v), a_.Vec(v), a_.Vec(t(1)));
  Divide(v, t(2), t(0));
}

void TailEmitter::Tanh(int v) {
  ClampNaN(v, -kTanhLimit, kTanhLimit, t(0));
  Quotient(v, {kTanhP, kTanhQ});
  ClampNaN(v, -1.0f, 1.0f, t(0));
}

void TailEmitter::ClampMagnitude(int v, float most, int t) {
  constexpr int kSmaller = 2;  // of two magnitudes, with the first one's sign
  if (!a_.isa().avx512) return ClampNaN(v, -most, most, t);
  a_.vrangeps(a_.Vec(v), a_.Vec(v), a_.Const(most), kSmaller);
}

// v (1/2 + h(v)), where h is cut to [-1/2, 1/2]; a NaN comes back with the last product.
void TailEmitter::TimesHalfPlus(int v, const OddQuotient& h, float limit) {
  const Xmm x = a_.Vec(v), y = a_.Vec(t(3));
  a_.vmovaps(y, x);
  ClampMagnitude(t(3), limit, t(0));
  Quotient(t(3), h);
  ClampMagnitude(t(3), 0.5f, t(0));
  a_.vaddps(y, y, a_.Const(0.5f));
  a_.vmulps(x, x, y);
}

// Twice what GELU takes of x sqrt 2, h(y) = erf(y / sqrt 2) / 2.
void TailEmitter::Erf(int v) {
  const Xmm x = a_.Vec(v);
  a_.vmulps(x, x, a_.Const(1.4142135623730951f));
  ClampNaN(v, -kHalfErfLimit, kHalfErfLimit, t(0));
  Quotient(v, {kHalfErfP, kHalfErfQ});
  ClampNaN(v, -0.5f, 0.5f, t(0));
  a_.vaddps(x, x, x);
}

void TailEmitter::SelectNegative(int v, int when_negative) {
  const Xmm x = a_.Vec(v);
  if (a_.isa().avx512) {
    a_.vpmovd2m(a_.k2, x);
    a_.vmovaps(x | a_.k2, a_.Vec(when_negative));
  } else {
    a_.vblendvps(x, x, a_.Vec(when_negative), x);
  }
}

void TailEmitter::SelectBelowZero(int v, int when_below) {
  constexpr int kLess = 0x11;  // ordered, quiet
  const Xmm x = a_.Vec(v), below = a_.Vec(t(1));
  a_.Zero(t(1));
  if (a_.isa().avx512) {
    a_.vcmpps(a_.k2, x, below, kLess);
    a_.vmovaps(x | a_.k2, a_.Vec(when_below));
  } else {
    a_.vcmpps(below, x, below, kLess);
    a_.vblendvps(x, x, a_.Vec(when_below), below);
  }
}

void TailEmitter::EmitAffine(float a, float b, std::span<const TileValue> values) {
  const Xmm &factor = a_.InRegister(a, t(0)), &addend = a_.InRegister(b, t(1));
  for (const TileValue& value : values) {
    const Xmm x = a_.Vec(value.reg);
    a_.vmulps(x, x, factor);
    a_.vaddps(x, x, addend);
  }
}

void TailEmitter::EmitHardSwish(std::span<const TileValue> values) {
  const Xmm &gate = a_.Vec(t(0)), &three = a_.InRegister(3.0f, t(1));
  const Xmm &six = a_.InRegister(6.0f, t(2)), &sixth = a_.InRegister(1.0f / 6.0f, t(3));
  for (const TileValue& value : values) {
    const Xmm x = a_.Vec(value.reg);
    a_.vaddps(gate, x, three);
    a_.vmaxps(gate, gate, a_.Const(0.0f));
    a_.vminps(gate, gate, six);
    a_.vmulps(x, x, gate);
    a_.vmulps(x, x, sixth);
  }
}

void TailEmitter::EmitFunction(const TailStage& stage, int v) {
  const Xmm x = a_.Vec(v), t0 = a_.Vec(t(0)), t3 = a_.Vec(t(3));
  switch (stage.unary) {
    case UnaryKind::kLeakyRelu: a_.vmulps(t0, x, a_.Const(stage.a)); return SelectNegative(v, t(0));
    case UnaryKind::kGelu: return TimesHalfPlus(v, {kHalfErfP, kHalfErfQ}, kHalfErfLimit);
    case UnaryKind::kGeluTanh:
      return TimesHalfPlus(v, {kHalfGeluTanhP, kHalfGeluTanhQ}, kHalfGeluTanhLimit);
    case UnaryKind::kHardSigmoid:
      a_.vmulps(x, x, a_.Const(stage.a));
      a_.vaddps(x, x, a_.Const(stage.b));
      return ClampNaN(v, 0.0f, 1.0f, t(0));
    case UnaryKind::kLogistic: return Logistic(v);
    case UnaryKind::kSilu: return Silu(v);
    case UnaryKind::kTanh: return Tanh(v);
    case UnaryKind::kExp: return Exp(v, kZeroLow, 89.0f);
    case UnaryKind::kSqrt: return a_.vsqrtps(x, x);
    case UnaryKind::kRsqrt: return InverseRoot(v);
    case UnaryKind::kAbs: return a_.vandps(x, x, a_.Const(~kSignBit));
    case UnaryKind::kNeg: return a_.vxorps(x, x, a_.Const(kSignBit));
    case UnaryKind::kFloor: return Round(v, v, kDown);
    case UnaryKind::kCeil: return Round(v, v, kUp);
    case UnaryKind::kRound: return Round(v, v, kNearest);
    case UnaryKind::kSquare: return a_.vmulps(x, x, x);
    case UnaryKind::kElu:
      a_.vmovaps(t3, x);
      Expm1NonPositive(t(3));
      return SelectNegative(v, t(3));
    case UnaryKind::kSign: return Sign(v);
    case UnaryKind::kErf: return Erf(v);
    case UnaryKind::kSoftsign:
      a_.vandps(t3, x, a_.Const(~kSignBit));
      a_.vaddps(t3, t3, a_.Const(1.0f));
      return a_.vdivps(x, x, t3);
    case UnaryKind::kIdentity:
    // EmitUnary has these.
    case UnaryKind::kClamp:
    case UnaryKind::kAffine:
    case UnaryKind::kHardSwish:
    // Check() refuses these.
    case UnaryKind::kLog:
    case UnaryKind::kSin:
    case UnaryKind::kCos: return;
  }
}

}  // namespace fuselite::jit
