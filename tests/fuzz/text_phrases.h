// Strings in a model, and the operators that the interpreter alone has for them.
#pragma once

#include <vector>

#include "interpreter/file/writer.h"
#include "tests/kernels/random.h"

namespace fuselite::fuzz {

// Adds one of them to the writer's current subgraph, on strings that are inputs or constants. Gives
// the new tensors that somebody may read, and puts those that the caller gives into `inputs`.
std::vector<int> AddTextPhrase(interpreter::ModelWriter& writer, kernels::testing::Random& random,
                               std::vector<int>& inputs);

// A string table of `strings`.
std::vector<std::byte> TextTable(const std::vector<std::string>& strings);

}  // namespace fuselite::fuzz
