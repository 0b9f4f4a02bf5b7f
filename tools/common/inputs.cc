#include "tools/common/inputs.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>

#include "runtime/text_table.h"
#include "tools/common/files.h"
#include "tools/common/image.h"
#include "tools/common/tensors.h"

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

// A shape that an input is to have, and what asks for it.
struct InputShape {
  int place;
  Shape shape;
  std::string source;
};

std::string Mismatch(const interpreter::TensorView& tensor, const InputShape& given) {
  std::ostringstream text;
  text << given.source << ": is " << given.shape << ", but " << DescribeInput(tensor);
  return text.str();
}

Result<std::string> ResizeInputs(interpreter::Interpreter& interpreter,
                                 const std::vector<InputShape>& shapes) {
  std::string changes;
  for (const InputShape& given : shapes) {
    const interpreter::TensorView tensor = interpreter.input(given.place);
    if (tensor.shape == given.shape) continue;
    const std::string mismatch = Mismatch(tensor, given);
    if (!MayHave(tensor, given.shape)) return InvalidArgument(mismatch);
    const Status status = interpreter.ResizeInput(given.place, given.shape.dims());
    if (!status.ok()) return InvalidArgument(mismatch, ": ", status.message());
    changes += (changes.empty() ? "" : "; ") + mismatch;
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

}  // namespace

std::string DescribeInput(const interpreter::TensorView& tensor) {
  std::ostringstream text;
  text << "input '" << tensor.name << "' is " << DataTypeName(tensor.type) << ' ';
  if (tensor.shape_signature.empty()) {
    text << tensor.shape;
  } else {
    char separator = '[';
    for (const int32_t dim : tensor.shape_signature) {
      text << separator << dim;
      separator = ',';
    }
    text << ']';
  }
  return text.str();
}

Result<Inputs> Inputs::Read(const interpreter::Interpreter& interpreter,
                            const InputRequest& request) {
  Inputs inputs;
  inputs.layers_ = request.layers;
  for (InputLayer& layer : inputs.layers_) {
    if (!layer.name.empty()) {
      FUSELITE_ASSIGN_OR_RETURN(layer.place, FindInput(interpreter, layer.name));
    } else if (layer.place >= static_cast<int>(interpreter.inputs().size())) {
      return InvalidArgument("--shape: one shape too many; the model has ",
                             InputNames(interpreter));
    }
  }
  std::vector<std::string> files = request.files;
  for (const InputLayer& layer : inputs.layers_) {
    if (IsArrayFile(layer.file)) files.push_back(layer.name + "=" + layer.file);
  }
  int next = 0;
  for (const std::string& text : files) {
    const size_t equals = text.rfind('=');
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
      return InvalidArgument(file.path, ": is ", DataTypeName(file.array.type), " ",
                             file.array.shape, ", but ", DescribeInput(tensor));
    }
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
    shapes.push_back({layer.place, *Shape::FromDims(layer.shape),
                      layer.name.empty() ? "--shape" : "the shape given for '" + layer.name + "'"});
  }
  for (const File& file : files_) shapes.push_back({file.place, file.array.shape, file.path});
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
