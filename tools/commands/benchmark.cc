// fuselite benchmark: how long a model takes, with the flags and lines of benchmark_model.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/support/printable.h"
#include "runtime/support/status.h"
#include "runtime/support/text_table.h"
#include "runtime/support/write_file.h"
#include "tools/commands/benchmark_flags.h"
#include "tools/commands/commands.h"
#include "tools/common/progress.h"
#include "tools/common/session.h"
#include "tools/inputs/files.h"
#include "tools/inputs/tensors.h"
#include "tools/measure/op_profile.h"
#include "tools/measure/roofline.h"
#include "tools/measure/statistics.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct Outcome {
  Summary warmup, runs;
  double init_us = 0, first_us = 0;
  double init_mb = 0, overall_mb = 0;
  std::optional<double> peak_mb;
  std::optional<Roofline> roofline;
};

double Megabytes(int64_t bytes) { return static_cast<double>(bytes) / (1024 * 1024); }

class Benchmark {
 public:
  Benchmark(const BenchmarkArguments& arguments, const std::vector<InputLayer>& layers,
            const partitioner::Options& options, bool use_delegate)
      : arguments_(arguments), layers_(layers), options_(options), use_delegate_(use_delegate) {
    options_.keep_profile = arguments.enable_op_profiling || arguments.roofline;
  }

  Outcome Run() {
    const int64_t memory = ResidentBytes();
    std::optional<PeakMemoryMonitor> monitor;
    if (arguments_.report_peak_memory) {
      monitor.emplace(std::chrono::milliseconds(arguments_.memory_interval_ms));
    }
    Initialize();
    outcome_.init_mb = Megabytes(PeakResidentBytes() - memory);
    if (arguments_.dry_run) {
      if (use_delegate_) partitioner::OpeningTimes(session_.delegate->Explain()).Print(std::cout);
      return outcome_;
    }
    Check(session_.inputs.Fill(*session_.interpreter, arguments_.seed));
    MeasureLimits warmup = arguments_.limits;
    warmup.min_runs = arguments_.warmup_runs;
    warmup.min_seconds = arguments_.warmup_min_secs;
    if (warmup.min_runs > 0) outcome_.warmup = Series("warming up", warmup);
    session_.interpreter->SetProfiling(arguments_.enable_op_profiling);
    outcome_.runs = Series("measuring", arguments_.limits);
    outcome_.first_us = warmup.min_runs > 0 ? outcome_.warmup.first : outcome_.runs.first;
    outcome_.overall_mb = Megabytes(PeakResidentBytes() - memory);
    if (monitor) outcome_.peak_mb = Megabytes(monitor->Stop());
    PrintInference();
    if (!arguments_.output_file.empty()) WriteOutputs();
    if (options_.keep_profile) PrintProfile();
    return outcome_;
  }

 private:
  void Line(const std::string& text) const {
    std::cout << arguments_.output_prefix << text << std::endl;
  }

  void Initialize() {
    const Clock::time_point start = Clock::now();
    const auto model = Check(OpenModel(arguments_.graph));
    Line("Loaded model " + arguments_.graph);
    const bool use_fuselite = use_delegate_ && arguments_.delegate.use_fuselite;
    SessionDelegates delegates;
    if (use_delegate_) delegates = CheckUsage(arguments_.delegate.Create(options_));
    session_ = Check(OpenSession(model, HostOf(options_), std::move(delegates),
                                 {layers_, arguments_.inputs}, arguments_.signature),
                     arguments_.graph);
    outcome_.init_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (use_fuselite) PrintDelegation();
    if (!session_.others.empty()) PrintOthers();
    Line("The input model file size (MB): " +
         Fixed(static_cast<double>(model->file_bytes) / 1e6, 6));
    Line("Initialized session in " + Fixed(outcome_.init_us / 1e3, 3) + "ms.");
  }

  // Prints, for all delegates but fuselite, the nodes that run for one of them.
  void PrintOthers() const {
    const std::vector<std::string> plan = session_.interpreter->Plan();
    const auto is_delegate = [](const std::string& node) { return node.starts_with("delegate "); };
    const auto delegates = std::ranges::count_if(plan, is_delegate);
    const int ours =
        session_.delegate == nullptr
            ? 0
            : CountDelegated(*session_.delegate, session_.interpreter->main_subgraph()).partitions;
    const bool completely = delegates == static_cast<ptrdiff_t>(plan.size()) && ours == 0;
    PrintApplied("EXTERNAL", completely, delegates - ours);
  }

  // `kernels`: the nodes that run for the delegate.
  void PrintApplied(const std::string& delegate, bool completely, ptrdiff_t kernels) const {
    const std::string name = delegate + " delegate";
    if (kernels == 0) {
      return Line("Though " + name +
                  " is explicitly applied, the model graph will not be "
                  "executed by the delegate.");
    }
    Line("Explicitly applied " + name + ", and the model graph will be " +
         (completely ? "completely executed by the delegate."
                     : "partially executed by the delegate w/ " + std::to_string(kernels) +
                           " delegate kernels."));
  }

  void PrintDelegation() const {
    const DelegateCounts counts =
        CountDelegated(*session_.delegate, session_.interpreter->main_subgraph());
    const bool completely = counts.claimed == counts.nodes && counts.partitions > 0;
    PrintApplied("FUSELITE", completely, counts.partitions);
    if (arguments_.require_full_delegation && !completely) {
      throw CommandError(arguments_.graph + ": the delegate takes only " +
                         std::to_string(counts.claimed) + " of " + std::to_string(counts.nodes) +
                         " nodes; fuselite explain says why");
    }
  }

  Summary Series(const char* label, const MeasureLimits& limits) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "Running benchmark for at least %d iterations and at least %g seconds but "
                  "terminate if exceeding %g seconds.",
                  limits.min_runs, limits.min_seconds, limits.max_seconds);
    Line(text);
    std::vector<double> times;
    {
      Progress progress(label);
      times = Check(Measure(
          limits, [&] { return session_.interpreter->Invoke(); },
          [&](double share) { progress.Update(share); }));
    }
    const Summary s = Summarize(times);
    std::snprintf(text, sizeof text,
                  "count=%zu first=%.0f curr=%.0f min=%.0f max=%.0f avg=%.6g std=%.0f p5=%.0f "
                  "median=%.0f p95=%.0f",
                  s.count, s.first, s.current, s.min, s.max, s.mean, s.deviation, s.p5, s.median,
                  s.p95);
    Line(text);
    return s;
  }

  void PrintInference() const {
    char text[256];
    std::snprintf(text, sizeof text,
                  "Inference timings in us: Init: %.0f, First inference: %.0f, Warmup (avg): %.6g, "
                  "Inference (avg): %.6g",
                  outcome_.init_us, outcome_.first_us, outcome_.warmup.mean, outcome_.runs.mean);
    Line(text);
    std::snprintf(text, sizeof text,
                  "Memory footprint delta from the start of the tool (MB): init=%.6g overall=%.6g",
                  outcome_.init_mb, outcome_.overall_mb);
    Line(text);
    if (!outcome_.peak_mb) return;
    std::snprintf(text, sizeof text,
                  "Overall peak memory footprint (MB) via periodic monitoring: %.6g",
                  *outcome_.peak_mb);
    Line(text);
  }

  // The outputs' bytes, one after the other.
  void WriteOutputs() const {
    std::string bytes;
    for (size_t i = 0; i < session_.interpreter->outputs().size(); ++i) {
      const Array array = Check(CopyTensor(session_.interpreter->output(static_cast<int>(i))));
      bytes += AsText(array.bytes);
    }
    Check(WriteFile(arguments_.output_file, {bytes}));
  }

  // What was recorded, once the session has ended.
  void PrintProfile() {
    const std::vector<interpreter::NodeEvent> events = session_.interpreter->TakeEvents();
    std::shared_ptr<partitioner::DelegateState> state;
    if (session_.delegate != nullptr) state = session_.delegate->state();
    session_ = Session();
    if (arguments_.enable_op_profiling) PrintOps(OpTimes(events, state.get()));
    if (arguments_.roofline && state != nullptr) {
      outcome_.roofline = MakeRoofline(*state, outcome_.runs.min / 1e6);
      std::cout << '\n';
      PrintRoofline(*outcome_.roofline, std::cout);
    }
  }

  // Nodes of the interpreter in the order in which they ran; a partition's steps in its place.
  void PrintOps(const std::vector<OpTime>& ops) const {
    if (arguments_.profiling_file.empty()) return Print(ops, std::cout);
    std::ostringstream text;
    Print(ops, text);
    Check(WriteFile(arguments_.profiling_file, {text.str()}));
  }

  void Print(const std::vector<OpTime>& ops, std::ostream& out) const {
    arguments_.profiling_mode == "csv" ? PrintOpProfileCsv(ops, out) : PrintOpProfile(ops, out);
  }

  const BenchmarkArguments& arguments_;
  const std::vector<InputLayer>& layers_;
  partitioner::Options options_;
  const bool use_delegate_;
  Session session_;
  Outcome outcome_;
};

nlohmann::ordered_json ToJson(const Outcome& outcome) {
  nlohmann::ordered_json json = {{"init_us", outcome.init_us},
                                 {"first_us", outcome.first_us},
                                 {"warmup_avg_us", outcome.warmup.mean},
                                 {"runs", outcome.runs.count},
                                 {"avg_us", outcome.runs.mean},
                                 {"min_us", outcome.runs.min},
                                 {"max_us", outcome.runs.max},
                                 {"median_us", outcome.runs.median},
                                 {"p5_us", outcome.runs.p5},
                                 {"p95_us", outcome.runs.p95},
                                 {"std_us", outcome.runs.deviation},
                                 {"init_mb", outcome.init_mb},
                                 {"overall_mb", outcome.overall_mb}};
  if (outcome.peak_mb) json["peak_mb"] = *outcome.peak_mb;
  if (outcome.roofline) json["roofline"] = ToJson(*outcome.roofline);
  return json;
}

// The words are benchmark_model's.
void ListSignatures(const BenchmarkArguments& arguments) {
  const auto model = Check(OpenModel(arguments.graph));
  std::cout << arguments.output_prefix << "The Model contains " << model->signatures.size()
            << " signature key(s).\n";
  for (const interpreter::Signature& signature : model->signatures) {
    std::cout << arguments.output_prefix << "-> Signature Key: " << OneLine(signature.key)
              << ", Inputs:";
    for (const auto& input : signature.inputs) std::cout << ' ' << OneLine(input.name);
    std::cout << ", Outputs:";
    for (const auto& output : signature.outputs) std::cout << ' ' << OneLine(output.name);
    std::cout << '\n';
  }
}

// The model stands alone or behind --graph.
void TakeModel(BenchmarkArguments& arguments) {
  if (arguments.graph.empty()) {
    arguments.graph = std::exchange(arguments.positional, "");
  }
  if (arguments.graph.empty()) {
    throw CommandError("benchmark: a model is missing; give a .tflite file, or zoo:NAME", 2);
  }
  if (!arguments.positional.empty()) {
    throw CommandError("benchmark: there are two models, '" + arguments.positional +
                           "' and --graph=" + arguments.graph + "; give one of them",
                       2);
  }
}

// What asks for something that another flag would take away.
void CheckTogether(const BenchmarkArguments& arguments) {
  const auto refuse = [](bool given, std::string_view flag, std::string_view why) {
    if (given) throw CommandError(internal::Join(flag, ": ", why), 2);
  };
  if (arguments.mode == "off" || !arguments.delegate.use_fuselite) {
    constexpr std::string_view kNone = "no fuselite delegate is applied here";
    refuse(arguments.require_full_delegation, "--require_full_delegation", kNone);
    refuse(arguments.roofline, "--roofline", kNone);
  }
  refuse(arguments.mode == "both" && !arguments.delegate.AskForAny(), "--delegate=both",
         "no delegate is applied here to compare with the reference kernels");
  refuse(arguments.list_signatures && !arguments.result_file.empty(), "--result_file_path",
         "nothing is measured with --list_signatures=true");
  if (arguments.dry_run || arguments.list_signatures) {
    const std::string why = internal::Join(
        "nothing is run with ", arguments.dry_run ? "--dry_run=true" : "--list_signatures=true");
    refuse(arguments.roofline, "--roofline", why);
    refuse(!arguments.profiling_file.empty(), "--op_profiling_output_file", why);
    refuse(!arguments.output_file.empty(), "--output_filepath", why);
  }
  CheckUsage(CheckDistinct({{"--result_file_path", arguments.result_file},
                            {"--op_profiling_output_file", arguments.profiling_file},
                            {"--output_filepath", arguments.output_file}}));
}

void RunBenchmark(BenchmarkArguments& arguments) {
  TakeModel(arguments);
  CheckTogether(arguments);
  // As whoever names a file for the profile expects.
  if (!arguments.profiling_file.empty()) arguments.enable_op_profiling = true;
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const std::vector<InputLayer> layers = CheckUsage(ParseInputLayers(arguments.layer_flags));
  arguments.limits.delay_seconds = std::max(arguments.run_delay, 0.0);
  arguments.limits.runs_per_second = std::max(arguments.run_frequency, 0.0);
  std::cout << arguments.output_prefix << "STARTING!\n"
            << arguments.output_prefix << "Log parameter values verbosely: [0]\n"
            << arguments.output_prefix << "Graph: [" << arguments.graph << "]\n";
  for (const auto& provider : arguments.delegate.providers) provider->LogParams(std::cout);
  for (const std::string& flag : arguments.ignored) {
    std::cerr << "fuselite: " << flag << " has no meaning here and is ignored\n";
  }
  if (arguments.list_signatures) return ListSignatures(arguments);
  nlohmann::ordered_json results = {{"graph", arguments.graph}};
  if (!arguments.benchmark_name.empty()) results["name"] = arguments.benchmark_name;
  std::map<bool, Outcome> outcomes;
  for (bool use_delegate : {false, true}) {
    if (arguments.mode == (use_delegate ? "off" : "on")) continue;
    if (arguments.mode == "both") {
      std::cout << (use_delegate ? "\nWith the delegate:\n" : "\nReference kernels:\n");
    }
    outcomes[use_delegate] = Benchmark(arguments, layers, options, use_delegate).Run();
    results[use_delegate ? "delegate" : "reference"] = ToJson(outcomes[use_delegate]);
  }
  if (arguments.mode == "both" && !arguments.dry_run) {
    const double ratio = outcomes[false].runs.mean / outcomes[true].runs.mean;
    std::cout << "\nRatio (reference / delegate): " << Fixed(ratio, 2) << '\n';
    results["ratio"] = ratio;
  }
  if (arguments.result_file.empty()) return;
  Check(WriteFile(arguments.result_file, {results.dump(1), "\n"}));
}

}  // namespace

void AddBenchmarkCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("benchmark", "Measure a model, as benchmark_model does");
  auto arguments = std::make_shared<BenchmarkArguments>();
  AddBenchmarkFlags(*command, *arguments);
  command->callback([arguments] { RunBenchmark(*arguments); });
}

}  // namespace fuselite::tools
