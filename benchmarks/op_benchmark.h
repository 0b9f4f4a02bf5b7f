// Times one operator's candidates on one thread: products as a fraction of the core's peak,
// elementwise operators by the memory that they read and write.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/operator.h"
#include "tools/measure/machine_peak.h"
#ifdef FUSELITE_HAS_JIT
#include "jit/candidates.h"
#endif

namespace fuselite::benchmarks {

// The peak of one thread, measured once for each level and kind.
inline double PeakOf(Isa isa, bool floats) {
  static std::map<std::pair<uint32_t, bool>, double> measured;
  const auto [entry, fresh] = measured.try_emplace({isa.bits(), floats}, 0);
  if (fresh) {
    entry->second = floats ? tools::MeasureFloatPeak(isa) : tools::MeasureInt8Peak(isa);
  }
  return entry->second;
}

// An operator on random values. Add inputs, set parameters, then Run.
class OpBenchmark {
 public:
  kernels::OpDescription op;
  enum class Rate { kProducts, kMemory } rate = Rate::kProducts;

  explicit OpBenchmark(std::string_view name) {
    op.op = kernels::FindOperator(name);
    kernels::SetDefaults(op.op->fields, op.params.data());
    op.outputs.emplace_back();
  }
  template <class T>
  T& params() {
    return op.params.as<T>();
  }
  void Output(DataType type, Quantization quantization) {
    op.outputs[0].type = type;
    op.outputs[0].quantization = std::move(quantization);
  }
  void Input(Shape shape, bool constant, DataType type = DataType::kFloat32,
             Quantization quantization = {}) {
    TensorInfo info{.type = type, .shape = shape, .quantization = std::move(quantization)};
    buffers_.push_back(type == DataType::kFloat32 ? Values(shape.elements()) : Bytes(info.bytes()));
    if (constant) info.data = buffers_.back().data();
    op.inputs.push_back(info);
  }

  void Constant(Shape shape, DataType type, std::span<const int32_t> values) {
    Input(shape, true, type);
    std::ranges::copy(values, buffers_.back().as<int32_t>());
  }

  // Best of the iterations: other processes disturb the mean.
  void Run(benchmark::State& state, std::string_view candidate, Isa isa) {
    if (const Status status = kernels::Infer(op); !status.ok()) {
      return state.SkipWithError(status.ToString().c_str());
    }
    const std::unique_ptr<PackedStore> store = NewPackedStore();
    auto kernel = Build(candidate, {{.isa = isa}, store.get()});
    if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
    AlignedBuffer output(op.outputs[0].bytes());
    AlignedBuffer scratch((*kernel)->scratch_bytes()), shared((*kernel)->shared_bytes());
    std::vector<const void*> inputs;
    for (const AlignedBuffer& buffer : buffers_) inputs.push_back(buffer.data());
    void* const outputs[] = {output.data()};
    const KernelArgs args{inputs.data(), outputs, scratch.data(), shared.data()};
    const auto run = [&] {
      for (int phase = 0; phase < (*kernel)->phases(); ++phase) {
        if (!(*kernel)->Run(args, phase, 0, (*kernel)->units(phase)).ok()) return false;
      }
      return true;
    };
    if (!run()) return state.SkipWithError("the kernel fails");  // also touches the memory
    double best = 1e9;
    for (auto _ : state) {
      const auto start = std::chrono::steady_clock::now();
      if (!run()) return;
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      best = std::min(best, taken.count());
    }
    Report(state, best, isa, std::string((*kernel)->name()));
  }

 private:
  static AlignedBuffer Values(int64_t n) {
    AlignedBuffer buffer(n * sizeof(float));
    std::mt19937 engine(1);
    for (int64_t i = 0; i < n; ++i) {
      buffer.as<float>()[i] = static_cast<float>(engine()) * 0x1p-31f - 1.0f;
    }
    return buffer;
  }

  static AlignedBuffer Bytes(size_t n) {
    AlignedBuffer buffer(n);
    std::mt19937 engine(1);
    for (size_t i = 0; i < n; ++i) buffer.as<uint8_t>()[i] = static_cast<uint8_t>(engine() >> 24);
    return buffer;
  }

  Result<std::shared_ptr<const Kernel>> Build(std::string_view name,
                                              const kernels::BuildContext& context) const {
    std::vector<kernels::Candidate> all(op.op->candidates.begin(), op.op->candidates.end());
#ifdef FUSELITE_HAS_JIT
    const auto emitted = jit::CandidatesFor(*op.op);
    all.insert(all.begin(), emitted.begin(), emitted.end());
#endif
    for (const kernels::Candidate& candidate : all) {
      if (candidate.name == name) return candidate.Build(op, context);
    }
    return NotFound("no candidate ", name);
  }

  void Report(benchmark::State& state, double seconds, Isa isa, const std::string& name) const {
    state.SetLabel(name);
    state.counters["us"] = seconds * 1e6;
    if (rate == Rate::kMemory) return ReportMemory(state, seconds);
    const double flops = 2.0 * op.op->cost(op) / seconds / 1e9;
    state.counters["GFLOP/s"] = flops;
    const DataType weights = op.inputs[op.inputs.size() > 1 ? 1 : 0].type;
    const bool floats = weights == DataType::kFloat32;
    const double peak = PeakOf(isa, floats) / 1e9;
    if (peak > 0) state.counters["%peak"] = 100 * flops / peak;
  }

  // Operands that broadcast count once.
  void ReportMemory(benchmark::State& state, double seconds) const {
    size_t bytes = op.outputs[0].bytes();
    for (const TensorInfo& input : op.inputs) bytes += input.bytes();
    state.counters["GB/s"] = static_cast<double>(bytes) / seconds / 1e9;
    state.counters["Gelements/s"] = static_cast<double>(op.outputs[0].elements()) / seconds / 1e9;
  }

  std::vector<AlignedBuffer> buffers_;
};

// Those of the presets whose instructions this machine has, each cut to what it has.
inline std::vector<Isa> OnThisMachine(std::initializer_list<Isa> presets) {
  std::vector<Isa> isas;
  for (const Isa isa : RunnableIsas()) {
    const auto named = [&](Isa preset) { return IsaName(preset) == IsaName(isa); };
    if (std::ranges::any_of(presets, named)) isas.push_back(isa);
  }
  return isas;
}

// A case for every candidate of `op`, the reference included: run(state, candidate, isa).
template <class Run>
void RegisterCandidates(const std::string& op, const std::string& name, const Run& run) {
  for (const kernels::Candidate& candidate : kernels::FindOperator(op)->candidates) {
    for (const Isa isa :
         OnThisMachine({Isa::kAvx512Vnni, Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kScalar})) {
      const bool reference = candidate.name == "reference";
      if (reference != (isa == Isa::kScalar)) continue;
      const std::string path = "/" + std::string(candidate.name) + "/" + std::string(IsaName(isa));
      benchmark::RegisterBenchmark(
          (op + "/" + name + path).c_str(),
          [=, name = candidate.name](benchmark::State& state) { run(state, name, isa); });
    }
  }
}

// The levels and candidates that are compared; whoever refuses is shown with the reason.
template <class Function>
void ForEachCandidate(const Function& function) {
  for (const char* candidate : {"jit winograd", "jit", "highway"}) {
    for (const Isa isa : OnThisMachine({Isa::kAvx512, Isa::kAvx2, Isa::kNeon})) {
      function(candidate, isa);
    }
  }
}

}  // namespace fuselite::benchmarks
