// What a user may ask of the delegate, in one table: the strings of an external delegate, the
// environment and the C struct all end here.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/operator.h"
#include "runtime/cpu/isa.h"
#include "runtime/memory/budget.h"
#include "runtime/support/status.h"
#include "runtime/weights/weights_cache.h"

namespace fuselite::partitioner {

inline constexpr const char* kDelegateName = "FuseliteDelegate";

// The most threads that a run may have.
inline constexpr int kMaxThreads = 1024;

struct Options {
  int num_threads = 0;     // 0: what the host recommends, else the physical cores allowed
  Isa isa = Isa::kScalar;  // the best level that this machine can run, up to the one asked for
  bool jit = true;
  bool fusion = true;
  kernels::Precision precision = kernels::Precision::kDefault;
  int max_partitions = 0;           // 0: no limit
  int min_nodes_per_partition = 1;  // a partition that is the whole graph is always taken
  std::vector<std::string> ops_deny;
  Budget budget;  // of each partition
  CacheOptions cache;
  bool verbose = false;
  std::string explain_file;  // empty: none
  std::string profile_file;
  // What the host calls the delegate's nodes; an option of the C interface only.
  std::string node_name = kDelegateName;
  // No option of users: it keeps the steps' times for DelegateState::Profile().
  bool keep_profile = false;
  // Nor this one: keep every event of every thread for DelegateState::Events().
  bool keep_events = false;
};

// One option. Each is also read from the environment variable EnvironmentName(name)
// (runtime/support/environment.h).
struct OptionRow {
  std::string_view name;           // "num_threads"
  std::string_view values;         // what is accepted: "a whole number from 0 to 1024"
  std::string_view default_value;  // as one would write it
  std::string_view doc;            // one line
  // Sets the option, or says what is wrong with the value (not naming the option).
  Status (*parse)(std::string_view value, Options& options);
};

std::span<const OptionRow> OptionTable();

using KeyValue = std::pair<std::string_view, std::string_view>;
// The value of an environment variable, or null.
using ReadVariable = std::function<const char*(const char* name)>;

// Defaults, then the environment (an empty variable counts as unset), then `given`. An unknown key
// or a bad value is an error of one line that names it and the nearest valid one, or all where none
// is near.
Result<Options> ParseOptions(std::span<const KeyValue> given, const ReadVariable& variable);
// Reads the environment of the process, too.
Result<Options> ParseOptions(std::span<const KeyValue> given);

// What this machine has of `cap`. kUnsupported for another architecture's.
Result<Isa> CapIsa(Isa cap);

// The candidate with the smallest edit distance to `word`, in which case does not count and an
// exchange of two neighbours is one edit; empty where all are more edits away than half the letters
// of `word`.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace fuselite::partitioner
