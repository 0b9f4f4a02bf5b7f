// fuselite profile: where the time of a run goes, step by step and thread by thread.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/support/text_table.h"
#include "runtime/support/write_file.h"
#include "tools/commands/commands.h"
#include "tools/common/progress.h"
#include "tools/common/session.h"
#include "tools/common/validators.h"
#include "tools/inputs/files.h"
#include "tools/inputs/tensors.h"
#include "tools/measure/chrome_trace.h"
#include "tools/measure/op_profile.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

constexpr int kWarmupRuns = 3;

struct Arguments {
  std::string model, signature, format = "text", output, trace;
  std::vector<std::string> inputs;
  InputLayerFlags layer_flags;
  uint64_t seed = 0;
  int runs = 20;
  DelegateFlags delegate;
};

struct Recorded {
  std::vector<OpTime> ops;
  std::string trace;
  int threads = 0;
};

void Invoke(interpreter::Interpreter& interpreter, int runs, Progress& progress) {
  for (int run = 0; run < runs; ++run) {
    progress.Update(static_cast<double>(run) / runs);
    Check(interpreter.Invoke());
  }
}

// The threads of the partition that has most.
int Threads(const partitioner::Explanation& explanation) {
  int threads = 0;
  for (const partitioner::GraphReport& graph : explanation.graphs) {
    for (const partitioner::PartitionReport& partition : graph.partitions) {
      threads = std::max(threads, partition.threads);
    }
  }
  return threads;
}

Recorded Record(const Arguments& arguments) {
  partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const InputRequest inputs{CheckUsage(ParseInputLayers(arguments.layer_flags)), arguments.inputs};
  const auto model = Check(OpenModel(arguments.model));
  const auto open = [&] {
    Session session =
        Check(OpenSession(model, HostOf(options), CheckUsage(arguments.delegate.Create(options)),
                          inputs, arguments.signature),
              arguments.model);
    Check(session.inputs.Fill(*session.interpreter, arguments.seed));
    return session;
  };
  Progress progress("profiling");
  {
    // Caches and the machine's clock; events of these runs are not wanted.
    const Session warm = open();
    Invoke(*warm.interpreter, kWarmupRuns, progress);
  }
  options.keep_profile = options.keep_events = true;
  Session session = open();
  session.interpreter->SetProfiling(true);
  Invoke(*session.interpreter, arguments.runs, progress);
  const std::vector<interpreter::NodeEvent> events = session.interpreter->TakeEvents();
  std::shared_ptr<partitioner::DelegateState> state;  // null: fuselite was not applied
  if (session.delegate != nullptr) state = session.delegate->state();
  Recorded recorded;
  if (state != nullptr) recorded.threads = Threads(state->Explain());
  session = Session();  // its kernels hand over what they recorded last
  recorded.ops = OpTimes(events, state.get());
  if (!arguments.trace.empty()) {
    const bool applied = state != nullptr;
    recorded.trace = ChromeTrace(
        events, applied ? state->profile().Events() : std::vector<partitioner::PartitionEvents>());
  }
  return recorded;
}

double Total(const std::vector<OpTime>& ops) {
  double total = 0;
  for (const OpTime& op : ops) total += op.average_ms();
  return total;
}

std::string ToJson(const Recorded& recorded) {
  using Json = nlohmann::ordered_json;
  Json json = {{"threads", recorded.threads}, {"rows", Json::array()}};
  const double total = Total(recorded.ops);
  for (const OpTime& op : recorded.ops) {
    json["rows"].push_back({{"name", op.name},
                            {"ops", op.type},
                            {"kernel", op.kernel},
                            {"avg_us", op.average_ms() * 1e3},
                            {"min_us", op.min_ms * 1e3},
                            {"max_us", op.max_ms * 1e3},
                            {"share", total > 0 ? op.average_ms() / total : 0},
                            {"runs", op.runs}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ToText(const Recorded& recorded) {
  TextTable table({"avg us", "min us", "max us", "%", "operators", "kernel"});
  const double total = Total(recorded.ops);
  for (const OpTime& op : recorded.ops) {
    table.AddRow({Fixed(op.average_ms() * 1e3, 1), Fixed(op.min_ms * 1e3, 1),
                  Fixed(op.max_ms * 1e3, 1),
                  Fixed(total > 0 ? 100 * op.average_ms() / total : 0, 1), op.type, op.kernel});
  }
  std::ostringstream text;
  table.Print(text);
  text << recorded.ops.size() << (recorded.ops.size() == 1 ? " step, " : " steps, ")
       << Fixed(total * 1e3, 1) << " us together";
  // The host's own operators do not tell theirs.
  if (recorded.threads > 0) text << ", threads: " << recorded.threads;
  text << '\n';
  return std::move(text).str();
}

void Run(const Arguments& arguments) {
  CheckUsage(CheckDistinct({{"--output", arguments.output}, {"--chrome-trace", arguments.trace}}));
  const Recorded recorded = Record(arguments);
  if (!arguments.trace.empty()) Check(WriteFile(arguments.trace, {recorded.trace}));
  const std::string text = arguments.format == "json" ? ToJson(recorded) : ToText(recorded);
  if (arguments.output.empty()) {
    std::cout << text;
  } else {
    Check(WriteFile(arguments.output, {text}));
  }
}

}  // namespace

void AddProfileCommand(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("profile", "Say where a run's time goes, by step and thread");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "A .tflite file, or zoo:NAME")->required();
  command->add_option("--signature", arguments->signature,
                      "Key of the signature to run; else the first subgraph");
  command->add_option("-i,--input", arguments->inputs, kInputHelp);
  command->add_option("--seed", arguments->seed, "Of random inputs")
      ->check(WholeNumber())
      ->capture_default_str();
  command->add_option("--num_runs", arguments->runs, "Runs that are recorded")
      ->check(AtLeast(1))
      ->capture_default_str();
  command->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "The file to write; else standard output")
      ->check(Names("file"));
  command
      ->add_option("--chrome-trace", arguments->trace,
                   "A file for ui.perfetto.dev or chrome://tracing: each thread's steps")
      ->check(Names("file"));
  arguments->layer_flags.AddTo(*command);
  arguments->delegate.AddTo(*command);
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace fuselite::tools
