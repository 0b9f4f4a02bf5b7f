// What people call TensorFlow Lite's builtin operators, also those that nobody here computes.
#pragma once

#include <string>

namespace fuselite::partitioner {

// "CONV_2D"; "operator 321" for a code that is not known.
std::string BuiltinName(int builtin_code);

}  // namespace fuselite::partitioner
