// Changes of a .tflite file's structure, which stays a FlatBuffer that can be read: what changes of
// bytes seldom give.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tests/kernels/random.h"

namespace fuselite::fuzz {

using kernels::testing::Random;

// `file` after `count` changes that `random` draws: of an operator, its options, operands or place,
// of a tensor's type, shape, quantization, buffer or part in the model, of a constant's bytes. What
// comes out may be wrong in any way that the format can express. Empty where `file` is no model.
std::vector<std::byte> ChangeModel(std::span<const std::byte> file, int count, Random& random);

// `first` with the operators of `second` behind its own, in one subgraph; inputs of the second are,
// here and there, outputs of the first. Empty where one of them is no model.
std::vector<std::byte> JoinModels(std::span<const std::byte> first,
                                  std::span<const std::byte> second, Random& random);

}  // namespace fuselite::fuzz
