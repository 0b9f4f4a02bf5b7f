// What became of a model: the verdict on each node, and what each partition was compiled to.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fusion/compile.h"
#include "partitioner/claim/verdict.h"
#include "partitioner/options.h"
#include "runtime/support/text_table.h"

namespace fuselite::partitioner {

struct PartitionReport {
  std::vector<int> nodes;  // the host's
  double cost = 0;
  bool compiled = false;  // false until the host has prepared it
  std::string error;      // why it could not be compiled, where the host has tried
  int threads = 0;
  double compile_ms = 0;
  // The nodes whose outputs' shapes depend on values. `report` has what the last shapes led to.
  std::vector<int> waiting_nodes;
  // The nodes whose subgraphs the host's kernel runs inside the partition: loops turn by turn,
  // unless the body's partition computes several turns in one call.
  std::vector<int> host_run_nodes;
  // The nodes behind waiting nodes, and these themselves, that no run has yet shown the shapes of.
  std::vector<int> later_nodes;
  // The reports of all segments in one, as WithReports() leaves it; until then `segments` has them.
  fusion::CompileReport report;
  std::vector<std::shared_ptr<const fusion::CompileReport>> segments;
};

// One graph of the model: the main one, or what control flow runs.
struct GraphReport {
  int number = 0;  // the graphs that the host showed before it
  std::vector<Verdict> verdicts;
  std::vector<PartitionReport> partitions;
  double judge_ms = 0;  // reading the nodes, verdicts, partitions and their graphs
  std::string error;    // why nothing could be taken, where something went wrong
};

// The report of each partition out of those of its segments.
GraphReport WithReports(GraphReport graph);

// The nodes of a compiled partition that nothing else in its report names: other steps compute
// them, too, or nobody reads what they give.
std::vector<int> NodesWithoutStep(const PartitionReport& partition);

struct Explanation {
  Options options;
  std::vector<GraphReport> graphs;

  // The graph of that GraphReport::number; null where the host did not show it, or it has died.
  const GraphReport* Find(int number) const {
    const auto found = std::ranges::find(graphs, number, &GraphReport::number);
    return found == graphs.end() ? nullptr : &*found;
  }
};

// Where the time of opening went: a row for each part, over all graphs.
TextTable OpeningTimes(const Explanation& explanation);

std::string ToText(const Explanation& explanation);
std::string ToJson(const Explanation& explanation);
// One node a step and one a host node that was not claimed, in running order.
std::string ToDot(const Explanation& explanation);

// In the form that the name's ending asks for: .json, .dot, text otherwise.
Status WriteExplanation(const Explanation& explanation, const std::string& path);

}  // namespace fuselite::partitioner
