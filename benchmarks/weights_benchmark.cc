// What a core can do at most with the weights of a model of single rows: reading them, and reading
// them through dot products, in loops written by hand that share nothing with the kernels. The
// layers' weights lie behind each other and stay in L2, where the next run finds them.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cpu/isa.h"
#include "runtime/memory/aligned_buffer.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace fuselite::benchmarks {
namespace {

#define FUSELITE_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

constexpr int64_t kLanes = 16, kVector = 64;

struct Layer {
  int64_t depth, units;
};
struct Model {
  const char* name;
  std::vector<Layer> layers;
};

const std::vector<Model>& Models() {
  static const std::vector<Model> kModels = {
      {"ad01",
       {{640, 128},
        {128, 128},
        {128, 128},
        {128, 128},
        {128, 8},
        {8, 128},
        {128, 128},
        {128, 128},
        {128, 128},
        {128, 640}}},
      {"mlp", {{256, 512}, {512, 512}, {512, 256}, {256, 10}}}};
  return kModels;
}

// Vectors of 16 units, each with a vector of weights for each four values of the depth.
int64_t VectorsOf(const Layer& layer) { return (layer.units + kLanes - 1) / kLanes; }
int64_t GroupsOf(const Layer& layer) { return layer.depth / 4; }
int64_t BytesOf(const Model& model) {
  int64_t bytes = 0;
  for (const Layer& layer : model.layers) bytes += VectorsOf(layer) * GroupsOf(layer) * kVector;
  return bytes;
}

struct Memory {
  AlignedBuffer weights, values, sums;
  explicit Memory(const Model& model)
      : weights(static_cast<size_t>(BytesOf(model))), values(1024), sums(64 * kVector) {
    for (AlignedBuffer* buffer : {&weights, &values, &sums}) {
      for (size_t i = 0; i < buffer->size(); ++i) buffer->data()[i] = static_cast<std::byte>(i % 7);
    }
  }
};

FUSELITE_VNNI void Read(const std::byte* from, int64_t bytes, std::byte* to) {
  constexpr int kSums = 8;
  __m512i sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kVector <= bytes; i += kSums * kVector) {
#pragma GCC unroll 8
    for (int s = 0; s < kSums; ++s) {
      sums[s] = _mm512_xor_si512(sums[s], _mm512_load_si512(from + i + s * kVector));
    }
  }
  for (; i < bytes; i += kVector) {
    sums[0] = _mm512_xor_si512(sums[0], _mm512_load_si512(from + i));
  }
  for (int s = 1; s < kSums; ++s) sums[0] = _mm512_xor_si512(sums[0], sums[s]);
  _mm512_store_si512(to, sums[0]);
}

// `kSums` vectors of units through the whole depth; gives where the next one's weights are.
template <int kSums>
FUSELITE_VNNI const std::byte* Panel(const std::byte* weights, const std::byte* values,
                                     int64_t groups, std::byte* to) {
  __m512i sums[kSums] = {};
  for (int64_t g = 0; g < groups; ++g, weights += kSums * kVector) {
    const __m512i group = _mm512_set1_epi32(reinterpret_cast<const int32_t*>(values)[g]);
#pragma GCC unroll 8
    for (int s = 0; s < kSums; ++s) {
      sums[s] = _mm512_dpbusd_epi32(sums[s], group, _mm512_load_si512(weights + s * kVector));
    }
  }
  for (int s = 0; s < kSums; ++s) _mm512_store_si512(to + s * kVector, sums[s]);
  return weights;
}

// Bias, tail, and that a layer waits for the one before it are left out.
template <int kSums>
void DotProducts(const Model& model, Memory& memory) {
  const std::byte *weights = memory.weights.data(), *values = memory.values.data();
  for (const Layer& layer : model.layers) {
    std::byte* to = memory.sums.data();
    int64_t vectors = VectorsOf(layer);
    for (; vectors >= kSums; vectors -= kSums, to += kSums * kVector) {
      weights = Panel<kSums>(weights, values, GroupsOf(layer), to);
    }
    for (; vectors > 0; --vectors, to += kVector) {
      weights = Panel<1>(weights, values, GroupsOf(layer), to);
    }
  }
}

template <class Run>
void Register(const Model& model, const std::string& what, Run run) {
  const std::string name = std::string(model.name) + "/" + what;
  benchmark::RegisterBenchmark(name.c_str(), [&model, run](benchmark::State& state) {
    Memory memory(model);
    for (auto _ : state) {
      run(memory);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * BytesOf(model));
  });
}

const bool kRegistered = [] {
  if (!DetectIsa().has(Feature::kAvx512Vnni)) return false;
  for (const Model& model : Models()) {
    Register(model, "read", [](Memory& memory) {
      Read(memory.weights.data(), static_cast<int64_t>(memory.weights.size()), memory.sums.data());
    });
    Register(model, "dot products, 3 sums",
             [&model](Memory& memory) { DotProducts<3>(model, memory); });
    Register(model, "dot products, 4 sums",
             [&model](Memory& memory) { DotProducts<4>(model, memory); });
    Register(model, "dot products, 8 sums",
             [&model](Memory& memory) { DotProducts<8>(model, memory); });
  }
  return true;
}();

}  // namespace
}  // namespace fuselite::benchmarks
#endif  // __x86_64__
