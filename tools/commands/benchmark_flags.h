// What `fuselite benchmark` is told: flags of TensorFlow Lite's benchmark_model, and its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/session.h"
#include "tools/inputs/input_layers.h"
#include "tools/measure/measure.h"

namespace CLI {
class App;
}

namespace fuselite::tools {

struct BenchmarkArguments {
  std::string graph;        // benchmark_model's name for the model
  std::string positional;   // the model where no flag names it
  std::string mode = "on";  // the delegate: on, off, both
  std::string signature;    // empty: the first subgraph
  std::vector<std::string> inputs;
  uint64_t seed = 0;
  int warmup_runs = 1;
  double warmup_min_secs = 0.5;
  MeasureLimits limits;
  double run_delay = -1, run_frequency = -1;
  bool list_signatures = false, dry_run = false, require_full_delegation = false,
       enable_op_profiling = false, roofline = false;
  bool report_peak_memory = false;
  int memory_interval_ms = 50;
  InputLayerFlags layer_flags;
  std::string profiling_mode = "stdout", profiling_file, result_file, benchmark_name, output_prefix;
  std::string output_file;
  DelegateFlags delegate;
  // Flags of benchmark_model that were given and mean nothing here.
  std::vector<std::string> ignored;
};

// `arguments` must outlive the command.
void AddBenchmarkFlags(CLI::App& command, BenchmarkArguments& arguments);

}  // namespace fuselite::tools
