#include "tools/common/input_layers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

#include "tools/common/files.h"
#include "tools/common/tensors.h"

namespace fuselite::tools {
namespace {

// No parts for an empty text.
std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

template <class T>
bool ParseNumber(const std::string& text, T* value) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

InputLayer& LayerOf(std::vector<InputLayer>& layers, const std::string& name) {
  for (InputLayer& layer : layers) {
    if (layer.name == name) return layer;
  }
  layers.push_back({.name = name});
  return layers.back();
}

Status ParseShapes(const std::string& text, std::vector<InputLayer>& layers) {
  const std::vector<std::string> shapes = Split(text, ':');
  if (shapes.size() != layers.size()) {
    return InvalidArgument("--input_layer_shape has ", shapes.size(), " shapes for the ",
                           layers.size(), " names of --input_layer");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (const std::string& part : Split(shapes[i], ',')) {
      int32_t dim;
      if (!ParseNumber(part, &dim) || dim < 0) {
        return InvalidArgument("--input_layer_shape: '", part, "' is no dimension");
      }
      layers[i].shape.push_back(dim);
    }
    if (!Shape::FromDims(layers[i].shape)) {
      return InvalidArgument("--input_layer_shape: '", shapes[i], "' is no shape of a tensor");
    }
    layers[i].has_shape = true;
  }
  return Status();
}

Status ParseRanges(const std::string& text, std::vector<InputLayer>& layers) {
  for (const std::string& item : Split(text, ':')) {
    const std::vector<std::string> parts = Split(item, ',');
    double low, high;
    if (parts.size() != 3 || !ParseNumber(parts[1], &low) || !ParseNumber(parts[2], &high) ||
        !std::isfinite(low) || !std::isfinite(high) || low > high) {
      return InvalidArgument("--input_layer_value_range: '", item, "' is not NAME,LOW,HIGH");
    }
    InputLayer& layer = LayerOf(layers, parts[0]);
    layer.has_range = true;
    layer.low = low;
    layer.high = high;
  }
  return Status();
}

// The first single colon ends the name.
Status ParseFiles(const std::string& text, std::vector<InputLayer>& layers) {
  for (const std::string& item : Split(text, ',')) {
    std::string name;
    size_t at = 0;
    while (at < item.size() && (item[at] != ':' || item.substr(at, 2) == "::")) {
      name += item[at];
      at += item[at] == ':' ? 2 : 1;
    }
    if (name.empty() || at + 1 >= item.size()) {
      return InvalidArgument("--input_layer_value_files: '", item, "' is not NAME:FILE");
    }
    LayerOf(layers, name).file = item.substr(at + 1);
  }
  return Status();
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

Status LoadFile(interpreter::Interpreter& interpreter, int place, const std::string& path) {
  if (path.ends_with(".npy")) {
    return LoadInputs(interpreter, {std::string(interpreter.input(place).name) + "=" + path});
  }
  const interpreter::TensorView tensor = interpreter.input(place);
  FUSELITE_ASSIGN_OR_RETURN(const Array array, ReadRaw(path, tensor));
  if (tensor.bytes > 0) std::memcpy(tensor.data, array.bytes.data(), tensor.bytes);
  return Status();
}

}  // namespace

Result<std::vector<InputLayer>> ParseInputLayers(const InputLayerFlags& flags) {
  std::vector<InputLayer> layers;
  for (const std::string& name : Split(flags.names, ',')) {
    if (name.empty()) return InvalidArgument("--input_layer: a name is empty");
    layers.push_back({.name = name});
  }
  if (!flags.shapes.empty()) FUSELITE_RETURN_IF_ERROR(ParseShapes(flags.shapes, layers));
  FUSELITE_RETURN_IF_ERROR(ParseRanges(flags.ranges, layers));
  FUSELITE_RETURN_IF_ERROR(ParseFiles(flags.files, layers));
  return layers;
}

Status ApplyInputLayers(interpreter::Interpreter& interpreter,
                        const std::vector<InputLayer>& layers, uint64_t seed) {
  std::vector<int> places;
  std::vector<InputShape> shapes;
  for (const InputLayer& layer : layers) {
    FUSELITE_ASSIGN_OR_RETURN(const int place, FindInput(interpreter, layer.name));
    places.push_back(place);
    if (layer.has_shape) {
      shapes.push_back({place, *Shape::FromDims(layer.shape), "--input_layer_shape"});
    }
  }
  FUSELITE_ASSIGN_OR_RETURN(const bool resized, ResizeInputs(interpreter, shapes));
  if (resized) FillRandom(interpreter, seed);
  for (size_t i = 0; i < layers.size(); ++i) {
    const InputLayer& layer = layers[i];
    if (!layer.file.empty()) {
      FUSELITE_RETURN_IF_ERROR(LoadFile(interpreter, places[i], layer.file));
    } else if (layer.has_range) {
      FUSELITE_RETURN_IF_ERROR(
          FillRandomWithin(interpreter, places[i], layer.low, layer.high, seed));
    }
  }
  return Status();
}

}  // namespace fuselite::tools
