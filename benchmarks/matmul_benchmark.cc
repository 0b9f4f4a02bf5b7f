// Fully connected layers and batched matrix products of well-known models.
#include "benchmarks/op_benchmark.h"
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::benchmarks {
namespace {

struct Layer {
  const char* model;
  int32_t rows, depth, units;
};

constexpr Layer kLayers[] = {
    {"mobilenet_v1", 1, 1024, 1000}, {"mobilenet_v2", 1, 1280, 1000},
    {"resnet50", 1, 2048, 1000},     {"mlp", 1, 784, 256},
    {"vit_tiny", 197, 192, 192},     {"vit_tiny", 197, 192, 768},
    {"vit_tiny", 197, 768, 192},     {"square", 64, 1024, 1024},
    {"square", 1024, 1024, 1024},
};

struct Product {
  const char* model;
  int32_t batches, rows, depth, columns;
  bool adj_y;
};

constexpr Product kProducts[] = {
    {"vit_tiny", 3, 197, 64, 197, true},
    {"vit_tiny", 3, 197, 197, 64, false},
};

std::string Name(std::initializer_list<std::string> parts) {
  std::string name;
  for (const std::string& part : parts) name += (name.empty() ? "" : "/") + part;
  return name;
}

void RunFullyConnected(benchmark::State& state, const Layer& layer, const char* candidate,
                       Isa isa) {
  OpBenchmark bench("FULLY_CONNECTED");
  bench.Input({layer.rows, layer.depth}, false);
  bench.Input({layer.units, layer.depth}, true);
  bench.Input({layer.units}, true);
  bench.Run(state, candidate, isa);
}

// float32 quantized at run time with int8 weights of several scales, as converters make them.
void RunHybrid(benchmark::State& state, const Layer& layer, const char* candidate, Isa isa) {
  OpBenchmark bench("FULLY_CONNECTED");
  bench.params<kernels::FullyConnectedParams>().asymmetric_quantize_inputs = true;
  bench.Input({layer.rows, layer.depth}, false);
  bench.Input({layer.units, layer.depth}, true, DataType::kInt8,
              {std::vector<float>(layer.units, 0.01f), std::vector<int32_t>(layer.units, 0)});
  bench.Input({layer.units}, true);
  bench.Run(state, candidate, isa);
}

void RunBatchMatMul(benchmark::State& state, const Product& p, const char* candidate, Isa isa) {
  OpBenchmark bench("BATCH_MATMUL");
  bench.params<kernels::BatchMatMulParams>().adj_y = p.adj_y;
  bench.Input({p.batches, p.rows, p.depth}, false);
  bench.Input(p.adj_y ? Shape{p.batches, p.columns, p.depth} : Shape{p.batches, p.depth, p.columns},
              false);
  bench.Run(state, candidate, isa);
}

std::string SizeOf(const Layer& layer) {
  return std::to_string(layer.rows) + "x" + std::to_string(layer.depth) + "->" +
         std::to_string(layer.units);
}

const bool kRegistered = [] {
  for (const Layer& layer : kLayers) {
    for (const char* candidate : {"jit hybrid", "highway"}) {
      for (const Isa isa :
           OnThisMachine({Isa::kAvx512Vnni, Isa::kAvxVnni, Isa::kAvx2, Isa::kNeon})) {
        benchmark::RegisterBenchmark(
            Name({"hybrid", layer.model, SizeOf(layer), candidate, std::string(IsaName(isa))})
                .c_str(),
            [&layer, candidate, isa](benchmark::State& state) {
              RunHybrid(state, layer, candidate, isa);
            });
      }
    }
  }
  ForEachCandidate([](const char* candidate, Isa isa) {
    const std::string level(IsaName(isa));
    for (const Layer& layer : kLayers) {
      benchmark::RegisterBenchmark(
          Name({"fully_connected", layer.model, SizeOf(layer), candidate, level}).c_str(),
          [&layer, candidate, isa](benchmark::State& state) {
            RunFullyConnected(state, layer, candidate, isa);
          });
    }
    for (const Product& p : kProducts) {
      const std::string size = std::to_string(p.batches) + "*" + std::to_string(p.rows) + "x" +
                               std::to_string(p.depth) + "x" + std::to_string(p.columns);
      benchmark::RegisterBenchmark(Name({"batch_matmul", p.model, size, candidate, level}).c_str(),
                                   [&p, candidate, isa](benchmark::State& state) {
                                     RunBatchMatMul(state, p, candidate, isa);
                                   });
    }
  });
  return true;
}();

}  // namespace
}  // namespace fuselite::benchmarks
