// Custom operators that deployed models carry: found by the name in the file, with parameters in
// bytes of a form of their own.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/operator.h"

namespace fuselite::kernels {

struct CustomOperator {
  const OperatorDef* op;  // its name is the one in files
  // Reads the options into the operator's parameters. kInvalidArgument where they make no sense.
  Status (*read_options)(std::span<const std::byte> options, void* params);
};

std::span<const CustomOperator> AllCustomOperators();
// nullptr where there is none.
const CustomOperator* FindCustomOperator(std::string_view name);

}  // namespace fuselite::kernels
