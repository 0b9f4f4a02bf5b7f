// Strips: nodes that compute row by row, made one that computes some rows at a time.
//
// Threads that share each of several small steps wait for each other as long as they compute, and
// read from another core's cache what it wrote of the step before. A thread that takes some rows
// through all of the steps does neither.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "fusion/graph/graph.h"
#include "fusion/plan/run_of_rows.h"
#include "fusion/plan/storage.h"
#include "fusion/rewrite.h"

namespace fuselite::fusion {

// What a node of the operator FUSELITE_STRIPS computes.
struct Strips {
  // `count` strips of `rows` rows each, of which the graph computes one: its inputs and outputs are
  // the node's, of so many rows.
  struct Part {
    Graph graph;
    RunOfRows::Cut cut;
  };
  std::vector<Part> parts;  // one behind the other, they make all rows
  // The bytes of a row of each input and output of the node; 0: all strips read the whole input.
  std::vector<size_t> input_rows, output_rows;
};

// Puts one node in the place of nodes that `threads` threads compute faster in strips, to the same
// bits: products of floats are not among them. To be called when rewrites are done and values are
// placed, which stay where `plan` has them.
std::map<NodeId, Strips> MakeStrips(Graph& graph, const StoragePlan& plan,
                                    const StripLimits& limits, int threads,
                                    RewriteContext& context);

}  // namespace fuselite::fusion
