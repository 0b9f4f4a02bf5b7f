// From integer sums to bytes: a shallow and a deeper pointwise convolution whose tails take the
// ways of jit/tail/requantization.h, and the time to find the floats of one channel.
#include <cmath>

#include "benchmarks/op_benchmark.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/tail/float_scale.h"

namespace fuselite::benchmarks {
namespace {

constexpr int32_t kSize = 32, kChannels = 96;
constexpr int64_t kTileRows = 4;  // what times are given for: 4 pixels of all channels

enum class Tail {
  kRelu,          // nothing below the zero point
  kSigned,        // steps on both sides of zero
  kPowersOfTwo,   // scales whose steps lie on whole sums: integers
  kDeadChannels,  // in each vector a channel that is beyond 32 bits
};
const char* NameOf(Tail tail) {
  switch (tail) {
    case Tail::kRelu: return "relu";
    case Tail::kSigned: return "signed";
    case Tail::kPowersOfTwo: return "powers of two";
    case Tail::kDeadChannels: return "dead channels";
  }
  return "";
}

std::vector<float> Scales(Tail tail) {
  std::mt19937 engine(7);
  std::vector<float> scales;
  for (int i = 0; i < kChannels; ++i) {
    const float random = 0.005f + 0.015f * static_cast<float>(engine()) * 0x1p-32f;
    scales.push_back(tail == Tail::kPowersOfTwo ? 0x1p-7f : random);
    if (tail == Tail::kDeadChannels && i % 16 == 3) scales.back() = 0x1p-40f;
  }
  return scales;
}

void RunTail(benchmark::State& state, int32_t depth, Tail tail, Isa isa) {
  OpBenchmark bench("CONV_2D");
  auto& params = bench.params<kernels::Conv2DParams>();
  params.stride_w = params.stride_h = 1;
  params.activation =
      tail == Tail::kRelu ? kernels::Activation::kRelu6 : kernels::Activation::kNone;
  bench.Input({1, kSize, kSize, depth}, false, DataType::kInt8, {{0x1p-5f}, {-3}});
  bench.Input({kChannels, 1, 1, depth}, true, DataType::kInt8,
              {Scales(tail), std::vector<int32_t>(kChannels, 0), 0});
  const bool relu = tail == Tail::kRelu;
  bench.Output(DataType::kInt8, {{relu ? 0.0235f : 0x1p-4f}, {relu ? -128 : 5}});
  bench.Run(state, "jit int8", isa);
  state.counters["ns/tile"] = state.counters["us"] * 1e3 * kTileRows / (kSize * kSize);
}

void FindFloats(benchmark::State& state, bool has_sign) {
  std::mt19937 engine(1);
  int64_t found = 0, tried = 0;
  for (auto _ : state) {
    const auto multiplier = static_cast<int32_t>(engine() >> 2 | 1 << 30);
    const int32_t shift = -static_cast<int32_t>(5 + engine() % 6);
    found += kernels::FindFloatScale({.scale = {multiplier, shift},
                                      .least = -(1 << 22),
                                      .largest = 1 << 22,
                                      .zero_point = has_sign ? 5 : -128,
                                      .min = -128,
                                      .max = 127,
                                      .addend_has_sign = has_sign},
                                     DetectIsa())
                 .has_value();
    ++tried;
  }
  state.counters["%found"] = 100.0 * static_cast<double>(found) / static_cast<double>(tried);
}

const bool kRegistered = [] {
  for (const Isa isa : OnThisMachine({Isa::kAvx512Vnni, Isa::kAvxVnni, Isa::kAvx2})) {
    const std::string level(IsaName(isa));
    for (const Tail tail : {Tail::kRelu, Tail::kSigned, Tail::kPowersOfTwo, Tail::kDeadChannels}) {
      for (const int32_t depth : {16, 96}) {
        const std::string name =
            std::string("tail/") + NameOf(tail) + "/depth " + std::to_string(depth) + "/" + level;
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          RunTail(state, depth, tail, isa);
        })->Unit(benchmark::kMicrosecond);
      }
    }
  }
  for (const bool has_sign : {false, true}) {
    const std::string name = std::string("find floats/") + (has_sign ? "signed" : "relu");
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=](benchmark::State& state) { FindFloats(state, has_sign); });
  }
  return true;
}();

}  // namespace
}  // namespace fuselite::benchmarks
