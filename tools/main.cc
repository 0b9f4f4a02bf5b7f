// fuselite: the command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "runtime/version.h"
#include "tools/commands/commands.h"

namespace {

constexpr int kUsageError = 2;

int Fail(const char* what, int exit_status) {
  std::fprintf(stderr, "fuselite: %s\n", what);
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace fuselite::tools;
  CLI::App app("Runs, measures, compares and explains .tflite models on the CPU.", "fuselite");
  app.set_version_flag("--version", fuselite::kVersion);
  app.require_subcommand(1);
  AddRunCommand(app);
  AddBenchmarkCommand(app);
  AddDiffCommand(app);
  AddExplainCommand(app);
  AddInfoCommand(app);
  AddZooCommand(app);
  AddDemoCommand(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return Fail(error.what(), kUsageError);
  } catch (const CommandError& error) {
    return Fail(error.what(), error.exit_status());
  } catch (const std::exception& error) {
    return Fail(error.what(), 1);
  }
  return 0;
}
