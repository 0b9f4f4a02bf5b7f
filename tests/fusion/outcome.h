// What graphs compute with and without fusion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusion/compile.h"
#include "fusion/graph/graph.h"
#include "fusion/rewrite.h"

namespace fuselite::fusion::testing {

struct Outcome {
  Status status;  // of the run
  CompileReport report;
  std::vector<std::vector<float>> outputs;  // and then the variables

  // The steps' StepReport::ops: "CONV_2D + relu6".
  std::vector<std::string> ops() const;
};

// Compiles, and runs on inputs that follow from `seed`: with fusion twice, which shall give the
// same. Integers come back as floats of the same value, 16-bit floats and bools as their bytes.
Outcome RunGraph(const Graph& graph, CompileOptions options, uint64_t seed = 7);

// The best ISA that the machine runs, one thread.
CompileOptions Fused();
// As Fused(), but each node is a step of its own.
CompileOptions Unfused();

// What the rewrites record when they are run on `graph`, which they change.
std::vector<RewriteRecord> RecordsOf(Graph& graph, const CompileOptions& options);

// |difference| <= tolerance * max(1, |expected|) + roundings; 0 and 0 demand the same bits.
void ExpectClose(const std::vector<std::vector<float>>& expected,
                 const std::vector<std::vector<float>>& actual, float tolerance,
                 float roundings = 0);

// Runs both ways and compares. Returns the fused outcome.
Outcome ExpectSameFused(const Graph& graph, float tolerance);
// As ExpectSameFused(), for a graph whose values may grow to any size, and then cancel: what is
// left of them has the roundings of the largest value that the graph computes.
Outcome ExpectSameFusedAtAnySize(const Graph& graph, float tolerance);
// As ExpectSameFused(), also for each graph that differs from this one in one place (neighbours.h);
// those that say the same in other words take as many steps.
Outcome ExpectFusedEqualsUnfused(const Graph& graph, float tolerance);

}  // namespace fuselite::fusion::testing
