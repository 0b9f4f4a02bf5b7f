// benchmark_model's way of saying what the inputs are: --input_layer and its companions.
#pragma once

#include <string>
#include <vector>

#include "interpreter/interpreter.h"
#include "runtime/status.h"

namespace fuselite::tools {

// The flags' values as they are typed; empty where not given.
struct InputLayerFlags {
  std::string names;   // "a,b"
  std::string shapes;  // of `names`, in order: "1,224,224,3:1,20"
  std::string ranges;  // "a,0,255:b,-1,1", both ends included
  std::string files;   // "a:image.bin,b:x.npy"; "::" is a colon of a name; anything but .npy is raw
};

// What they say of one input.
struct InputLayer {
  std::string name;
  bool has_shape = false, has_range = false;
  std::vector<int32_t> shape{};
  double low = 0, high = 0;
  std::string file{};
};

// One entry for each name. Errors name the flag.
Result<std::vector<InputLayer>> ParseInputLayers(const InputLayerFlags& flags);

// Resizes the inputs, then fills those with a range or a file; the others stay as they are, or
// where anything was resized, become random.
Status ApplyInputLayers(interpreter::Interpreter& interpreter,
                        const std::vector<InputLayer>& layers, uint64_t seed);

}  // namespace fuselite::tools
