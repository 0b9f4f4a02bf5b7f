// Reductions to few outputs: units reduce parts of the terms to totals, which are then joined.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/reduce/reduce.h"

namespace fuselite::kernels {

// The terms of each outer index in parts of whole rows, the outermost of what is reduced. Threads
// then read the rows that they wrote in the step before: sharing lanes instead, they moved half of
// the values from one core to the other, and the MUL of a squeeze-and-excitation block moved them
// back. The parts depend on the shape alone, and so do a float's bits.
struct ReducedParts {
  ReducePlan part, last;  // of one outer index
  int64_t count = 1;      // of an outer index
  int64_t step = 0;       // elements of the input from the beginning of a part to the next one's

  const ReducePlan& Plan(int64_t index) const { return index + 1 < count ? part : last; }
};

// Parts of about `elements` elements; nullopt where there are fewer than two, or outer indices
// enough to be shared.
std::optional<ReducedParts> DivideTerms(const ReducePlan& plan, int64_t elements);

struct ReduceFunctions {
  // Reduces one part, which begins at element `at` of the input, to `totals`.
  std::function<void(const KernelArgs& args, const ReducePlan& part, int64_t at, std::byte* totals)>
      reduce;
  // Joins the totals of outer index `outer`'s parts, one part's behind the other's, to its outputs.
  std::function<void(const KernelArgs& args, const std::byte* totals, int64_t outer)> join;
};

// `totals_bytes`: of one part's totals. `grain`: of parts.
std::unique_ptr<Kernel> MakeReduceInParts(std::string name, const ReducePlan& plan,
                                          ReducedParts parts, int64_t totals_bytes, int64_t grain,
                                          ReduceFunctions functions);

}  // namespace fuselite::kernels
