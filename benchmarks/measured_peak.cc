#include "benchmarks/measured_peak.h"

#include <algorithm>
#include <chrono>
#include <map>

#ifdef FUSELITE_HAS_JIT
#include "jit/assembler.h"
#endif

namespace fuselite::benchmarks {

#ifdef FUSELITE_HAS_JIT
namespace {

constexpr int kChains = 12;  // more than latency times throughput of any x86 core
constexpr int kLoops = 20000;

// Seconds of kLoops times kChains independent multiply-adds, the best of many.
double TimeLoop(Isa isa, bool int8) {
  const auto emit = [&]() -> Result<jit::CodeBytes> {
    jit::Assembler a(isa);
    Xbyak::Label next;
    a.BeginFunction();
    a.mov(a.rcx, kLoops);
    for (int i = 0; i < kChains + 2; ++i) a.Zero(i);
    a.L(next);
    for (int i = 0; i < kChains; ++i) {
      if (!int8) {
        a.vfmadd231ps(a.Vec(i), a.Vec(kChains), a.Vec(kChains + 1));
      } else if (a.isa().avx512) {
        a.vpdpbusd(a.Vec(i), a.Vec(kChains), a.Vec(kChains + 1));
      } else {
        a.vpdpbusd(a.Vec(i), a.Vec(kChains), a.Vec(kChains + 1), Xbyak::VexEncoding);
      }
    }
    a.dec(a.rcx);
    a.jnz(next);
    a.EndFunction();
    return a.Finish({0});
  };
  jit::CodeCache cache;
  auto code = cache.GetOrEmit("peak", "peak", emit);
  if (!code.ok()) return 0;
  double best = 1e9;
  for (int i = 0; i < 200; ++i) {
    const auto start = std::chrono::steady_clock::now();
    (*code)->entry<void()>(0)();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

double Measure(Isa isa, bool int8) {
  if (!jit::VectorIsa::Supported(isa)) return 0;
  const double lanes = jit::VectorIsa(isa).lanes() * (int8 ? 4 : 1);
  const double seconds = TimeLoop(isa, int8);
  return seconds > 0 ? 2.0 * lanes * kChains * kLoops / seconds / 1e9 : 0;
}

}  // namespace

double FloatPeak(Isa isa) {
  static std::map<Isa, double> measured;
  if (!measured.count(isa)) measured[isa] = Measure(isa, false);
  return measured[isa];
}

double Int8Peak(Isa isa) {
  if (!Includes(isa, Isa::kAvxVnni) && !Includes(isa, Isa::kAvx512Vnni)) return 0;
  static std::map<Isa, double> measured;
  if (!measured.count(isa)) measured[isa] = Measure(isa, true);
  return measured[isa];
}
#else
double FloatPeak(Isa) { return 0; }
double Int8Peak(Isa) { return 0; }
#endif

}  // namespace fuselite::benchmarks
