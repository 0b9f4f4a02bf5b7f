#include "tools/inputs/inputs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>

#include "runtime/support/status_join.h"
#include "runtime/support/text_table.h"
#include "tools/inputs/files.h"
#include "tools/inputs/image.h"
#include "tools/inputs/tensors.h"

namespace fuselite::tools {
namespace {

std::string InputNames(const interpreter::Interpreter& interpreter) {
  std::string names;
  for (size_t i = 0; i < interpreter.inputs().size(); ++i) {
    names += (i ? ", " : "") + ShortName(interpreter.input(static_cast<int>(i)).name);
  }
  return names;
}

// The place of the input of that name: a tensor's, or an input's of the signature.
Result<int> FindInput(const interpreter::Interpreter& interpreter, const std::string& name) {
  int tensor = interpreter.FindTensor(name);
  if (tensor < 0 && interpreter.main_signature() != nullptr) {
    tensor = interpreter::Interpreter::FindInput(*interpreter.main_signature(), name);
  }
  const auto inputs = interpreter.inputs();
  const auto place = std::ranges::find(inputs, tensor);
  if (place != inputs.end()) return static_cast<int>(place - inputs.begin());
  return NotFound("the model has no input '", name, "'; it has ", InputNames(interpreter));
}

// Whether the file lets the input have this shape: dimensions that it calls fixed may differ too,
// as hosts allow it (another batch), but not their number.
bool MayHave(const interpreter::TensorView& tensor, const Shape& shape) {
  if (tensor.shape.rank() != 0 && tensor.shape.rank() != shape.rank()) return false;
  const std::vector<int32_t>& signature = tensor.shape_signature;
  if (static_cast<int>(signature.size()) != shape.rank()) return true;
  for (int d = 0; d < shape.rank(); ++d) {
    if (signature[d] >= 0 && signature[d] != shape[d]) return false;
  }
  return true;
}

// "float32 [-1,224,224,3]", with -1 where a dimension may change.
std::string TypeAndShape(const interpreter::TensorView& tensor) {
  std::ostringstream text;
  text << DataTypeName(tensor.type) << ' ';
  if (tensor.shape_signature.empty()) {
    text << tensor.shape;
    return text.str();
  }
  char separator = '[';
  for (const int32_t dim : tensor.shape_signature) {
    text << separator << dim;
    separator = ',';
  }
  text << ']';
  return text.str();
}

// A shape that an input is to have, and what asks for it.
struct InputShape {
  int place;
  Shape shape;
  std::string source;  // "--shape [1,2]", "x.npy, which is [1,2],"
};

// "input 'image', which is float32 [-1,224,224,3]", before it is given a shape.
std::string InputWithShape(const interpreter::TensorView& tensor) {
  return internal::Join("input '", tensor.name, "', which is ", TypeAndShape(tensor));
}

Result<std::string> ResizeInputs(interpreter::Interpreter& interpreter,
                                 const std::vector<InputShape>& shapes) {
  std::string changes;
  for (const InputShape& given : shapes) {
    const interpreter::TensorView tensor = interpreter.input(given.place);
    if (tensor.shape == given.shape) continue;
    const std::string input = InputWithShape(tensor);
    const std::string mismatch = internal::Join(given.source, " does not fit ", input);
    if (!MayHave(tensor, given.shape)) return InvalidArgument(mismatch);
    const Status status = interpreter.ResizeInput(given.place, given.shape.dims());
    if (!status.ok()) return InvalidArgument(mismatch, ": ", status.message());
    changes += internal::Join(changes.empty() ? "with " : " and ", given.source, " for ", input);
  }
  return changes;
}

Result<Array> ReadRaw(const std::string& path, const interpreter::TensorView& tensor) {
  FUSELITE_ASSIGN_OR_RETURN(std::ifstream file, OpenForReading(path));
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || bytes.size() != tensor.bytes) {
    return InvalidArgument(path, ": has ", bytes.size(), " bytes, but ", DescribeInput(tensor),
                           ": ", tensor.bytes, " bytes");
  }
  Array array{tensor.type, tensor.shape, std::vector<std::byte>(bytes.size())};
  if (!bytes.empty()) std::memcpy(array.bytes.data(), bytes.data(), bytes.size());
  return array;
}

// Where "NAME=FILE" is divided: behind the longest name that an input has. npos: all of it is a
// file's path, which may have an equals sign itself.
size_t EndOfName(const interpreter::Interpreter& interpreter, const std::string& text) {
  for (size_t at = text.size(); at > 0 && (at = text.rfind('=', at - 1)) != std::string::npos;) {
    if (FindInput(interpreter, text.substr(0, at)).ok()) return at;
  }
  std::error_code error;
  return std::filesystem::exists(text, error) ? std::string::npos : text.rfind('=');
}

// The place of "NAME=FILE.npy", or the next one.
Result<int> PlaceOf(const interpreter::Interpreter& interpreter, const std::string& text,
                    size_t equals, int& next) {
  if (equals != std::string::npos) return FindInput(interpreter, text.substr(0, equals));
  if (next >= static_cast<int>(interpreter.inputs().size())) {
    return InvalidArgument(text, ": one input too many; the model has ", InputNames(interpreter));
  }
  return next++;
}

// What has a header of its own that tells its shape; other files are raw values.
bool IsArrayFile(const std::string& path) { return path.ends_with(".npy") || IsImageName(path); }

// `layer` is what else is said of the input; null: nothing.
Result<Array> ReadArrayFile(const std::string& path, const interpreter::TensorView& tensor,
                            const InputLayer* layer) {
  if (!IsImageName(path)) return ReadNpy(path);
  ImageRequest request{tensor.type, tensor.shape_signature};
  if (request.shape.empty()) {
    request.shape.assign(tensor.shape.dims().begin(), tensor.shape.dims().end());
  }
  if (layer != nullptr && layer->has_shape) request.shape = layer->shape;
  if (layer != nullptr && layer->has_range) {
    request.low = layer->low;
    request.high = layer->high;
  }
  Result<Array> array = ReadImage(path, request);
  if (!array.ok()) return InvalidArgument(array.status().message(), "; ", DescribeInput(tensor));
  return array;
}

// A file with a header decides its input's shape: what the flags say must be the same.
Status CheckShape(const std::string& path, const Shape& shape, int place,
                  const std::vector<InputLayer>& layers) {
  for (const InputLayer& layer : layers) {
    if (layer.place != place || !layer.has_shape) continue;
    const Shape given = *Shape::FromDims(layer.shape);
    if (given == shape) continue;
    return InvalidArgument(path, ", which is ", shape, ", does not fit the shape ", given,
                           " that a flag gives its input; leave one of them out");
  }
  return Status();
}

}  // namespace

std::string DescribeInput(const interpreter::TensorView& tensor) {
  return internal::Join("input '", tensor.name, "' is ", TypeAndShape(tensor));
}

Result<Inputs> Inputs::Read(const interpreter::Interpreter& interpreter,
                            const InputRequest& request) {
  Inputs inputs;
  inputs.layers_ = request.layers;
  std::set<int> shaped;
  for (InputLayer& layer : inputs.layers_) {
    if (!layer.name.empty()) {
      FUSELITE_ASSIGN_OR_RETURN(layer.place, FindInput(interpreter, layer.name));
    } else if (layer.place >= static_cast<int>(interpreter.inputs().size())) {
      return InvalidArgument("--shape: one shape too many; the model has ",
                             InputNames(interpreter));
    }
    if (layer.has_shape && !shaped.insert(layer.place).second) {
      return InvalidArgument("input '", interpreter.input(layer.place).name,
                             "' is given two shapes");
    }
  }
  std::vector<std::string> files = request.files;
  for (const InputLayer& layer : inputs.layers_) {
    if (IsArrayFile(layer.file)) files.push_back(layer.name + "=" + layer.file);
  }
  int next = 0;
  for (const std::string& text : files) {
    const size_t equals = EndOfName(interpreter, text);
    File file;
    file.path = equals == std::string::npos ? text : text.substr(equals + 1);
    if (file.path.empty()) return InvalidArgument("--input '", text, "' names no file");
    FUSELITE_ASSIGN_OR_RETURN(file.place, PlaceOf(interpreter, text, equals, next));
    const interpreter::TensorView tensor = interpreter.input(file.place);
    const auto layer = std::ranges::find(inputs.layers_, file.place, &InputLayer::place);
    FUSELITE_ASSIGN_OR_RETURN(
        file.array,
        ReadArrayFile(file.path, tensor, layer != inputs.layers_.end() ? &*layer : nullptr));
    if (file.array.type != tensor.type) {
      return InvalidArgument(file.path, ", which is ", DataTypeName(file.array.type), " ",
                             file.array.shape, ", does not fit ", InputWithShape(tensor));
    }
    FUSELITE_RETURN_IF_ERROR(CheckShape(file.path, file.array.shape, file.place, inputs.layers_));
    if (std::ranges::count(inputs.files_, file.place, &File::place) > 0) {
      return InvalidArgument(text, ": input '", tensor.name, "' is given twice");
    }
    inputs.files_.push_back(std::move(file));
  }
  return inputs;
}

Result<std::string> Inputs::Resize(interpreter::Interpreter& interpreter) const {
  std::vector<InputShape> shapes;
  for (const InputLayer& layer : layers_) {
    if (!layer.has_shape) continue;
    const Shape shape = *Shape::FromDims(layer.shape);
    const char* const flag = layer.name.empty() ? "--shape " : "the shape ";
    shapes.push_back({layer.place, shape, internal::Join(flag, shape)});
  }
  for (const File& file : files_) {
    shapes.push_back({file.place, file.array.shape,
                      internal::Join(file.path, ", which is ", file.array.shape, ",")});
  }
  return ResizeInputs(interpreter, shapes);
}

Status Inputs::Fill(interpreter::Interpreter& interpreter, uint64_t seed) const {
  FUSELITE_RETURN_IF_ERROR(FillRandom(interpreter, seed));
  for (const InputLayer& layer : layers_) {
    const interpreter::TensorView tensor = interpreter.input(layer.place);
    if (!layer.file.empty() && !IsArrayFile(layer.file)) {
      FUSELITE_ASSIGN_OR_RETURN(const Array array, ReadRaw(layer.file, tensor));
      if (tensor.bytes > 0) std::memcpy(tensor.data, array.bytes.data(), tensor.bytes);
    } else if (layer.file.empty() && layer.has_range) {
      FUSELITE_RETURN_IF_ERROR(
          FillRandomWithin(interpreter, layer.place, layer.low, layer.high, seed));
    }
  }
  for (const File& file : files_) {
    const interpreter::TensorView tensor = interpreter.input(file.place);
    if (tensor.bytes != file.array.bytes.size()) {
      return InvalidArgument(file.path, ": has ", file.array.bytes.size(), " bytes, input '",
                             tensor.name, "' ", tensor.bytes);
    }
    if (tensor.bytes > 0) std::memcpy(tensor.data, file.array.bytes.data(), tensor.bytes);
  }
  return Status();
}

}  // namespace fuselite::tools
