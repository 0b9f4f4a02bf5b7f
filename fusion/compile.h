// From a partition's graph to something that runs: the rewrites, the choice of kernels, the memory
// plan, and a record of every decision.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusion/batch.h"
#include "fusion/graph/graph.h"
#include "fusion/planner.h"
#include "fusion/rewrite.h"
#include "fusion/strip_limits.h"
#include "runtime/execution/executable.h"
#include "runtime/memory/budget.h"
#include "runtime/weights/weights_cache.h"

namespace fuselite::fusion {

struct CompileOptions {
  Isa isa = Isa::kScalar;
  bool jit = true;
  bool fusion = true;
  kernels::Precision precision = kernels::Precision::kDefault;
  int threads = 1;
  int64_t constant_bytes = 0;  // PlanContext's
  Budget budget;
  PackedStore* store = nullptr;      // null: the process's
  ConstantHashes* hashes = nullptr;  // null: each compilation hashes what it packs
  CacheOptions cache;
  BatchLimits batch;   // what is computed in parts, with fusion
  StripLimits strips;  // what several threads compute in strips of rows, with fusion
};

// One step as `fuselite explain` shows it.
struct StepReport {
  std::string kernel;           // Kernel::name()
  std::string candidate;        // which of the list
  std::vector<int> host_nodes;  // what it fuses
  std::string ops;              // "CONV_2D + relu6 + add"
  std::string tail;             // Tail::ToString()
  std::string output_shape;
  double multiply_adds = 0;                  // OperatorDef::cost
  std::vector<DataType> input_types;         // of the operator's own operands, constants too
  size_t weight_bytes = 0, input_bytes = 0;  // constants; what other steps or the host computed
  size_t arena_offset = 0, output_bytes = 0;
  std::string placement;  // "arena", "output 0", "inside value 12"
  std::vector<Refusal> refusals;
  // Of a step that computes strips of rows: those that make a strip. Their multiply-adds, like its
  // own, and the bytes of their values are those of all strips together.
  std::vector<StepReport> steps;
};

// Where the time of compiling went, in milliseconds.
struct CompileTimes {
  double rewrites = 0;   // with the plans that they asked for
  double placement = 0;  // of values in each other's memory
  double packing = 0;    // of weights, with what was read and written of the cache
  double kernels = 0;    // what else makes a kernel of its plan: code that is emitted, tables
  double memory = 0;     // the arena, and which steps wait for which

  CompileTimes& operator+=(const CompileTimes& more);
};

struct CompileReport {
  CompileTimes times;
  std::vector<StepReport> steps;
  std::vector<RewriteRecord> rewrites;
  size_t arena_bytes = 0;  // of each thread where a batch is computed in parts
  // The parts in which a batch is computed, each by all steps: 1 where it is computed whole. Shapes
  // are a part's, the steps' multiply-adds and bytes the batch's.
  int batch_parts = 1;
  std::vector<CacheReport> caches;  // none where nothing is cached

  // Adds the report of a graph that runs after this one.
  CompileReport& operator+=(const CompileReport& more);
};

// A planner for the kernels that these options ask for.
Planner PlannerFor(const CompileOptions& options);

// Consumes the graph. Inputs and outputs of the Executable are graph.inputs and graph.outputs in
// order. `report` may be null. `planner`, if any, is PlannerFor(options) and may know the graph's
// operations already. A graph beyond options.budget is refused before anything is packed, and one
// whose executable is, before its memory is taken.
Result<std::shared_ptr<const Executable>> Compile(Graph graph, const CompileOptions& options,
                                                  CompileReport* report,
                                                  Planner* planner = nullptr);

}  // namespace fuselite::fusion
