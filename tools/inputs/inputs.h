// What a command line says of a model's inputs: shapes, files, ranges of random values.
#pragma once

#include <string>
#include <vector>

#include "interpreter/interpreter.h"
#include "runtime/support/status.h"
#include "tools/inputs/input_layers.h"
#include "tools/inputs/npy.h"

namespace fuselite::tools {

// How --input is described.
inline constexpr const char* kInputHelp =
    "FILE for the next input, NAME=FILE for that one: .npy, or an image (.jpg, .png, .bmp), which "
    "is "
    "stretched to the input's size and lies in [-1, 1], or --input_layer_value_range, where it is "
    "float; other inputs are random";

// The flags' values: of the --input_layer family, and of --input. "FILE" is for the next input,
// "NAME=FILE" for the one of that name (a tensor's, or an input's of the signature); files are .npy
// or images (tools/inputs/image.h).
struct InputRequest {
  std::vector<InputLayer> layers{};
  std::vector<std::string> files{};
};

// What an InputRequest names, read and matched with a model's inputs.
class Inputs {
 public:
  // Errors name the inputs that there are, what they are and what they were to be.
  static Result<Inputs> Read(const interpreter::Interpreter& interpreter,
                             const InputRequest& request);

  // Gives the inputs their shapes; AllocateTensors() must follow. The result says what changed, for
  // messages; it is empty where nothing did.
  Result<std::string> Resize(interpreter::Interpreter& interpreter) const;

  // Files and values within ranges where they were asked for, FillRandom() elsewhere.
  Status Fill(interpreter::Interpreter& interpreter, uint64_t seed) const;

 private:
  struct File {
    int place = 0;
    std::string path;
    Array array;
  };

  std::vector<InputLayer> layers_;  // with their places
  std::vector<File> files_;
};

// "input 'image' is float32 [-1,224,224,3]", with -1 where a dimension may change.
std::string DescribeInput(const interpreter::TensorView& tensor);

}  // namespace fuselite::tools
