// What it takes to open a model, from its bytes to an interpreter that is ready to run, by the
// number of nodes: the time for each node must not grow with them.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "interpreter/file/loader.h"
#include "interpreter/file/writer.h"
#include "interpreter/interpreter.h"
#include "partitioner/delegate.h"

namespace fuselite::benchmarks {
namespace {

using interpreter::ModelWriter;

// Layers as models have them, in little: most of the time goes into what each node costs, not into
// its weights.
class LayerWriter {
 public:
  explicit LayerWriter(Quantization quantization) : quantization_(std::move(quantization)) {}

  // Adds operators until there are at least `nodes`.
  std::vector<std::byte> Write(int nodes) && {
    int x = Tensor();
    writer_.SetInputs({x});
    while (nodes_ < nodes) x = Residual(x);
    writer_.SetOutputs({x});
    return writer_.Finish();
  }

 private:
  static constexpr int32_t kWidth = 16;
  DataType type() const { return quantization_.empty() ? DataType::kFloat32 : DataType::kInt8; }

  int Tensor(Shape shape = {4, kWidth}) { return Tensor(shape, quantization_); }
  int Tensor(const Shape& shape, const Quantization& quantization) {
    return writer_.AddTensor("t" + std::to_string(tensors_++), type(), shape, quantization);
  }
  int Weights(Shape shape) {
    const Quantization symmetric{.scales = {0.01f}, .zero_points = {0}};
    if (type() == DataType::kInt8) {
      return writer_.AddConstant("w" + std::to_string(tensors_++), type(), shape,
                                 std::vector<int8_t>(shape.elements(), 3), symmetric);
    }
    return writer_.AddConstant("w" + std::to_string(tensors_++), type(), shape,
                               std::vector<float>(shape.elements(), 0.01f));
  }
  int Op(std::string_view name, std::vector<int> inputs, Shape shape = {4, kWidth}) {
    return Op(name, std::move(inputs), shape, quantization_);
  }
  int Op(std::string_view name, std::vector<int> inputs, const Shape& shape,
         const Quantization& quantization) {
    const int out = Tensor(shape, quantization);
    writer_.AddOperator(*kernels::FindOperator(name), std::move(inputs), {out});
    ++nodes_;
    return out;
  }
  int Reshape(int x, Shape shape) {
    const auto dims = shape.dims();
    const int to =
        writer_.AddConstant("s" + std::to_string(tensors_++), DataType::kInt32,
                            Shape({shape.rank()}), std::vector<int32_t>(dims.begin(), dims.end()));
    return Op("RESHAPE", {x, to}, shape);
  }

  // What the operator gives by definition, where it is quantized.
  int Logistic(int x) {
    const Quantization unit{.scales = {1.0f / 256}, .zero_points = {-128}};
    return Op("LOGISTIC", {x}, {4, kWidth}, quantization_.empty() ? quantization_ : unit);
  }

  // Seven nodes: a dense layer, SiLU in two, a reshape there and back, and the sum with `x`.
  int Residual(int x) {
    int y = Op("FULLY_CONNECTED", {x, Weights({kWidth, kWidth}), -1});
    y = Op("MUL", {y, Logistic(y)});
    y = Reshape(Reshape(y, {2, 2, kWidth}), {4, kWidth});
    y = Op("RELU", {y});
    return Op("ADD", {x, y});
  }

  ModelWriter writer_;
  Quantization quantization_;
  int nodes_ = 0, tensors_ = 0;
};

void Open(benchmark::State& state, Quantization quantization) {
  const auto nodes = static_cast<int>(state.range(0));
  const std::vector<std::byte> bytes = LayerWriter(std::move(quantization)).Write(nodes);
  for (auto _ : state) {
    partitioner::Delegate delegate(*partitioner::ParseOptions({}));
    auto model = interpreter::LoadModelFromMemory(bytes, nullptr);
    auto interpreter = interpreter::Interpreter::Create(*model, {});
    Status status = (*interpreter)->ApplyDelegate(delegate.c_struct());
    if (status.ok()) status = (*interpreter)->AllocateTensors();
    if (!status.ok()) return state.SkipWithError(status.message().c_str());
  }
  state.counters["us/node"] = benchmark::Counter(
      nodes * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Float(benchmark::State& state) { Open(state, {}); }
void Int8(benchmark::State& state) { Open(state, {.scales = {0.05f}, .zero_points = {-3}}); }

BENCHMARK(Float)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(Int8)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fuselite::benchmarks
