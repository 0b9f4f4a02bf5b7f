// Well-known networks with seeded weights, so that nothing needs to be downloaded to try one.
// Right for speed and for differences between engines, meaningless for accuracy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/file/loader.h"
#include "runtime/support/status.h"

namespace fuselite::tools {

struct ZooModel {
  std::string_view name;
  std::string_view description;
  std::vector<std::byte> (*build)(uint64_t seed);
  // false: hundreds of megabytes, for `fuselite generate`, or another form of one that is there.
  bool in_demo = true;
};

std::span<const ZooModel> Zoo();

// The .tflite bytes of a model by name; an unknown name is answered with those there are.
Result<std::vector<std::byte>> BuildZooModel(std::string_view name, uint64_t seed);

// The file, or a model of the zoo where `name` is "zoo:NAME". Errors name it.
Result<std::shared_ptr<const interpreter::Model>> OpenModel(const std::string& name);

std::vector<std::byte> BuildBlockwiseDecoder(uint64_t seed);
std::vector<std::byte> BuildDecoder(uint64_t seed);
std::vector<std::byte> BuildDequantizedDecoder(uint64_t seed);
std::vector<std::byte> BuildDenoiser(uint64_t seed);
std::vector<std::byte> BuildDetector(uint64_t seed);
std::vector<std::byte> BuildKeyword(uint64_t seed);
std::vector<std::byte> BuildMobileNetV1(uint64_t seed);
std::vector<std::byte> BuildMobileNetV2(uint64_t seed);
std::vector<std::byte> BuildSegmenter(uint64_t seed);
std::vector<std::byte> BuildSmallDecoder(uint64_t seed);
std::vector<std::byte> BuildTransformer(uint64_t seed);
std::vector<std::byte> BuildWakeWord(uint64_t seed);

}  // namespace fuselite::tools
