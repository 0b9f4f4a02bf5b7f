// Fully connected layers and batched matrix products of well-known models.
#include "benchmarks/op_benchmark.h"
#include "kernels/batch_matmul/batch_matmul.h"

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

void RunBatchMatMul(benchmark::State& state, const Product& p, const char* candidate, Isa isa) {
  OpBenchmark bench("BATCH_MATMUL");
  bench.params<kernels::BatchMatMulParams>().adj_y = p.adj_y;
  bench.Input({p.batches, p.rows, p.depth}, false);
  bench.Input(p.adj_y ? Shape{p.batches, p.columns, p.depth} : Shape{p.batches, p.depth, p.columns},
              false);
  bench.Run(state, candidate, isa);
}

const bool kRegistered = [] {
  ForEachCandidate([](const char* candidate, Isa isa) {
    const std::string level(IsaName(isa));
    for (const Layer& layer : kLayers) {
      const std::string size = std::to_string(layer.rows) + "x" + std::to_string(layer.depth) +
                               "->" + std::to_string(layer.units);
      benchmark::RegisterBenchmark(
          Name({"fully_connected", layer.model, size, candidate, level}).c_str(),
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
