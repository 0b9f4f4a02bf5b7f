// fuselite demo: the main job in one table. Writes the zoo's networks, runs each with the reference
// kernels and with the delegate.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "runtime/cpu/cpu.h"
#include "runtime/support/text_table.h"
#include "runtime/support/write_file.h"
#include "tools/commands/commands.h"
#include "tools/common/progress.h"
#include "tools/common/session.h"
#include "tools/common/validators.h"
#include "tools/inputs/tensors.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string directory;
  std::vector<std::string> models;
  double seconds = 0.5;
  DelegateFlags delegate;
};

// The fastest of the runs that fit in `seconds`; at least two, since the first pays for caches.
double BestMilliseconds(interpreter::Interpreter& interpreter, double seconds, Progress& progress) {
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int run = 0;; ++run) {
    const Clock::time_point start = Clock::now();
    Check(interpreter.Invoke());
    const Clock::time_point end = Clock::now();
    const double ms = std::chrono::duration<double, std::milli>(end - start).count();
    best = run == 0 ? ms : std::min(best, ms);
    progress.Update();
    if (run > 0 && std::chrono::duration<double>(end - begin).count() > seconds) return best;
  }
}

// Writes the zoo's models for the demo; their paths.
std::vector<std::string> WriteZoo(const std::string& directory) {
  const std::filesystem::path folder = directory.empty()
                                           ? std::filesystem::temp_directory_path() / "fuselite-zoo"
                                           : std::filesystem::path(directory);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw CommandError(folder.string() + ": " + error.message());
  std::vector<std::string> paths;
  for (const ZooModel& model : Zoo()) {
    if (!model.in_demo) continue;
    const std::string path = (folder / (std::string(model.name) + ".tflite")).string();
    const std::vector<std::byte> bytes = Check(BuildZooModel(model.name, 1));
    Check(WriteFile(path, {AsText(bytes)}));
    paths.push_back(path);
  }
  return paths;
}

// Whether the outputs agree within the default tolerance; one row of the table.
bool AddModel(const std::string& path, const Arguments& arguments,
              const partitioner::Options& options, TextTable& table) {
  const std::string name = std::filesystem::path(path).stem().string();
  Progress progress(name);
  const auto model = Check(OpenModel(path));
  Session reference = Check(OpenSession(model, HostOf(options), {}), path);
  Session fuselite = Check(OpenSession(model, HostOf(options), {.fuselite = &options}), path);
  Check(FillRandom(*reference.interpreter, 0));
  Check(FillRandom(*fuselite.interpreter, 0));
  const double reference_ms = BestMilliseconds(*reference.interpreter, arguments.seconds, progress);
  const double fuselite_ms = BestMilliseconds(*fuselite.interpreter, arguments.seconds, progress);
  const double part = AllowedPart(*model, options.precision);
  double worst = 0;
  bool good = true;
  for (size_t i = 0; i < reference.interpreter->outputs().size(); ++i) {
    const interpreter::TensorView tensor = reference.interpreter->output(static_cast<int>(i));
    const Difference difference =
        Compare(Check(CopyTensor(fuselite.interpreter->output(static_cast<int>(i)))),
                Check(CopyTensor(tensor)));
    worst = std::max(worst, difference.max);
    good &= difference.max <= DefaultTolerance(tensor.type, difference.range, part);
  }
  const DelegateCounts counts = CountDelegated(*fuselite.delegate);
  char difference[32];
  std::snprintf(difference, sizeof difference, "%.2g", worst);
  table.AddRow({name, std::to_string(counts.nodes), std::to_string(counts.claimed),
                std::to_string(counts.partitions), std::to_string(counts.steps), difference,
                Fixed(reference_ms, 2), Fixed(fuselite_ms, 2),
                Fixed(reference_ms / fuselite_ms, 1) + "x"});
  return good;
}

void Demo(const Arguments& arguments) {
  if (!arguments.directory.empty() && !arguments.models.empty()) {
    throw CommandError(
        "--directory: the zoo's models are written there, and other models are to run; leave one "
        "of them out",
        2);
  }
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const CpuInfo cpu = ReadCpuInfo();
  const int threads = options.num_threads > 0 ? options.num_threads : cpu.physical_cores;
  std::cout << "fuselite on " << (cpu.model.empty() ? "this machine" : cpu.model) << ", "
            << IsaName(options.isa) << ", " << threads << (threads == 1 ? " thread" : " threads")
            << '\n';
  const std::vector<std::string> paths =
      arguments.models.empty() ? WriteZoo(arguments.directory) : arguments.models;
  TextTable table({"model", "nodes", "claimed", "partitions", "steps", "largest difference",
                   "reference ms", "fuselite ms", "ratio"});
  bool good = true;
  for (const std::string& path : paths) good &= AddModel(path, arguments, options, table);
  table.Print(std::cout);
  if (!good) throw CommandError("a model's outputs differ from the reference beyond the tolerance");
}

}  // namespace

void AddDemoCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "demo", "Run networks with the reference kernels and with fuselite, and print a table");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("models", arguments->models, "Models to run; else those of the zoo");
  command
      ->add_option("--directory", arguments->directory,
                   "Where to write the zoo's models; else a folder for temporary files")
      ->check(Names("folder"));
  command->add_option("--seconds", arguments->seconds, "To measure each model and engine for")
      ->check(AtLeast(0))
      ->capture_default_str();
  arguments->delegate.AddOptionsTo(*command);
  command->callback([arguments] { Demo(*arguments); });
}

}  // namespace fuselite::tools
