// The forms in which converters deliver float networks, for networks of the zoo.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fuselite::tools {

enum class Form {
  kInt8,          // integers throughout: weights by channel, biases in int32
  kInt16,         // likewise, with values of 16 bits and biases in int64
  kUint8,         // the older form: one scale for all weights of a layer
  kDynamicRange,  // int8 weights of layers, everything else as it was
  kFloat16,       // weights and biases in float16, behind DEQUANTIZE
};

// The file of a network of one subgraph in another form; `network` is a file of the zoo, all of
// whose values are float32. The ranges of integers are those of one run on noise between -1 and 1,
// computed here by the reference kernels; scales and zero points as TensorFlow Lite's 8-bit
// quantization specification has them. Integers end before a last SOFTMAX, whose steps of 1/256
// would make zeros of a thousand probabilities. Throws std::logic_error where `network` is not such
// a file.
std::vector<std::byte> Rewrite(std::span<const std::byte> network, Form form);

}  // namespace fuselite::tools
