// Elementwise operators, reductions and softmax of bytes, with the operands that models have. Rates
// count the bytes that are read and written.
#include "benchmarks/op_benchmark.h"
#include "kernels/softmax/softmax.h"

namespace fuselite::benchmarks {
namespace {

constexpr DataType kI8 = DataType::kInt8;

struct Binary {
  const char *op, *what;
  Shape x, y;
};

void RegisterBinaries() {
  for (const Binary& c : {
           Binary{"ADD", "residual", {1, 56, 56, 24}, {1, 56, 56, 24}},
           Binary{"ADD", "gamma", {1, 197, 192}, {192}},
           Binary{"SUB", "image mean", {1, 192, 192, 3}, {3}},
           Binary{"SUB", "outer", {48, 48, 1}, {1, 17}},
           Binary{"MUL", "swish", {1, 112, 112, 96}, {1, 112, 112, 96}},
           Binary{"MUL", "gate of 32", {1, 112, 112, 32}, {1, 1, 1, 32}},
           Binary{"MUL", "gate of 672", {1, 14, 14, 672}, {1, 1, 1, 672}},
           Binary{"MUL", "scalar", {1, 3, 197, 197}, {}},
           Binary{"PRELU", "64 channels", {1, 56, 56, 64}, {64}},
           Binary{"SQUARED_DIFFERENCE", "layer norm", {1, 197, 192}, {1, 197, 1}},
       }) {
    RegisterCandidates(c.op, c.what,
                       [c](benchmark::State& state, std::string_view candidate, Isa isa) {
                         OpBenchmark bench(c.op);
                         bench.rate = OpBenchmark::Rate::kMemory;
                         bench.Input(c.x, false, kI8, {{0.031f}, {-7}});
                         bench.Input(c.y, false, kI8, {{0.017f}, {3}});
                         const bool product = bench.op.op->name == "MUL";
                         bench.Output(kI8, {{product ? 0.0713f : 0.0437f}, {-12}});
                         bench.Run(state, candidate, isa);
                       });
  }
}

struct Reduction {
  const char *op, *what;
  Shape shape;
  std::vector<int32_t> axes;
};

void RegisterReductions() {
  for (const Reduction& r : {
           Reduction{"MEAN", "squeeze 32", {1, 112, 112, 32}, {1, 2}},
           Reduction{"MEAN", "squeeze 1152", {1, 7, 7, 1152}, {1, 2}},
           Reduction{"MEAN", "layer norm", {1, 197, 192}, {2}},
           Reduction{"REDUCE_MAX", "innermost", {1, 197, 192}, {2}},
           Reduction{"REDUCE_MIN", "spatial", {1, 56, 56, 144}, {1, 2}},
       }) {
    RegisterCandidates(
        r.op, r.what, [r](benchmark::State& state, std::string_view candidate, Isa isa) {
          OpBenchmark bench(r.op);
          bench.rate = OpBenchmark::Rate::kMemory;
          bench.Input(r.shape, false, kI8, {{0.031f}, {-7}});
          bench.Constant({static_cast<int32_t>(r.axes.size())}, DataType::kInt32, r.axes);
          const bool mean = bench.op.op->name == "MEAN";
          bench.Output(kI8, {{mean ? 0.0213f : 0.031f}, {mean ? 5 : -7}});
          bench.Run(state, candidate, isa);
        });
  }
}

void RegisterSoftmax() {
  for (const Shape& shape : {Shape{3, 197, 197}, Shape{1, 1000}}) {
    RegisterCandidates("SOFTMAX", std::to_string(shape.dim(-1)),
                       [shape](benchmark::State& state, std::string_view candidate, Isa isa) {
                         OpBenchmark bench("SOFTMAX");
                         bench.rate = OpBenchmark::Rate::kMemory;
                         bench.params<kernels::SoftmaxParams>().beta = 1;
                         bench.Input(shape, false, kI8, {{0.05f}, {3}});
                         bench.Output(kI8, {{1.0f / 256}, {-128}});
                         bench.Run(state, candidate, isa);
                       });
  }
}

const bool kRegistered = [] {
  RegisterBinaries();
  RegisterReductions();
  RegisterSoftmax();
  return true;
}();

}  // namespace
}  // namespace fuselite::benchmarks
