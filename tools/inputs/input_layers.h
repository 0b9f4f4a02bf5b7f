// benchmark_model's way of saying what the inputs are: --input_layer and its companions; and
// --shape, which says the same of one input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/support/status.h"

namespace CLI {
class App;
}

namespace fuselite::tools {

// The flags' values as they are typed; empty where not given.
struct InputLayerFlags {
  std::string names{};   // "a,b"
  std::string shapes{};  // of `names`, in order: "1,224,224,3:1,20"
  std::string ranges{};  // "a,0,255:b,-1,1", both ends included; "::" is a colon of a name
  std::string files{};   // "a:image.bin,b:x.npy"; "::" is a colon of a name; else than .npy and
                         // images, raw values
  std::vector<std::string> named_shapes{};  // "a:1,224,224,3", or "1,224,224,3" for the next input

  // Adds the flags that say shapes, or all flags. This object must outlive the command.
  void AddShapesTo(CLI::App& command);
  void AddTo(CLI::App& command);
};

// What the flags say of one input.
struct InputLayer {
  std::string name;  // empty: the input at `place`
  int place = -1;
  bool has_shape = false, has_range = false;
  std::vector<int32_t> shape{};
  double low = 0, high = 0;
  std::string file{};
};

// One entry for each input that the flags name. Errors name the flag.
Result<std::vector<InputLayer>> ParseInputLayers(const InputLayerFlags& flags);

}  // namespace fuselite::tools
