// Convolutions of well-known models, batch 1: the layers that take most of their time.
#include <algorithm>

#include "benchmarks/op_benchmark.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

namespace fuselite::benchmarks {
namespace {

// Input size, channels in and out, filter, stride. channels_out 0: depthwise. `groups`: of a
// convolution, or the multiplier of a depthwise one.
struct Layer {
  const char* model;
  int32_t size, channels_in, channels_out, filter, stride, groups = 1;
};

constexpr Layer kLayers[] = {
    {"resnext50", 56, 128, 128, 3, 1, 32}, {"resnext50", 14, 512, 512, 3, 1, 32},
    {"regnet", 28, 192, 192, 3, 1, 8},     {"multiplier", 56, 64, 0, 3, 1, 2},
    {"multiplier", 112, 1, 0, 3, 2, 32},   {"mobilenet_v1", 224, 3, 32, 3, 2},
    {"mobilenet_v1", 112, 32, 64, 1, 1},   {"mobilenet_v1", 56, 64, 128, 1, 1},
    {"mobilenet_v1", 56, 128, 128, 1, 1},  {"mobilenet_v1", 28, 256, 256, 1, 1},
    {"mobilenet_v1", 14, 512, 512, 1, 1},  {"mobilenet_v1", 7, 1024, 1024, 1, 1},
    {"mobilenet_v2", 112, 32, 16, 1, 1},   {"mobilenet_v2", 112, 16, 96, 1, 1},
    {"mobilenet_v2", 56, 96, 24, 1, 1},    {"mobilenet_v2", 56, 24, 144, 1, 1},
    {"mobilenet_v2", 56, 144, 24, 1, 1},   {"mobilenet_v2", 28, 32, 192, 1, 1},
    {"mobilenet_v2", 28, 192, 32, 1, 1},   {"mobilenet_v2", 14, 64, 384, 1, 1},
    {"mobilenet_v2", 14, 384, 64, 1, 1},   {"mobilenet_v2", 14, 576, 96, 1, 1},
    {"mobilenet_v2", 7, 160, 960, 1, 1},   {"mobilenet_v2", 7, 960, 160, 1, 1},
    {"mobilenet_v2", 7, 960, 320, 1, 1},   {"mobilenet_v2", 7, 320, 1280, 1, 1},
    {"resnet50", 224, 3, 64, 7, 2},        {"resnet50", 56, 64, 64, 3, 1},
    {"resnet50", 28, 128, 128, 3, 1},      {"resnet50", 14, 256, 256, 3, 1},
    {"resnet50", 7, 512, 512, 3, 1},       {"resnet50", 56, 64, 256, 1, 1},
    {"resnet50", 56, 256, 64, 1, 1},       {"resnet50", 28, 512, 128, 1, 1},
    {"resnet50", 28, 128, 512, 1, 1},      {"resnet50", 14, 1024, 256, 1, 1},
    {"resnet50", 14, 256, 1024, 1, 1},     {"resnet50", 7, 2048, 512, 1, 1},
    {"resnet50", 7, 512, 2048, 1, 1},      {"resnet50", 56, 256, 512, 1, 2},
    {"resnet50", 28, 512, 1024, 1, 2},     {"mobilenet_v1", 112, 32, 0, 3, 1},
    {"mobilenet_v1", 112, 64, 0, 3, 2},    {"mobilenet_v1", 56, 128, 0, 3, 1},
    {"mobilenet_v1", 28, 256, 0, 3, 1},    {"mobilenet_v1", 14, 512, 0, 3, 1},
    {"mobilenet_v1", 7, 1024, 0, 3, 1},    {"mobilenet_v2", 112, 96, 0, 3, 2},
    {"mobilenet_v2", 56, 144, 0, 3, 1},    {"mobilenet_v2", 14, 384, 0, 3, 1},
    {"mobilenet_v2", 7, 960, 0, 3, 1},     {"efficientnet_b0", 56, 144, 0, 5, 2},
    {"efficientnet_b0", 28, 240, 0, 5, 1}, {"efficientnet_b0", 14, 480, 0, 5, 1},
    {"efficientnet_b0", 7, 1152, 0, 5, 1},
};

template <class Params>
void SetWindow(Params& params, int32_t stride) {
  params.padding = kernels::Padding::kSame;
  params.stride_w = params.stride_h = stride;
  params.dilation_w = params.dilation_h = 1;
  params.activation = kernels::Activation::kRelu6;
}

// int8, as converters make them: one scale for each channel, symmetric weights. `type` is that
// of the activations: int8, int16, or float32 that are quantized at run time (dynamic range).
void RunInt8Layer(benchmark::State& state, const Layer& layer, DataType type, const char* candidate,
                  Isa isa) {
  const bool depthwise = layer.channels_out == 0;
  const int32_t channels_out = depthwise ? layer.channels_in * layer.groups : layer.channels_out;
  const int32_t group_in = depthwise ? layer.channels_in : layer.channels_in / layer.groups;
  Quantization activations;
  if (type == DataType::kInt8) activations = {.scales = {0.02f}, .zero_points = {-128}};
  if (type == DataType::kInt16) activations = {.scales = {0.0001f}, .zero_points = {0}};
  const auto per_channel = [&](float scale, int axis) {
    return Quantization{.scales = std::vector<float>(channels_out, scale),
                        .zero_points = std::vector<int32_t>(channels_out, 0),
                        .axis = axis};
  };
  OpBenchmark bench(depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D");
  bench.Input({1, layer.size, layer.size, layer.channels_in}, false, type, activations);
  if (depthwise) {
    SetWindow(bench.params<kernels::DepthwiseConv2DParams>(), layer.stride);
    bench.params<kernels::DepthwiseConv2DParams>().depth_multiplier = layer.groups;
    bench.Input({1, layer.filter, layer.filter, channels_out}, true, DataType::kInt8,
                per_channel(0.01f, 3));
  } else {
    SetWindow(bench.params<kernels::Conv2DParams>(), layer.stride);
    bench.Input({channels_out, layer.filter, layer.filter, group_in}, true, DataType::kInt8,
                per_channel(0.01f, 0));
  }
  if (type != DataType::kFloat32) bench.Output(type, activations);
  bench.Run(state, candidate, isa);
}

void RunLayer(benchmark::State& state, const Layer& layer, const char* candidate, Isa isa) {
  const bool depthwise = layer.channels_out == 0;
  OpBenchmark bench(depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D");
  bench.Input({1, layer.size, layer.size, layer.channels_in}, false);
  if (depthwise) {
    SetWindow(bench.params<kernels::DepthwiseConv2DParams>(), layer.stride);
    const int32_t channels_out = layer.channels_in * layer.groups;
    bench.params<kernels::DepthwiseConv2DParams>().depth_multiplier = layer.groups;
    bench.Input({1, layer.filter, layer.filter, channels_out}, true);
    bench.Input({channels_out}, true);
  } else {
    SetWindow(bench.params<kernels::Conv2DParams>(), layer.stride);
    bench.Input({layer.channels_out, layer.filter, layer.filter, layer.channels_in / layer.groups},
                true);
    bench.Input({layer.channels_out}, true);
  }
  bench.Run(state, candidate, isa);
}

std::string Name(const Layer& layer, const char* type, const char* candidate, Isa isa) {
  const std::string to = layer.channels_out ? std::to_string(layer.channels_out) : "dw";
  return std::string(layer.model) + "/" + std::to_string(layer.size) + "x" +
         std::to_string(layer.channels_in) + "->" + to + "/k" + std::to_string(layer.filter) + "s" +
         std::to_string(layer.stride) + "g" + std::to_string(layer.groups) + "/" + type + "/" +
         candidate + "/" + std::string(IsaName(isa));
}

void RegisterInt8Layer(const Layer& layer, const char* name, DataType type,
                       std::initializer_list<const char*> candidates) {
  for (const char* candidate : candidates) {
    for (const Isa preset : {Isa::kAvx512Vnni, Isa::kAvxVnni, Isa::kAvx2, Isa::kNeon}) {
      // Cores differ in traits that are no instructions.
      const Isa isa = preset & DetectIsa();
      if (IsaName(isa) != IsaName(preset)) continue;
      benchmark::RegisterBenchmark(Name(layer, name, candidate, isa).c_str(),
                                   [&layer, type, candidate, isa](benchmark::State& state) {
                                     RunInt8Layer(state, layer, type, candidate, isa);
                                   });
    }
  }
}

const bool kRegistered = [] {
  for (const Layer& layer : kLayers) {
    ForEachCandidate([&](const char* candidate, Isa isa) {
      benchmark::RegisterBenchmark(Name(layer, "float32", candidate, isa).c_str(),
                                   [&layer, candidate, isa](benchmark::State& state) {
                                     RunLayer(state, layer, candidate, isa);
                                   });
    });
    RegisterInt8Layer(layer, "int8", DataType::kInt8, {"jit int8", "highway"});
    RegisterInt8Layer(layer, "int16", DataType::kInt16, {"highway"});
    RegisterInt8Layer(layer, "hybrid", DataType::kFloat32, {"jit hybrid", "highway"});
  }
  return true;
}();

}  // namespace
}  // namespace fuselite::benchmarks
