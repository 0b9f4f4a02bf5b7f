// The subcommands of `fuselite`, one file each.
//
// Each function adds its subcommand with its options to the application. When the command line is
// parsed, the chosen one runs and leaves by returning, or by throwing CommandError.
#pragma once

#include <stdexcept>
#include <string>

#include "runtime/support/status.h"

namespace CLI {
class App;
}

namespace fuselite::tools {

// Ends the program: one line on standard error, exit status 1 (2: wrong usage).
class CommandError : public std::runtime_error {
 public:
  explicit CommandError(const std::string& what, int exit_status = 1)
      : std::runtime_error(what), exit_status_(exit_status) {}
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

// Throws CommandError for an error.
inline void Check(const Status& status) {
  if (!status.ok()) throw CommandError(status.message());
}
template <class T>
T Check(Result<T> result) {
  if (!result.ok()) throw CommandError(result.status().message());
  return std::move(result).value();
}
// Throws CommandError for an error; the message begins with what it is about.
template <class T>
T Check(Result<T> result, const std::string& where) {
  if (!result.ok()) throw CommandError(result.status().In(where).message());
  return std::move(result).value();
}
// Throws CommandError, with exit status 2, for what the command line itself says wrongly.
inline void CheckUsage(const Status& status) {
  if (!status.ok()) throw CommandError(status.message(), 2);
}
template <class T>
T CheckUsage(Result<T> result) {
  if (!result.ok()) throw CommandError(result.status().message(), 2);
  return std::move(result).value();
}

void AddAnalyzeCommand(CLI::App& app);
void AddBenchmarkCommand(CLI::App& app);
void AddCompletionCommand(CLI::App& app);
void AddDemoCommand(CLI::App& app);
void AddDiffCommand(CLI::App& app);
void AddExplainCommand(CLI::App& app);
void AddGenerateCommand(CLI::App& app);
void AddInfoCommand(CLI::App& app);
void AddProfileCommand(CLI::App& app);
void AddRunCommand(CLI::App& app);
void AddStressCommand(CLI::App& app);
void AddZooCommand(CLI::App& app);

}  // namespace fuselite::tools
