// How far each step of a run is from what the machine allows: its operations at the measured peak
// of their kind, or its bytes at the measured bandwidth, whichever takes longer. The bandwidth is
// that of copying within as many bytes; a step that mostly reads, or finds its input in a nearer
// cache, can be faster than that.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "partitioner/delegate_state.h"
#include "runtime/cpu/isa.h"

namespace fuselite::tools {

// What limits a step: products of a kind, or memory.
enum class Bound { kUnknown, kFloat, kBf16, kInt8, kMemory };

// Rates in units a second, of all threads of a run together.
struct MachinePeaks {
  // 0: not known for this level.
  double float_operations = 0, bf16_operations = 0, int8_operations = 0;
  struct Bandwidth {
    size_t bytes;  // that all threads work on
    double rate;
  };
  std::vector<Bandwidth> bandwidths;  // by `bytes`, ascending

  // That of the smallest measured amount that is not less; of the largest beyond it.
  double BandwidthFor(size_t bytes) const;
  // Operations a second of `kind`; bfloat16's are floats' where the level has none.
  double OperationsFor(Bound kind) const;
};

// Bandwidths at powers of four from 16 KiB for each thread to what no cache holds: about a quarter
// of a second.
MachinePeaks MeasurePeaks(Isa isa, int threads);

// One step of a partition.
struct RooflineStep {
  std::string ops, kernel;
  double seconds = 0;     // of its fastest run
  double operations = 0;  // two for each multiply-add of a product; 0 of other steps
  double bytes = 0;       // inputs, constants and outputs, each once
  Bound bound = Bound::kUnknown;
  double least_seconds = 0;  // at the peak of `bound`
  double lost() const { return seconds > least_seconds ? seconds - least_seconds : 0; }
};

struct Roofline {
  int threads = 0;
  MachinePeaks peaks;
  std::vector<RooflineStep> steps;  // of all partitions, in running order
  double run_seconds = 0;           // of the fastest run
};

// Shows the kernels that `state` profiled, which have ended. `run_seconds`: of the fastest run.
Roofline MakeRoofline(const partitioner::DelegateState& state, double run_seconds);

// One line for each step; then what is lost in which operator, and between the steps: the fastest
// run less the fastest times of all steps, which are those of different runs.
void PrintRoofline(const Roofline& roofline, std::ostream& out);
// The roofline for programs: times in microseconds, rates in 10^9 a second.
nlohmann::ordered_json ToJson(const Roofline& roofline);

}  // namespace fuselite::tools
