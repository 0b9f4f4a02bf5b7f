// A run's events in the form that chrome://tracing and https://ui.perfetto.dev open.
#pragma once

#include <string>
#include <vector>

#include "interpreter/subgraph.h"
#include "partitioner/report/run_profile.h"

namespace fuselite::tools {

// The Trace Event Format's JSON: a row for the interpreter's nodes and one for each thread of the
// delegate, a complete event ("ph": "X") for each node, and for each step and thread. Times are in
// microseconds from the first event.
std::string ChromeTrace(const std::vector<interpreter::NodeEvent>& nodes,
                        const std::vector<partitioner::PartitionEvents>& partitions);

}  // namespace fuselite::tools
