// What `fuselite stress` does to the delegate: each scenario runs in a process of its own, and
// returns an error where a result was wrong or something did not happen that must.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/interpreter.h"
#include "partitioner/options.h"
#include "runtime/support/status.h"
#include "tools/common/session.h"

namespace fuselite::tools {

struct StressContext {
  std::shared_ptr<const interpreter::Model> model;
  partitioner::Options options;  // with the CPU cap
  int rounds = 100;              // how often what is repeated is repeated
  uint64_t seed = 0;
};

struct Scenario {
  std::string_view name;
  std::string_view what;  // one line for people
  Status (*run)(const StressContext& context);
};

// What interpreters go through: made, resized, run side by side, destroyed, forked.
std::span<const Scenario> LifecycleScenarios();
// What the process around them does: memory, threads, signals, stack, floating-point state.
std::span<const Scenario> SurroundingScenarios();
// What becomes of the folder in which packed weights are kept.
std::span<const Scenario> CacheScenarios();

// An interpreter with the delegate. `batch`: of the first dimension of every input, where not 0.
Result<Session> OpenSubject(const StressContext& context, int batch = 0);
// Whether the model keeps values from run to run that Interpreter::ResetVariables() leaves as they
// are.
bool HasResourceVariables(const interpreter::Model& model);
// To be called before each run but a session's first: one whose model has resource variables is
// opened anew, so that these have their first values again.
Status Restart(const StressContext& context, Session& session);
// Random inputs and fresh variable tensors, for a run.
Status PrepareRun(const Session& session, uint64_t seed);
// The bytes of all outputs, one after the other.
std::string OutputBytes(const Session& session);
// The outputs of one run that was prepared so.
Result<std::string> RunSubject(const Session& session, uint64_t seed);
// RunSubject() of a session that may have run before.
Result<std::string> RunAgain(const StressContext& context, Session& session);
// What a fresh interpreter gives: whatever is done to others, they must give the same bytes.
Result<std::string> ExpectedOutputs(const StressContext& context, int batch = 0);
// An error that says `when` it happened, where the bytes differ.
Status CheckOutputs(const Result<std::string>& actual, const std::string& expected,
                    std::string_view when);

// The outputs as values, for where other kernels may take over, whose floats differ in their last
// bits: of a fresh interpreter, and of the reference kernels.
using Outputs = std::vector<Array>;
Result<Outputs> FreshOutputs(const StressContext& context);
Result<Outputs> ReferenceOutputs(const StressContext& context);
// An error where they are not within the bounds of the types (DefaultTolerance).
Status CheckNear(const StressContext& context, const Outputs& actual, const Outputs& expected);

}  // namespace fuselite::tools
