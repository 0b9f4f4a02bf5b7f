// fuselite stress: what happens to a process that holds the delegate when things go wrong around
// it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/cpu/isa.h"
#include "runtime/support/text_table.h"
#include "runtime/support/write_file.h"
#include "tools/commands/commands.h"
#include "tools/common/progress.h"
#include "tools/common/validators.h"
#include "tools/stress/child.h"
#include "tools/stress/scenario.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

struct Arguments {
  std::string model = "zoo:transformer";
  std::vector<std::string> scenarios, caps;
  std::string format = "text", output;
  int rounds = 100;
  double limit_seconds = 120;
  uint64_t seed = 0;
  DelegateFlags delegate;
};

struct Outcome {
  Scenario scenario;
  Isa cap;
  ChildResult result;
};

std::vector<Scenario> AllScenarios() {
  std::vector<Scenario> all;
  for (const std::span<const Scenario> some :
       {LifecycleScenarios(), SurroundingScenarios(), CacheScenarios()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string Names(const std::vector<Scenario>& scenarios) {
  std::string names;
  for (const Scenario& scenario : scenarios) {
    names += (names.empty() ? "" : ", ") + std::string(scenario.name);
  }
  return names;
}

// In the order in which they are listed, whatever the order in which they are asked for.
std::vector<Scenario> Chosen(const std::vector<std::string>& names) {
  const std::vector<Scenario> all = AllScenarios();
  for (const std::string& name : names) {
    if (std::ranges::count(all, name, &Scenario::name) == 0) {
      throw CommandError("there is no scenario '" + name + "': " + Names(all), 2);
    }
  }
  std::vector<Scenario> chosen = all;
  std::erase_if(chosen, [&](const Scenario& scenario) {
    return !names.empty() && std::ranges::count(names, scenario.name) == 0;
  });
  return chosen;
}

std::vector<Isa> Caps(const std::vector<std::string>& names) {
  if (names.empty()) return {DetectIsa()};
  std::vector<Isa> caps;
  std::vector<Isa> runnable = RunnableIsas();
  for (const std::string& name : names) {
    if (name == "all") return runnable;
    const auto isa = std::ranges::find(runnable, name, &IsaName);
    if (isa == runnable.end()) {
      throw CommandError("--cap: this machine does not run '" + name + "'", 2);
    }
    caps.push_back(*isa);
  }
  return caps;
}

std::vector<Outcome> RunAll(const Arguments& arguments) {
  StressContext context;
  context.options = CheckUsage(arguments.delegate.Parse());
  context.model = Check(OpenModel(arguments.model));
  context.rounds = arguments.rounds;
  context.seed = arguments.seed;
  const std::vector<Scenario> scenarios = Chosen(arguments.scenarios);
  const std::vector<Isa> caps = Caps(arguments.caps);
  std::vector<Outcome> outcomes;
  Progress progress("stressing");
  for (const Isa cap : caps) {
    context.options.isa = cap;
    for (const Scenario& scenario : scenarios) {
      const double total = static_cast<double>(caps.size() * scenarios.size());
      progress.Update(static_cast<double>(outcomes.size()) / total);
      outcomes.push_back(
          {scenario, cap,
           RunInChild([&] { return scenario.run(context); }, arguments.limit_seconds)});
    }
  }
  return outcomes;
}

std::string ToText(const std::vector<Outcome>& outcomes) {
  TextTable table({"scenario", "cpu", "verdict", "seconds", "what", "detail"});
  for (const Outcome& outcome : outcomes) {
    table.AddRow({std::string(outcome.scenario.name), std::string(IsaName(outcome.cap)),
                  std::string(VerdictName(outcome.result.verdict)),
                  Fixed(outcome.result.seconds, 2), std::string(outcome.scenario.what),
                  outcome.result.detail});
  }
  std::ostringstream text;
  table.Print(text);
  return std::move(text).str();
}

std::string ToJson(const std::vector<Outcome>& outcomes) {
  auto json = nlohmann::ordered_json::array();
  for (const Outcome& outcome : outcomes) {
    json.push_back({{"scenario", outcome.scenario.name},
                    {"what", outcome.scenario.what},
                    {"cpu", IsaName(outcome.cap)},
                    {"verdict", VerdictName(outcome.result.verdict)},
                    {"seconds", outcome.result.seconds},
                    {"detail", outcome.result.detail}});
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '&': escaped += "&amp;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string ToHtml(const std::vector<Outcome>& outcomes) {
  std::ostringstream page;
  page << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<title>fuselite stress</title><style>body { font: 14px sans-serif; margin: 2em; } "
          "td, th { padding: 3px 12px 3px 0; text-align: left; } .SUCCESS { color: #2a7d3f; } "
          ".FAILURE, .HANG, .CRASH { color: #b3261e; font-weight: bold; }</style></head><body>"
          "<table><tr><th>scenario</th><th>cpu</th><th>verdict</th><th>seconds</th><th>what</th>"
          "<th>detail</th></tr>\n";
  for (const Outcome& outcome : outcomes) {
    const std::string_view verdict = VerdictName(outcome.result.verdict);
    page << "<tr><td>" << outcome.scenario.name << "</td><td>" << IsaName(outcome.cap)
         << "</td><td class=\"" << verdict << "\">" << verdict << "</td><td>"
         << Fixed(outcome.result.seconds, 2) << "</td><td>" << Escaped(outcome.scenario.what)
         << "</td><td>" << Escaped(outcome.result.detail) << "</td></tr>\n";
  }
  page << "</table></body></html>\n";
  return std::move(page).str();
}

void Run(const Arguments& arguments) {
  const std::vector<Outcome> outcomes = RunAll(arguments);
  const std::string report = arguments.format == "json"   ? ToJson(outcomes)
                             : arguments.format == "html" ? ToHtml(outcomes)
                                                          : ToText(outcomes);
  if (arguments.output.empty()) {
    std::cout << report << std::flush;
  } else {
    Check(WriteFile(arguments.output, {report}));
  }
  const auto failed = std::ranges::count_if(
      outcomes, [](const Outcome& outcome) { return outcome.result.verdict != Verdict::kSuccess; });
  if (failed > 0) {
    throw CommandError(std::to_string(failed) + " of " + std::to_string(outcomes.size()) +
                       " scenarios did not succeed");
  }
}

}  // namespace

void AddStressCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "stress", "Put a process that holds the delegate under stress; exit 1 unless it bears it");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "A .tflite file, or zoo:NAME")
      ->capture_default_str();
  command
      ->add_option("--scenario", arguments->scenarios,
                   "Only these, separated by commas: " + Names(AllScenarios()))
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--cap", arguments->caps,
                   "CPU levels, separated by commas, or all that this machine runs; else its best")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--rounds", arguments->rounds, "How often what is repeated is repeated")
      ->check(AtLeast(1))
      ->capture_default_str();
  command->add_option("--limit", arguments->limit_seconds, "Seconds after which a scenario hangs")
      ->check(AtLeast(0))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Of random inputs")
      ->check(WholeNumber())
      ->capture_default_str();
  command->add_option("--format", arguments->format, "text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "The file to write; else standard output")
      ->check(Names("file"));
  arguments->delegate.AddOptionsTo(*command);
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace fuselite::tools
