#include "tools/inputs/input_layers.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "runtime/tensor.h"

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

Status ParseShape(std::string_view flag, const std::string& text, InputLayer& layer) {
  if (layer.has_shape) {
    return InvalidArgument(flag, ": input '", layer.name, "' is given two shapes");
  }
  for (const std::string& part : Split(text, ',')) {
    int32_t dim;
    if (!ParseNumber(part, &dim) || dim < 0) {
      return InvalidArgument(flag, ": '", part, "' is no dimension");
    }
    layer.shape.push_back(dim);
  }
  if (!Shape::FromDims(layer.shape)) {
    return InvalidArgument(flag, ": '", text, "' is no shape of a tensor");
  }
  layer.has_shape = true;
  return Status();
}

Status ParseShapes(const std::string& text, std::vector<InputLayer>& layers) {
  const std::vector<std::string> shapes = Split(text, ':');
  if (shapes.size() != layers.size()) {
    return InvalidArgument("--input_layer_shape has ", shapes.size(), " shapes for the ",
                           layers.size(), " names of --input_layer");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(ParseShape("--input_layer_shape", shapes[i], layers[i]));
  }
  return Status();
}

// What stands before the next single colon, or the end, from `at` on, which moves there. Two colons
// are one that belongs to the text.
std::string UntilColon(const std::string& text, size_t& at) {
  std::string part;
  while (at < text.size() && (text[at] != ':' || text.substr(at, 2) == "::")) {
    part += text[at];
    at += text[at] == ':' ? 2 : 1;
  }
  return part;
}

Status ParseRanges(const std::string& text, std::vector<InputLayer>& layers) {
  // An empty text has no item, and a colon at its end an empty one behind it.
  for (size_t at = 0; !text.empty() && at <= text.size(); ++at) {
    const std::string item = UntilColon(text, at);
    const std::vector<std::string> parts = Split(item, ',');
    double low, high;
    if (parts.size() != 3 || !ParseNumber(parts[1], &low) || !ParseNumber(parts[2], &high) ||
        !std::isfinite(low) || !std::isfinite(high)) {
      return InvalidArgument("--input_layer_value_range: '", item,
                             "' is not NAME,LOW,HIGH; write :: for a colon of a name");
    }
    if (low > high) {
      return InvalidArgument("--input_layer_value_range: '", item, "' has a LOW above its HIGH");
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
    size_t at = 0;
    const std::string name = UntilColon(item, at);
    if (name.empty() || at + 1 >= item.size()) {
      return InvalidArgument("--input_layer_value_files: '", item, "' is not NAME:FILE");
    }
    LayerOf(layers, name).file = item.substr(at + 1);
  }
  return Status();
}

// Shapes without a name are those of the inputs in order.
Status ParseNamedShapes(const std::vector<std::string>& given, std::vector<InputLayer>& layers) {
  int next = 0;
  for (const std::string& text : given) {
    const size_t colon = text.rfind(':');
    const bool named = colon != std::string::npos;
    InputLayer& layer = named ? LayerOf(layers, text.substr(0, colon)) : layers.emplace_back();
    if (!named) layer.place = next++;
    FUSELITE_RETURN_IF_ERROR(ParseShape("--shape", named ? text.substr(colon + 1) : text, layer));
  }
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
  FUSELITE_RETURN_IF_ERROR(ParseNamedShapes(flags.named_shapes, layers));
  return layers;
}

void InputLayerFlags::AddShapesTo(CLI::App& command) {
  command.add_option("--shape", named_shapes,
                     "Shape of an input, NAME:1,512, or 1,512 for the next one; may be repeated");
  command.add_option("--input_layer", names, "Names of inputs: a,b");
  command.add_option("--input_layer_shape", shapes, "Their shapes: 1,224,224,3:1,20");
}

void InputLayerFlags::AddTo(CLI::App& command) {
  AddShapesTo(command);
  command.add_option("--input_layer_value_range", ranges,
                     "What random values and images are between: a,0,255:b,-1,1; a colon of a name "
                     "is written twice");
  command.add_option("--input_layer_value_files", files,
                     "Files of raw values, .npy, or images: a:image.bin,b:x.npy,c:cat.jpg; a colon "
                     "of a name is written twice");
}

}  // namespace fuselite::tools
