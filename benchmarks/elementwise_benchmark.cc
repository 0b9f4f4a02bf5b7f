// float32 elementwise operators and chains of them, with the operands that models have.
#include "benchmarks/op_benchmark.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/tail/tail.h"

namespace fuselite::benchmarks {
namespace {

using kernels::BinaryKind;
using kernels::TailStage;
using kernels::UnaryKind;

struct BinaryCase {
  const char* op;
  const char* what;
  Shape x, y;
};

const BinaryCase kBinaries[] = {
    {"ADD", "residual", {1, 56, 56, 24}, {1, 56, 56, 24}},
    {"ADD", "small residual", {1, 7, 7, 96}, {1, 7, 7, 96}},
    {"ADD", "large residual", {1, 112, 112, 128}, {1, 112, 112, 128}},
    {"MUL", "scalar", {1, 224, 224, 3}, {}},
    {"SUB", "3 channels", {1, 224, 224, 3}, {3}},
    {"MUL", "144 channels", {1, 56, 56, 144}, {144}},
    {"MUL", "24 channels", {1, 56, 56, 24}, {24}},
    {"MUL", "gate of 2", {2, 28, 28, 240}, {2, 1, 1, 240}},
    {"MUL", "mask", {1, 56, 56, 24}, {1, 56, 56, 1}},
    {"PRELU", "64 channels", {1, 56, 56, 64}, {64}},
    {"DIV", "rows", {12, 197, 197}, {12, 197, 1}},
};

// Rows of a layer normalization: a network on pixels, a transformer's first and last stage.
const Shape kNormalized[] = {{9216, 24}, {9216, 40}, {3136, 96},
                             {196, 192}, {196, 384}, {196, 768}};

struct ChainCase {
  const char* what;
  std::vector<TailStage> stages;
};

TailStage Unary(UnaryKind kind, float a = 0, float b = 0) { return TailStage::Unary(kind, a, b); }

const ChainCase kChains[] = {
    {"relu6", {Unary(UnaryKind::kClamp, 0, 6)}},
    {"hard_swish", {Unary(UnaryKind::kHardSwish)}},
    {"leaky_relu", {Unary(UnaryKind::kLeakyRelu, 0.1f)}},
    {"logistic", {Unary(UnaryKind::kLogistic)}},
    {"silu", {Unary(UnaryKind::kSilu)}},
    {"tanh", {Unary(UnaryKind::kTanh)}},
    {"gelu", {Unary(UnaryKind::kGelu)}},
    {"gelu_tanh", {Unary(UnaryKind::kGeluTanh)}},
    {"exp", {Unary(UnaryKind::kExp)}},
    {"elu", {Unary(UnaryKind::kElu)}},
    {"log", {Unary(UnaryKind::kLog)}},
    {"sqrt", {Unary(UnaryKind::kSqrt)}},
    {"rsqrt", {Unary(UnaryKind::kRsqrt)}},
    {"sign", {Unary(UnaryKind::kSign)}},
    {"affine, clamp", {Unary(UnaryKind::kAffine, 2, 1), Unary(UnaryKind::kClamp, -1, 1)}},
    {"per channel affine, add, relu",
     {TailStage::Binary(BinaryKind::kMul, {.input = 1, .channel_stride = 1}),
      TailStage::Binary(BinaryKind::kAdd, {.input = 1, .channel_stride = 1}),
      TailStage::Binary(BinaryKind::kAdd, {.input = 2, .row_stride = 192, .channel_stride = 1}),
      Unary(UnaryKind::kClamp, 0, INFINITY)}},
};

void RunBinary(benchmark::State& state, const BinaryCase& c, const char* candidate, Isa isa) {
  OpBenchmark bench(c.op);
  bench.rate = OpBenchmark::Rate::kMemory;
  bench.Input(c.x, false);
  bench.Input(c.y, false);
  bench.Run(state, candidate, isa);
}

void RunChain(benchmark::State& state, const ChainCase& c, const char* candidate, Isa isa) {
  constexpr int32_t kRows = 197, kChannels = 192;
  OpBenchmark bench("FUSELITE_ELEMENTWISE");
  bench.rate = OpBenchmark::Rate::kMemory;
  bench.Input({kRows, kChannels}, false);
  int operands = 0;
  for (const TailStage& stage : c.stages) operands = std::max(operands, stage.operand.input);
  if (operands >= 1) bench.Input({kChannels}, true);
  if (operands >= 2) bench.Input({kRows, kChannels}, false);
  bench.op.tail.stages = c.stages;
  bench.op.tail_inputs = operands;
  bench.Run(state, candidate, isa);
}

void RunLayerNorm(benchmark::State& state, const Shape& shape, const char* candidate, Isa isa) {
  OpBenchmark bench("FUSELITE_LAYER_NORM");
  bench.params<kernels::LayerNormParams>() = {.epsilon = 1e-5f, .keeps_mean = false};
  bench.rate = OpBenchmark::Rate::kMemory;
  bench.Input(shape, false);
  bench.Input({shape.dim(-1)}, true);
  bench.Input({shape.dim(-1)}, true);
  bench.Run(state, candidate, isa);
}

const bool kRegistered = [] {
  ForEachCandidate([](const char* candidate, Isa isa) {
    const std::string end = "/" + std::string(candidate) + "/" + std::string(IsaName(isa));
    for (const BinaryCase& c : kBinaries) {
      const std::string name = std::string(c.op) + "/" + c.what + end;
      benchmark::RegisterBenchmark(name.c_str(), [&c, candidate, isa](benchmark::State& state) {
        RunBinary(state, c, candidate, isa);
      });
    }
    for (const Shape& shape : kNormalized) {
      const std::string name =
          "LAYER_NORM/" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + end;
      benchmark::RegisterBenchmark(name.c_str(), [&shape, candidate, isa](benchmark::State& state) {
        RunLayerNorm(state, shape, candidate, isa);
      });
    }
    for (const ChainCase& c : kChains) {
      benchmark::RegisterBenchmark(
          (std::string("chain/") + c.what + end).c_str(),
          [&c, candidate, isa](benchmark::State& state) { RunChain(state, c, candidate, isa); });
    }
  });
  return true;
}();

}  // namespace
}  // namespace fuselite::benchmarks
