#include "tests/fuzz/custom_phrases.h"

#include <string>
#include <utility>

#include "kernels/numbers/short_floats.h"
#include "tests/kernels/node_def_writer.h"

namespace fuselite::fuzz {
namespace {

using interpreter::BytesOf;
using kernels::testing::NodeDefWriter;
using kernels::testing::Random;

constexpr DataType kF32 = DataType::kFloat32;

class Phrase {
 public:
  Phrase(interpreter::ModelWriter& writer, Random& random, std::vector<int>& inputs)
      : writer_(writer), random_(random), inputs_(inputs) {}

  std::vector<int> Add() {
    switch (random_.Int(0, 9)) {
      case 0: return Detection();
      case 1: return PoolAndUnpool();
      case 2: return TransposeConv();
      case 3: return Spectrogram();
      case 4: return InBlocks();
      case 5: return Verify();
      case 6: return PoolOfVolumes();
      case 7: return Patches();
      case 8: return Bicubic();
      default: return Custom("Unheard", Map({}), {Input({2, 5})}, {{2, 5}});
    }
  }

 private:
  using Numbers = std::vector<std::pair<const char*, double>>;

  int Input(const Shape& shape) {
    inputs_.push_back(writer_.AddTensor("x", kF32, shape));
    return inputs_.back();
  }
  int Constant(const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& value : values) value = random_.Float(-0.5f, 0.5f);
    return writer_.AddConstant<float>("constant", kF32, shape, values);
  }
  int Size(int64_t low, int64_t high) { return static_cast<int>(random_.Int(low, high)); }

  std::vector<int> Custom(const char* name, std::vector<std::byte> options, std::vector<int> inputs,
                          const std::vector<Shape>& shapes) {
    std::vector<int> outputs;
    for (const Shape& shape : shapes) outputs.push_back(writer_.AddTensor("made", kF32, shape));
    if (random_.Chance(0.05)) options.resize(options.size() / 2);
    writer_.AddCustomOperator(name, std::move(options), std::move(inputs), outputs);
    return outputs;
  }

  // A map of FlexBuffers, now and then without a key or with another number.
  std::vector<std::byte> Map(const Numbers& numbers) {
    flexbuffers::Builder map;
    map.Map([&] {
      for (const auto& [key, value] : numbers) {
        if (random_.Chance(0.03)) continue;
        map.Double(key, random_.Chance(0.03) ? random_.Pick({-1.0, 0.0, 1e9}) : value);
      }
    });
    map.Finish();
    return BytesOf(map.GetBuffer());
  }
  // A struct of integers.
  std::vector<std::byte> Struct(std::vector<int32_t> fields) {
    if (random_.Chance(0.1)) fields[Size(0, static_cast<int>(fields.size()) - 1)] = Size(-1, 7);
    return BytesOf(fields);
  }

  std::vector<int> Detection() {
    const int anchors = Size(1, 12), classes = Size(1, 4), most = Size(1, 5);
    const int of_each = Size(1, classes), found = most * of_each;
    return Custom(
        "TFLite_Detection_PostProcess",
        Map({{"max_detections", most},
             {"max_classes_per_detection", of_each},
             {"detections_per_class", Size(1, 10)},
             {"num_classes", classes},
             {"use_regular_nms", Size(0, 1)},
             {"nms_score_threshold", random_.Float(0, 0.5f)},
             {"nms_iou_threshold", random_.Float(0.1f, 1)},
             {"y_scale", 10},
             {"x_scale", 10},
             {"h_scale", 5},
             {"w_scale", 5}}),
        {Input({1, anchors, 4}), Input({1, anchors, classes + Size(0, 1)}), Constant({anchors, 4})},
        {{1, found, 4}, {1, found}, {1, found}, {1}});
  }

  std::vector<int> PoolAndUnpool() {
    const int size = Size(1, 3), side = size * Size(1, 4), channels = Size(1, 9);
    const Shape large{1, side, side, channels}, small{1, side / size, side / size, channels};
    const std::vector<int32_t> window = {Size(1, 2), size, size, size, size, 0};
    const std::vector<int> pooled =
        Custom("MaxPoolingWithArgmax2D", Struct(window), {Input(large)}, {small, small});
    return Custom("MaxUnpooling2D", Struct(window), pooled, {large});
  }

  std::vector<int> TransposeConv() {
    const int side = Size(1, 5), stride = Size(1, 3), filter = Size(1, 3);
    const int in = Size(1, 9), out = Size(1, 9);
    return Custom(
        "Convolution2DTransposeBias", Struct({1, stride, stride}),
        {Input({1, side, side, in}), Constant({out, filter, filter, in}), Constant({out})},
        {{1, side * stride, side * stride, out}});
  }

  std::vector<int> Spectrogram() {
    const int window = Size(2, 40), stride = Size(1, 40), samples = Size(1, 200),
              channels = Size(1, 2);
    int transform = 1;
    while (transform < window) transform *= 2;
    const int frames = samples < window ? 0 : 1 + (samples - window) / stride;
    const Shape spectrum{channels, frames, transform / 2 + 1};
    std::vector<int> made = Custom(
        "AudioSpectrogram",
        Map({{"window_size", window}, {"stride", stride}, {"magnitude_squared", Size(0, 1)}}),
        {Input({samples, channels})}, {spectrum});
    if (random_.Chance(0.3)) return made;
    const int rate = writer_.AddConstant<int32_t>("rate", DataType::kInt32, {1}, {16000});
    const int coefficients = Size(1, 13);
    return Custom("Mfcc",
                  Map({{"upper_frequency_limit", 4000},
                       {"lower_frequency_limit", 20},
                       {"filterbank_channel_count", Size(1, 40)},
                       {"dct_coefficient_count", coefficients}}),
                  {made[0], rate}, {{channels, frames, coefficients}});
  }

  // A window, now and then one that does not fit.
  std::vector<int64_t> WindowOf(int dims, int size) {
    std::vector<int64_t> window(static_cast<size_t>(dims) + 2, size);
    window.front() = window.back() = 1;
    if (random_.Chance(0.05)) window[Size(0, dims + 1)] = Size(-1, 3);
    return window;
  }

  std::vector<int> PoolOfVolumes() {
    const int size = Size(1, 2), side = size * Size(1, 3), channels = Size(1, 9);
    const auto options = NodeDefWriter("MaxPool3D")
                             .Integers("ksize", WindowOf(3, size))
                             .Integers("strides", WindowOf(3, size))
                             .Text("padding", random_.Chance(0.5) ? "SAME" : "VALID")
                             .Options();
    const int made = side / size;
    return Custom(random_.Chance(0.5) ? "FlexMaxPool3D" : "FlexAvgPool3D", options,
                  {Input({1, side, side, side, channels})}, {{1, made, made, made, channels}});
  }

  std::vector<int> Patches() {
    const int size = Size(1, 3), side = Size(3, 8), channels = Size(1, 5);
    const auto options = NodeDefWriter("ExtractImagePatches")
                             .Integers("ksizes", WindowOf(2, size))
                             .Integers("strides", WindowOf(2, 1))
                             .Integers("rates", WindowOf(2, 1))
                             .Text("padding", "SAME")
                             .Options();
    return Custom("FlexExtractImagePatches", options, {Input({1, side, side, channels})},
                  {{1, side, side, size * size * channels}});
  }

  std::vector<int> Bicubic() {
    const int side = Size(1, 8), to = Size(1, 16), channels = Size(1, 5);
    const auto options =
        NodeDefWriter("ResizeBicubic").Flag("half_pixel_centers", random_.Chance(0.5)).Options();
    const std::vector<int32_t> size = {to, to};
    return Custom("FlexResizeBicubic", options,
                  {Input({1, side, side, channels}),
                   writer_.AddConstant("size", DataType::kInt32, {2}, size)},
                  {{1, to, to, channels}});
  }

  std::vector<int> InBlocks() {
    const int block = random_.Pick({32, 32, 64}), blocks = Size(1, 3), units = Size(1, 20);
    const DataType type = random_.Pick({DataType::kInt4, DataType::kInt8, DataType::kInt2});
    const Shape shape{units, block * blocks};
    const std::vector<uint16_t> scales(static_cast<size_t>(units) * blocks,
                                       kernels::FloatToHalf(random_.Float(0, 0.1f)));
    interpreter::TensorSpec weights{.name = "weights", .type = type, .shape = shape};
    weights.blockwise = {
        .scales = writer_.AddConstant("scales", DataType::kFloat16, {units, blocks}, scales),
        .block_size = random_.Chance(0.95) ? block : Size(0, 100)};
    weights.data.resize((shape.elements() * BitWidth(type) + 7) / 8);
    for (std::byte& byte : weights.data) byte = static_cast<std::byte>(random_.Int(0, 255));
    const int stored = writer_.AddTensor(std::move(weights));
    if (random_.Chance(0.3)) {
      const std::vector<int32_t> ids = {Size(0, units - 1), Size(0, units - 1)};
      return Builtin("EMBEDDING_LOOKUP",
                     {writer_.AddConstant("ids", DataType::kInt32, {2}, ids), stored},
                     {2, shape[1]});
    }
    const int rows = Size(1, 5);
    return Builtin("FULLY_CONNECTED",
                   {Input({rows, shape[1]}), stored, random_.Chance(0.5) ? Constant({units}) : -1},
                   {rows, units});
  }

  std::vector<int> Verify() {
    const Quantization quantization{.scales = {0.01f}, .zero_points = {0}};
    const int bytes = writer_.AddTensor("bytes", DataType::kInt8, {2, 5}, quantization);
    inputs_.push_back(bytes);
    return Custom("NumericVerify", Map({{"tolerance", 5}, {"log_if_failed", Size(0, 1)}}),
                  {bytes, Input({2, 5})}, {{2, 5}});
  }

  std::vector<int> Builtin(std::string_view name, std::vector<int> inputs, const Shape& shape) {
    const int made = writer_.AddTensor("made", kF32, shape);
    writer_.AddOperator(*kernels::FindOperator(name), std::move(inputs), {made});
    return {made};
  }

  interpreter::ModelWriter& writer_;
  Random& random_;
  std::vector<int>& inputs_;
};

}  // namespace

std::vector<int> AddCustomPhrase(interpreter::ModelWriter& writer, Random& random,
                                 std::vector<int>& inputs) {
  return Phrase(writer, random, inputs).Add();
}

}  // namespace fuselite::fuzz
