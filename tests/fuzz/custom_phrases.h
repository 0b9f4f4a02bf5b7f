// Custom operators in a model, and weights that are quantized in blocks.
#pragma once

#include <vector>

#include "interpreter/file/writer.h"
#include "tests/kernels/random.h"

namespace fuselite::fuzz {

// Adds some of them to the writer's current subgraph, with options that are mostly right. Gives the
// new tensors that somebody may read, and puts those that the caller gives into `inputs`.
std::vector<int> AddCustomPhrase(interpreter::ModelWriter& writer, kernels::testing::Random& random,
                                 std::vector<int>& inputs);

}  // namespace fuselite::fuzz
