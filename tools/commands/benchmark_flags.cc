#include "tools/commands/benchmark_flags.h"

#include <CLI/CLI.hpp>

#include "tools/common/validators.h"

namespace fuselite::tools {
namespace {

// benchmark_model's flags for what there is none of here: other delegates, their caches, profilers'
// buffers. Scripts pass them on; they are taken, and named once.
constexpr const char* kMeaningless[] = {"--use_caching",
                                        "--allow_fp16",
                                        "--max_profiling_buffer_entries",
                                        "--allow_dynamic_profiling_buffer_increase",
                                        "--export_model_runtime_info",
                                        "--model_runtime_info_output_file",
                                        "--print_preinvoke_state",
                                        "--print_postinvoke_state",
                                        "--release_dynamic_tensors",
                                        "--optimize_memory_for_large_tensors",
                                        "--disable_delegate_clustering",
                                        "--enable_builtin_cast_constant_cache",
                                        "--output_proto_filepath",
                                        "--use_xnnpack",
                                        "--xnnpack_force_fp16",
                                        "--use_gpu",
                                        "--use_nnapi",
                                        "--delegate_serialize_dir",
                                        "--delegate_serialize_token",
                                        "--stable_delegate_loader_settings"};

void AddMeaninglessFlags(CLI::App& command, BenchmarkArguments& arguments) {
  for (const char* flag : kMeaningless) {
    command
        .add_option_function<std::string>(
            flag, [&, flag](const std::string&) { arguments.ignored.emplace_back(flag); },
            "Taken and ignored")
        ->group("");  // not in the help
  }
}

}  // namespace

void AddBenchmarkFlags(CLI::App& command, BenchmarkArguments& a) {
  const auto number = [&](const char* flag, auto& value, const char* help, double least = 0) {
    command.add_option(flag, value, help)->capture_default_str()->check(AtLeast(least));
  };
  const auto text = [&](const char* flag, std::string& value, const char* help) {
    command.add_option(flag, value, help);
  };
  const auto file = [&](const char* flag, std::string& value, const char* help) {
    command.add_option(flag, value, help)->check(Names("file"));
  };
  command.add_option("model", a.positional, "A .tflite file, or zoo:NAME");
  text("--graph", a.graph, "The model, as benchmark_model takes it");
  text("--signature_to_run_for", a.signature,
       "Key of the signature to run; else the first subgraph");
  command.add_option("--list_signatures", a.list_signatures, "Print the signatures, run nothing");
  command.add_option("--delegate", a.mode, "on, off or both (with the ratio)")
      ->check(CLI::IsMember({"on", "off", "both"}))
      ->capture_default_str();
  command.add_option("-i,--input", a.inputs, kInputHelp);
  command.add_option("--seed", a.seed, "Of random inputs")
      ->check(WholeNumber())
      ->capture_default_str();
  a.layer_flags.AddTo(command);
  number("--warmup_runs", a.warmup_runs, "Least number of runs before those that count");
  number("--warmup_min_secs", a.warmup_min_secs, "Least time of them");
  number("--num_runs", a.limits.min_runs, "Least number of runs");
  number("--min_secs", a.limits.min_seconds, "Least time to run");
  number("--max_secs", a.limits.max_seconds, "Greatest time to run");
  number("--run_delay", a.run_delay, "Seconds between runs", -1);
  number("--run_frequency", a.run_frequency, "Runs in a second; -1: as many as there can be", -1);
  text("--benchmark_name", a.benchmark_name, "Written to the result file");
  text("--output_prefix", a.output_prefix, "Put before each line");
  file("--result_file_path", a.result_file, "Where to write the results as JSON");
  command.add_option("--dry_run", a.dry_run, "Only load and prepare the model");
  command.add_option("--require_full_delegation", a.require_full_delegation,
                     "Fail unless the delegate takes every node");
  command.add_option("--enable_op_profiling", a.enable_op_profiling, "Print the time of each op");
  command.add_flag("--roofline", a.roofline,
                   "Print how far each step is from what this machine can compute and move, and "
                   "where the run loses most");
  command.add_option("--op_profiling_output_mode", a.profiling_mode, "stdout or csv")
      ->check(CLI::IsMember({"stdout", "csv"}));
  file("--op_profiling_output_file", a.profiling_file, "Where to write the profile");
  command
      .add_option_function<std::string>(
          "--profiling_output_csv_file",
          [&](const std::string& value) {
            a.profiling_mode = "csv";
            a.profiling_file = value;
          },
          "As --op_profiling_output_mode=csv with --op_profiling_output_file")
      ->check(Names("file"));
  command.add_option("--report_peak_memory_footprint", a.report_peak_memory,
                     "Look at the process's memory while it runs, and print the most");
  command.add_option("--memory_footprint_check_interval_ms", a.memory_interval_ms, "How often")
      ->check(AtLeast(1))
      ->capture_default_str();
  file("--output_filepath", a.output_file, "Where to write the outputs' raw values");
  AddMeaninglessFlags(command, a);
  a.delegate.AddTo(command);
}

}  // namespace fuselite::tools
