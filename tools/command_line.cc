#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/options.h"
#include "runtime/support/printable.h"
#include "runtime/version.h"
#include "tools/commands/commands.h"

// packaging/command_line.ld
using Initializer = void (*)();
extern "C" const Initializer kCommandLineInit[] __attribute__((weak)),
    kCommandLineInitEnd[] __attribute__((weak));

namespace {

constexpr int kUsageError = 2;

// Runs the initializers of the command line's files, once; where they are not kept for here, in a
// program that holds these files itself, they have run.
void Initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    const Initializer* const end = kCommandLineInitEnd;
    for (const Initializer* i = kCommandLineInit; i != end; ++i) (*i)();
  });
}

// One line, whatever a file is called.
int Fail(std::string_view what, int exit_status) {
  std::fprintf(stderr, "fuselite: %s\n", fuselite::OneLine(what).c_str());
  return exit_status;
}

// The nearest of `names`; empty where none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(fuselite::partitioner::Nearest(word, views));
}

// CLI11 answers an unknown command, or a flag before it, with "A subcommand is required".
void CheckCommand(const CLI::App& app, int argc, char** argv) {
  using fuselite::tools::CommandError;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (argc < 2) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    throw CommandError("a command is missing: " + all + "; --help says more", kUsageError);
  }
  const std::string given = argv[1];
  if (given == "-h" || given.starts_with("--help") || given == "--version") return;
  if (given.starts_with('-')) {
    throw CommandError("'" + given + "' stands where a command is expected", kUsageError);
  }
  if (std::ranges::count(names, given) > 0) return;
  const std::string nearest = Nearest(given, names);
  throw CommandError(
      "there is no command '" + given + "'; " +
          (nearest.empty() ? "fuselite --help lists them" : "the nearest one is " + nearest),
      kUsageError);
}

bool IsSwitch(const CLI::Option& option) {
  return option.get_type_name() == "BOOLEAN" || option.get_expected_max() == 0;
}

bool ReadsAsBoolean(const std::string& text) {
  bool value;
  return CLI::detail::lexical_cast(text, value);
}

// Says what the value of a flag was to be and is not.
std::string Wanted(const CLI::Option& option, const std::string& name) {
  if (IsSwitch(option)) {
    return "is neither true nor false; to turn it on, write " + name + "=true";
  }
  if (option.get_type_name() != "INT") return "is not a number";
  return "is not a whole number of at most " + std::to_string(std::numeric_limits<int>::max());
}

// The arguments behind the program's name, last first, as CLI11 takes them. It gives a flag without
// a value the argument behind it: here the value of "--name=" is empty, and a flag that is true or
// false, with nothing of the kind behind it, is true.
std::vector<std::string> Arguments(const CLI::App& app, int argc, char** argv) {
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == argv[1]; });
  const auto option_of = [&](const std::string& name) -> const CLI::Option* {
    if (commands.empty() || !name.starts_with("--")) return nullptr;
    return commands.front()->get_option_no_throw(name);
  };
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool empty = argument.ends_with('=');
    const std::string name = empty ? argument.substr(0, argument.size() - 1) : argument;
    const CLI::Option* const option = option_of(name);
    if (option != nullptr && empty) {
      if (IsSwitch(*option)) {
        throw fuselite::tools::CommandError(name + ": '' " + Wanted(*option, name), kUsageError);
      }
      arguments.insert(arguments.end(), {name, ""});
    } else if (option != nullptr && option->get_type_name() == "BOOLEAN" &&
               (i + 1 == argc || !ReadsAsBoolean(argv[i + 1]))) {
      arguments.push_back(name + "=true");
    } else {
      arguments.push_back(argument);
    }
  }
  std::ranges::reverse(arguments);
  return arguments;
}

// What stands on the command line and is no flag of the command. CLI11 lists it backwards.
std::string Unexpected(const CLI::App& app) {
  const CLI::App* command = app.get_subcommands().front();
  const std::vector<std::string> extras = command->remaining();
  const auto flag =
      std::ranges::find_if(extras, [](const std::string& extra) { return extra.starts_with("-"); });
  if (flag == extras.end()) return "'" + extras.front() + "' is one argument too many";
  const std::string given = flag->substr(0, flag->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  const size_t dashes = std::min(given.find_first_not_of('-'), given.size());
  const std::string nearest = Nearest(given.substr(dashes), names);
  return command->get_name() + " has no flag '" + given + "'; " +
         (nearest.empty() ? "fuselite " + command->get_name() + " --help lists them"
                          : "the nearest one is --" + nearest);
}

// CLI11 says "Could not convert: --num_runs = model.tflite" where a flag took what was meant for
// another.
std::string NotConverted(const CLI::App& app, const std::string& what) {
  const size_t name_at = what.find("--"), value_at = what.find(" = ");
  if (name_at == std::string::npos || value_at == std::string::npos) return what;
  const std::string name = what.substr(name_at, value_at - name_at);
  const CLI::Option* const option = app.get_subcommands().front()->get_option_no_throw(name);
  if (option == nullptr) return what;
  return name + ": '" + what.substr(value_at + 3) + "' " + Wanted(*option, name);
}

// What was printed may not have arrived.
int Flush(int exit_status) {
  std::cout.flush();
  return std::cout ? exit_status : Fail("standard output cannot be written", 1);
}

}  // namespace

int FuseliteCommandLine(int argc, char** argv) {
  using namespace fuselite::tools;
  Initialize();
  CLI::App app("Runs, measures, compares and explains .tflite models on the CPU.", "fuselite");
  app.set_version_flag("--version", fuselite::kVersion);
  app.require_subcommand(1);
  // This is benchmark_model's way: scripts append what they want to override.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddRunCommand(app);
  AddBenchmarkCommand(app);
  AddGenerateCommand(app);
  AddDiffCommand(app);
  AddExplainCommand(app);
  AddProfileCommand(app);
  AddAnalyzeCommand(app);
  AddInfoCommand(app);
  AddStressCommand(app);
  AddZooCommand(app);
  AddDemoCommand(app);
  AddCompletionCommand(app);
  try {
    CheckCommand(app, argc, argv);
    app.parse(Arguments(app, argc, argv));
  } catch (const CLI::CallForHelp& help) {
    return Flush(app.exit(help));
  } catch (const CLI::CallForAllHelp& help) {
    return Flush(app.exit(help));
  } catch (const CLI::CallForVersion& version) {
    return Flush(app.exit(version));
  } catch (const CLI::ExtrasError&) {
    return Fail(Unexpected(app), kUsageError);
  } catch (const CLI::ConversionError& error) {
    return Fail(NotConverted(app, error.what()), kUsageError);
  } catch (const CLI::RequiredError& error) {
    const std::string command = app.get_subcommands().front()->get_name();
    return Fail(command + ": " + error.what() + "; fuselite " + command + " --help says more",
                kUsageError);
  } catch (const CLI::ParseError& error) {
    return Fail(error.what(), kUsageError);
  } catch (const CommandError& error) {
    return Fail(error.what(), error.exit_status());
  } catch (const std::exception& error) {
    return Fail(error.what(), 1);
  }
  return Flush(0);
}
