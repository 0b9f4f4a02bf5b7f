#include "tools/zoo/zoo.h"

#include <exception>
#include <string>

#include "tools/zoo/quantize.h"

namespace fuselite::tools {
namespace {

constexpr std::string_view kZooPrefix = "zoo:";
constexpr uint64_t kZooSeed = 1;

using Build = std::vector<std::byte> (*)(uint64_t seed);

template <Build build, Form form>
std::vector<std::byte> As(uint64_t seed) {
  return Rewrite(build(seed), form);
}

constexpr ZooModel kZoo[] = {
    {"decoder", "12 decoder layers of 1024 features with a cache, int8 weights", BuildDecoder,
     false},
    {"decoder_small", "2 decoder layers of 128 features with a cache, int8 weights",
     BuildSmallDecoder, false},
    {"decoder_small_blockwise",
     "decoder_small with int4 weights, which have a scale for each block of 32",
     BuildBlockwiseDecoder, false},
    {"decoder_small_dequantized",
     "decoder_small whose int8 weights become floats before each product", BuildDequantizedDecoder,
     false},
    {"denoiser", "a mask over a spectrum by two LSTMs, whose state goes on", BuildDenoiser, false},
    {"detector",
     "single-shot detector on depthwise-separable convolutions, with its selection of boxes",
     BuildDetector, false},
    {"keyword", "depthwise-separable convolutions over 49 frames of features", BuildKeyword, false},
    {"keyword_int16", "keyword with weights in int8 and values in int16",
     As<BuildKeyword, Form::kInt16>, false},
    {"keyword_int8", "keyword in int8, with a scale for each channel",
     As<BuildKeyword, Form::kInt8>, false},
    {"mobilenet_v1", "MobileNetV1 1.0 224: depthwise-separable convolutions", BuildMobileNetV1},
    {"mobilenet_v1_dynamic", "mobilenet_v1 with weights in int8 and values in float",
     As<BuildMobileNetV1, Form::kDynamicRange>, false},
    {"mobilenet_v1_int8", "mobilenet_v1 in int8, with a scale for each channel",
     As<BuildMobileNetV1, Form::kInt8>, false},
    {"mobilenet_v1_uint8", "mobilenet_v1 in uint8, the older form with a scale for each layer",
     As<BuildMobileNetV1, Form::kUint8>, false},
    {"mobilenet_v2", "MobileNetV2 1.0 224: inverted residuals", BuildMobileNetV2},
    {"mobilenet_v2_float16", "mobilenet_v2 with weights in float16",
     As<BuildMobileNetV2, Form::kFloat16>, false},
    {"mobilenet_v2_int8", "mobilenet_v2 in int8, with a scale for each channel",
     As<BuildMobileNetV2, Form::kInt8>, false},
    {"segmenter", "U-Net of residual PRELU blocks, with bilinear and transposed convolutions up",
     BuildSegmenter, false},
    {"transformer", "4 encoder layers over 128 tokens of 192 features", BuildTransformer},
    {"transformer_dynamic", "transformer with weights in int8 and values in float",
     As<BuildTransformer, Form::kDynamicRange>, false},
    {"transformer_int8", "transformer in int8, with a scale for each channel",
     As<BuildTransformer, Form::kInt8>, false},
    {"wake_word", "a stream of frames, whose convolutions keep the last ones in variables",
     BuildWakeWord, false},
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

Result<std::shared_ptr<const interpreter::Model>> OpenModel(const std::string& name) {
  if (name.empty()) return NotFound("the model's name is empty");
  if (!name.starts_with(kZooPrefix)) return interpreter::LoadModelFromFile(name);
  FUSELITE_ASSIGN_OR_RETURN(std::vector<std::byte> built,
                            BuildZooModel(name.substr(kZooPrefix.size()), kZooSeed));
  auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(built));
  return interpreter::LoadModelFromMemory(*bytes, bytes);
}

}  // namespace fuselite::tools
