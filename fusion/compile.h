// From a partition's graph to something that runs: the rewrites, the choice of kernels, the memory
// plan, and a record of every decision.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusion/graph.h"
#include "runtime/executable.h"

namespace fuselite::fusion {

struct CompileOptions {
  Isa isa = Isa::kScalar;
  bool jit = true;
  bool fusion = true;
  kernels::Precision precision = kernels::Precision::kDefault;
  int threads = 1;
  PackedStore* store = nullptr;  // null: the process's
};

// A candidate that was asked and refused.
struct Refusal {
  std::string candidate;  // "jit"
  std::string reason;
};

// One step as `fuselite explain` shows it.
struct StepReport {
  std::string kernel;           // Kernel::name()
  std::string candidate;        // which of the list
  std::vector<int> host_nodes;  // what it fuses
  std::string ops;              // "CONV_2D + clamp(0, 6)"
  std::string tail;             // Tail::ToString()
  std::string output_shape;
  double multiply_adds = 0;  // OperatorDef::cost
  size_t weight_bytes = 0;
  size_t arena_offset = 0, output_bytes = 0;
  std::string placement;  // "arena", "output 0", "inside value 12"
  std::vector<Refusal> refusals;
};

struct CompileReport {
  std::vector<StepReport> steps;
  std::vector<std::string> rewrites;  // "fold pad into convolution: nodes 3, 4"
  size_t arena_bytes = 0;
};

// The first candidate of the node's lists (JIT, Highway, reference) that accepts. Never fails on
// what kernels::Infer accepted: the reference takes everything. Refusals are appended to `refusals`
// when it is not null.
Result<std::unique_ptr<Kernel>> SelectKernel(const kernels::OpDescription& op,
                                             const kernels::BuildContext& context, bool jit,
                                             std::string* candidate,
                                             std::vector<Refusal>* refusals);

// Consumes the graph. Inputs and outputs of the Executable are graph.inputs and graph.outputs in
// order. `report` may be null.
Result<std::shared_ptr<const Executable>> Compile(Graph graph, const CompileOptions& options,
                                                  CompileReport* report);

}  // namespace fuselite::fusion
