// The tables of benchmark_model's op profile.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "interpreter/subgraph.h"
#include "partitioner/delegate_state.h"

namespace fuselite::tools {

// One node, or one step of a delegate's partition, over all runs.
struct OpTime {
  int subgraph = 0;
  std::string type;  // "CONV_2D", or what a step fuses: "CONV_2D + ADD"
  std::string name;
  std::string kernel = {};  // of a step
  double start_ms = 0;      // on average, after the run's start
  double first_ms = 0;
  double total_ms = 0, min_ms = 0, max_ms = 0;
  int64_t runs = 0;
  double average_ms() const { return runs ? total_ms / static_cast<double>(runs) : 0; }
};

// Nodes of the interpreter in the order in which they ran; the steps of a partition in the place of
// the node that stands for it. `state` may be null: no delegate. Its kernels have ended.
std::vector<OpTime> OpTimes(const std::vector<interpreter::NodeEvent>& events,
                            const partitioner::DelegateState* state);

// Prints them in the order of running, by time, and summed by type.
void PrintOpProfile(const std::vector<OpTime>& ops, std::ostream& out);
// The first table alone, as comma-separated values.
void PrintOpProfileCsv(const std::vector<OpTime>& ops, std::ostream& out);

}  // namespace fuselite::tools
