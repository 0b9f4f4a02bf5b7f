#include "tools/measure/machine_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

namespace fuselite::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kMeasuredFor = std::chrono::milliseconds(20);
// Sums that grow independently: more than latency times throughput of any core of today.
constexpr int kSums = 12;
constexpr int64_t kRounds = 10000;

// A loop of `rounds` rounds, in each of which every sum grows by `operations`.
struct Loop {
  void (*run)(int64_t rounds) = nullptr;
  double operations = 0;
};

// Loops in assembler: what is measured is these instructions, whatever the compiler is.
// `zero` and `line` make the text for register i; registers 0 to 11 are the sums, 12 and 13 the
// factors, 14 and 15 are free.
#define FUSELITE_SUMS(line)                                                                 \
  line("0") line("1") line("2") line("3") line("4") line("5") line("6") line("7") line("8") \
      line("9") line("10") line("11")

#if defined(__x86_64__)
#define FUSELITE_LOOP(name, zero, line, end)                                                       \
  void name(int64_t rounds) {                                                                      \
    asm volatile(FUSELITE_SUMS(zero) zero("12") zero("13") zero("14") zero("15")                 \
                 "1:\n" FUSELITE_SUMS(line) "dec %0\n"                                           \
                 "jnz 1b\n" end                                                                  \
                 : "+r"(rounds)                                                                  \
                 :                                                                               \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"); \
  }
#define FUSELITE_SSE_ZERO(i) "pxor %%xmm" i ", %%xmm" i "\n"
#define FUSELITE_VEX_ZERO(i) "vpxor %%xmm" i ", %%xmm" i ", %%xmm" i "\n"

#define FUSELITE_LINE(i) \
  "movaps %%xmm12, %%xmm14\nmulss %%xmm13, %%xmm14\naddss %%xmm14, %%xmm" i "\n"
FUSELITE_LOOP(ScalarFloats, FUSELITE_SSE_ZERO, FUSELITE_LINE, "")
#undef FUSELITE_LINE
#define FUSELITE_LINE(i) \
  "movaps %%xmm12, %%xmm14\nmulps %%xmm13, %%xmm14\naddps %%xmm14, %%xmm" i "\n"
FUSELITE_LOOP(SseFloats, FUSELITE_SSE_ZERO, FUSELITE_LINE, "")
#undef FUSELITE_LINE
#define FUSELITE_LINE(i) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" i "\n"
FUSELITE_LOOP(AvxFloats, FUSELITE_VEX_ZERO, FUSELITE_LINE, "vzeroupper\n")
#undef FUSELITE_LINE
#define FUSELITE_LINE(i) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" i "\n"
FUSELITE_LOOP(Avx512Floats, FUSELITE_VEX_ZERO, FUSELITE_LINE, "vzeroupper\n")
#undef FUSELITE_LINE

#define FUSELITE_LINE(i) "vdpbf16ps %%zmm12, %%zmm13, %%zmm" i "\n"
FUSELITE_LOOP(Avx512Bf16Floats, FUSELITE_VEX_ZERO, FUSELITE_LINE, "vzeroupper\n")
#undef FUSELITE_LINE

#define FUSELITE_LINE(i)                                                            \
  "movdqa %%xmm12, %%xmm14\npmaddubsw %%xmm13, %%xmm14\npmaddwd %%xmm15, %%xmm14\n" \
  "paddd %%xmm14, %%xmm" i "\n"
FUSELITE_LOOP(SseBytes, FUSELITE_SSE_ZERO, FUSELITE_LINE, "")
#undef FUSELITE_LINE
#define FUSELITE_LINE(i)                                                       \
  "vpmaddubsw %%ymm12, %%ymm13, %%ymm14\nvpmaddwd %%ymm15, %%ymm14, %%ymm14\n" \
  "vpaddd %%ymm14, %%ymm" i ", %%ymm" i "\n"
FUSELITE_LOOP(AvxBytes, FUSELITE_VEX_ZERO, FUSELITE_LINE, "vzeroupper\n")
#undef FUSELITE_LINE
#define FUSELITE_LINE(i)                                                       \
  "vpmaddubsw %%zmm12, %%zmm13, %%zmm14\nvpmaddwd %%zmm15, %%zmm14, %%zmm14\n" \
  "vpaddd %%zmm14, %%zmm" i ", %%zmm" i "\n"
FUSELITE_LOOP(Avx512Bytes, FUSELITE_VEX_ZERO, FUSELITE_LINE, "vzeroupper\n")
#undef FUSELITE_LINE
#define FUSELITE_LINE(i) "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm" i "\n"
FUSELITE_LOOP(AvxVnniBytes, FUSELITE_VEX_ZERO, FUSELITE_LINE, "vzeroupper\n")
#undef FUSELITE_LINE
#define FUSELITE_LINE(i) "vpdpbusd %%zmm12, %%zmm13, %%zmm" i "\n"
FUSELITE_LOOP(Avx512VnniBytes, FUSELITE_VEX_ZERO, FUSELITE_LINE, "vzeroupper\n")
#undef FUSELITE_LINE

// Tiles of 16 rows and 64 bytes; 0 to 3 are the sums.
struct AmxShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
};
#define FUSELITE_AMX_LOOP(name, product)                                        \
  void name(int64_t rounds) {                                                   \
    const AmxShapes shapes;                                                     \
    asm volatile(                                                               \
        "ldtilecfg %1\n"                                                        \
        "1:\n"                                                                  \
        ".rept 3\n" product " %%tmm5, %%tmm4, %%tmm0\n" product                 \
        " %%tmm5, %%tmm4, %%tmm1\n" product " %%tmm5, %%tmm4, %%tmm2\n" product \
        " %%tmm5, %%tmm4, %%tmm3\n"                                             \
        ".endr\n"                                                               \
        "dec %0\n"                                                              \
        "jnz 1b\n"                                                              \
        "tilerelease\n"                                                         \
        : "+r"(rounds)                                                          \
        : "m"(shapes)                                                           \
        : "cc");                                                                \
  }
FUSELITE_AMX_LOOP(AmxBytes, "tdpbssd")
FUSELITE_AMX_LOOP(AmxBf16Floats, "tdpbf16ps")
#undef FUSELITE_AMX_LOOP

Loop FloatLoop(Isa isa) {
  if (isa.has(Feature::kAvx512)) return {Avx512Floats, 32};
  if (isa.has(Feature::kAvx2)) return {AvxFloats, 16};
  if (isa.has(Feature::kSsse3)) return {SseFloats, 8};
  return {ScalarFloats, 2};
}

Loop Bf16Loop(Isa isa) {
  if (isa.has(Feature::kAmxBf16)) return {AmxBf16Floats, 2 * 16 * 16 * 32};
  if (isa.has(Feature::kAvx512Bf16)) return {Avx512Bf16Floats, 64};
  return {};
}

Loop Int8Loop(Isa isa) {
  if (isa.has(Feature::kAmxInt8)) return {AmxBytes, 2 * 16 * 16 * 64};
  if (isa.has(Feature::kAvx512Vnni)) return {Avx512VnniBytes, 128};
  if (isa.has(Feature::kAvx512)) return {Avx512Bytes, 128};
  if (isa.has(Feature::kAvxVnni)) return {AvxVnniBytes, 64};
  if (isa.has(Feature::kAvx2)) return {AvxBytes, 64};
  if (isa.has(Feature::kSsse3)) return {SseBytes, 32};
  return {};
}

#elif defined(__aarch64__)
#define FUSELITE_LOOP(name, line)                                                                \
  void name(int64_t rounds) {                                                                    \
    asm volatile(FUSELITE_SUMS(FUSELITE_ZERO) FUSELITE_ZERO("12") FUSELITE_ZERO("13")          \
                     FUSELITE_ZERO("14") "1:\n" FUSELITE_SUMS(line) "subs %0, %0, #1\n"        \
                 "b.ne 1b\n"                                                                   \
                 : "+r"(rounds)                                                                \
                 :                                                                             \
                 : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",    \
                   "v11", "v12", "v13", "v14"); \
  }
#define FUSELITE_ZERO(i) "movi v" i ".4s, #0\n"

#define FUSELITE_LINE(i) "fmul s14, s12, s13\nfadd s" i ", s" i ", s14\n"
FUSELITE_LOOP(ScalarFloats, FUSELITE_LINE)
#undef FUSELITE_LINE
#define FUSELITE_LINE(i) "fmla v" i ".4s, v12.4s, v13.4s\n"
FUSELITE_LOOP(NeonFloats, FUSELITE_LINE)
#undef FUSELITE_LINE
#define FUSELITE_LINE(i) "smull v14.8h, v12.8b, v13.8b\nsadalp v" i ".4s, v14.8h\n"
FUSELITE_LOOP(NeonBytes, FUSELITE_LINE)
#undef FUSELITE_LINE
// sdot vI.4s, v12.16b, v13.16b: as a number, since assemblers refuse it for the baseline.
#define FUSELITE_LINE(i) ".inst 0x4e8d9580 + " i "\n"
FUSELITE_LOOP(DotProductBytes, FUSELITE_LINE)
#undef FUSELITE_LINE

Loop FloatLoop(Isa isa) {
  return isa.has(Feature::kNeon) ? Loop{NeonFloats, 8} : Loop{ScalarFloats, 2};
}

Loop Bf16Loop(Isa) { return {}; }

Loop Int8Loop(Isa isa) {
  if (isa.has(Feature::kDotProd)) return {DotProductBytes, 32};
  return isa.has(Feature::kNeon) ? Loop{NeonBytes, 16} : Loop{};
}
#else
Loop FloatLoop(Isa) { return {}; }
Loop Bf16Loop(Isa) { return {}; }
Loop Int8Loop(Isa) { return {}; }
#endif

// The best rate of `work` on each of `threads` that repeat it at the same time, summed. `work(i)`
// is done by the i-th of them and returns how much it did.
double SumOfRates(int threads, const std::function<double(int)>& work) {
  std::vector<double> rates(static_cast<size_t>(std::max(threads, 1)));
  std::atomic<int> missing(static_cast<int>(rates.size()));
  const auto repeat = [&](int i) {
    work(i);  // caches and the clock
    for (--missing; missing > 0;) std::this_thread::yield();
    const Clock::time_point end = Clock::now() + kMeasuredFor;
    for (Clock::time_point start = Clock::now(); start < end;) {
      const double done = work(i);
      const Clock::time_point now = Clock::now();
      rates[i] = std::max(rates[i], done / std::chrono::duration<double>(now - start).count());
      start = now;
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < static_cast<int>(rates.size()); ++i) others.emplace_back(repeat, i);
  repeat(0);
  for (std::thread& thread : others) thread.join();
  return std::reduce(rates.begin(), rates.end());
}

double Measure(const Loop& loop, int threads) {
  if (loop.run == nullptr) return 0;
  return SumOfRates(threads, [&](int) {
    loop.run(kRounds);
    return loop.operations * kSums * kRounds;
  });
}

}  // namespace

double MeasureFloatPeak(Isa isa, int threads) { return Measure(FloatLoop(isa), threads); }
double MeasureBf16Peak(Isa isa, int threads) { return Measure(Bf16Loop(isa), threads); }
double MeasureInt8Peak(Isa isa, int threads) { return Measure(Int8Loop(isa), threads); }

double MeasureCopyBandwidth(size_t bytes, int threads) {
  std::vector<std::vector<char>> buffers(static_cast<size_t>(std::max(threads, 1)));
  for (std::vector<char>& buffer : buffers) buffer.resize(bytes);
  // A clock read takes 20 to 50 ns: as many copies as make it vanish.
  const size_t copies = std::max<size_t>(1, (size_t{1} << 20) / bytes);
  return SumOfRates(threads, [&](int i) {
    char* data = buffers[static_cast<size_t>(i)].data();
    const size_t half = bytes / 2;
    for (size_t copy = 0; copy < copies; ++copy) {
      std::memcpy(data + half, data, half);
      asm volatile("" : : "r"(data) : "memory");  // each copy counts
    }
    return static_cast<double>(2 * half * copies);
  });
}

}  // namespace fuselite::tools
