// Composites that the converters of PyTorch and JAX models write, known by name: which operator
// computes one in a single step. Any other composite is what its decomposition says.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/operator.h"

namespace fuselite::kernels {

struct NamedComposite {
  std::string_view name;  // in files
  const OperatorDef* op;  // takes the composite's operands as they come
  int max_inputs;         // more of them mean what the operator does not do
  // Reads the attributes, a map of FlexBuffers or nothing, into the operator's parameters.
  // kUnsupported where one says what the operator does not do.
  Status (*read_attributes)(std::span<const std::byte> attributes, void* params);
};

std::span<const NamedComposite> AllComposites();
// nullptr where there is none.
const NamedComposite* FindComposite(std::string_view name);

}  // namespace fuselite::kernels
