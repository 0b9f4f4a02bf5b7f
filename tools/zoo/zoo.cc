#include "tools/zoo/zoo.h"

#include <exception>
#include <string>

namespace fuselite::tools {
namespace {

constexpr ZooModel kZoo[] = {
    {"decoder", "12 decoder layers of 1024 features with a cache, int8 weights", BuildDecoder,
     false},
    {"mobilenet_v1", "MobileNetV1 1.0 224: depthwise-separable convolutions", BuildMobileNetV1},
    {"mobilenet_v2", "MobileNetV2 1.0 224: inverted residuals", BuildMobileNetV2},
    {"transformer", "4 encoder layers over 128 tokens of 192 features", BuildTransformer},
};

}  // namespace

std::span<const ZooModel> Zoo() { return kZoo; }

Result<std::vector<std::byte>> BuildZooModel(std::string_view name, uint64_t seed) {
  std::string names;
  for (const ZooModel& model : kZoo) {
    if (model.name == name) {
      try {
        return model.build(seed);
      } catch (const std::exception& error) {
        return Internal(error.what());
      }
    }
    names += (names.empty() ? "" : ", ") + std::string(model.name);
  }
  return NotFound("the zoo has no model '", name, "'; it has ", names);
}

}  // namespace fuselite::tools
