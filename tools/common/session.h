// A model opened to be run: the interpreter with or without the delegate.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "interpreter/interpreter.h"
#include "partitioner/delegate.h"
#include "runtime/support/status.h"
#include "tools/delegates/delegate_provider.h"
#include "tools/inputs/inputs.h"

namespace CLI {
class App;
}

namespace fuselite::tools {

// The delegates of one session, in the order in which they are applied.
struct SessionDelegates {
  std::vector<DelegatePtr> before{};
  const partitioner::Options* fuselite = nullptr;  // null: it is not applied
  std::vector<DelegatePtr> after{};
};

// The delegates that the command line asks for: fuselite with its options (--num_threads, --isa,
// ..., also as --fuselite_num_threads, ...), and those of the providers (tools/delegates).
struct DelegateFlags {
  std::map<std::string, std::string> values;  // of fuselite's options, only those that were given
  bool use_fuselite = true;
  std::vector<std::unique_ptr<DelegateProvider>> providers = MakeDelegateProviders();
  const CLI::App* command = nullptr;

  // One flag for each option of fuselite, those of TensorFlow Lite's tools, and the providers'. The
  // command outlives this object.
  void AddTo(CLI::App& to);
  // The flags of commands that apply no other delegates, and of those that cannot do without
  // fuselite, since it is what they are about.
  void AddFuseliteTo(CLI::App& to);
  void AddOptionsTo(CLI::App& to);
  // Where it is not given, `max_memory` is the machine's memory.
  Result<partitioner::Options> Parse() const;
  // The delegates in the order of the flags: fuselite where --use_fuselite stands, first where it
  // is not given. `options` outlive the result.
  Result<SessionDelegates> Create(const partitioner::Options& options) const;
  // Whether Create() gives any.
  bool AskForAny() const;
};

// What the host itself is asked for.
struct HostOptions {
  int num_threads = 0;  // what delegates are told; 0: no wish
  Budget budget{};
};
// What the delegate's options say of it.
HostOptions HostOf(const partitioner::Options& options);

// An allocated interpreter. Not to be moved apart: the delegate outlives its interpreter.
struct Session {
  std::vector<DelegatePtr> others;                    // applied before and after `delegate`
  std::unique_ptr<partitioner::Delegate> delegate;    // null: fuselite is not applied
  std::unique_ptr<interpreter::OpResolver> resolver;  // the interpreter's; null: the builtin one
  std::unique_ptr<interpreter::Interpreter> interpreter;
  Inputs inputs;        // what was asked for; the interpreter has their shapes
  std::string resized;  // Inputs::Resize()'s
  Status prepared;      // why not everything could be allocated, in sessions for an explanation
};

// Opens `model` with the delegates; with no delegate, the reference kernels run. The inputs have
// their shapes before a delegate sees them, or anything is prepared. `signature`: the key of the
// one to run; empty: the first subgraph.
Result<Session> OpenSession(std::shared_ptr<const interpreter::Model> model,
                            const HostOptions& host, SessionDelegates delegates,
                            const InputRequest& inputs = {}, const std::string& signature = "");

// Opens `model` with fuselite alone, in a host whose own operators compute nothing: the model need
// not be one that runs here, and is not to be invoked. Shapes of what the delegate leaves are those
// that the file states; where they keep its partitions from being prepared, the verdicts are there
// all the same.
Result<Session> OpenForExplanation(std::shared_ptr<const interpreter::Model> model,
                                   const partitioner::Options& options,
                                   const InputRequest& inputs = {},
                                   const std::string& signature = "");

// Nodes of a graph, how many the delegate took, in how many partitions, and the steps that
// these became.
struct DelegateCounts {
  int nodes = 0, claimed = 0, partitions = 0, steps = 0;
};
DelegateCounts CountDelegated(const partitioner::Delegate& delegate, int graph = 0);

}  // namespace fuselite::tools
