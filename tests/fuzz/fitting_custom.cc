// Custom operators, whose parameters are no table of fields, and operators that rewrites make.
#include "kernels/audio/audio.h"
#include "kernels/blockwise/blockwise.h"
#include "kernels/convert/numeric_verify.h"
#include "kernels/dequantized_sum/dequantized_sum.h"
#include "kernels/detection/detection.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/rotary/rotary.h"
#include "kernels/tensorflow/bicubic.h"
#include "kernels/tensorflow/patches.h"
#include "kernels/tensorflow/pool3d.h"
#include "kernels/transpose_conv/transpose_conv.h"
#include "kernels/unpool/unpool.h"
#include "kernels/weight_only/weight_only.h"
#include "tests/fuzz/fitting_cases.h"
#include "tests/fuzz/fitting_tensors.h"

namespace fuselite::fuzz {
namespace {

using namespace kernels;
using namespace kernels::testing;

constexpr DataType kF32 = DataType::kFloat32, kU8 = DataType::kUInt8;

// Floats, or their codes.
TestTensor FloatsOrCodes(Random& random, bool codes, const Shape& shape, float low, float high) {
  TestTensor tensor({.type = codes ? kU8 : kF32, .shape = shape});
  if (codes) {
    TensorInfo info = tensor.info();
    info.quantization = {{(high - low) / 255}, {static_cast<int32_t>(-low / (high - low) * 255)}};
    tensor = TestTensor(info);
  }
  tensor.Fill(random, codes ? 0 : low, codes ? 255 : high);
  return tensor;
}

FittingCase Detection(Random& random) {
  OpTester tester("TFLite_Detection_PostProcess");
  auto& p = tester.params<DetectionParams>();
  const int32_t boxes = Dim(random, 1, 20), classes = Dim(random, 1, 5);
  p.max_detections = Dim(random, 0, 9);
  p.max_classes_per_detection = Dim(random, 1, 3);
  p.detections_per_class = Dim(random, 1, 9);
  p.num_classes = classes;
  p.score_threshold = random.Pick({0.0f, 0.3f, 0.9f});
  p.overlap_threshold = random.Pick({0.1f, 0.5f, 1.0f});
  p.y_scale = p.x_scale = 10;
  p.h_scale = p.w_scale = 5;
  p.regular = random.Chance(0.5);
  const bool codes = random.Chance(0.4), score_codes = random.Chance(0.4);
  const int32_t background = Dim(random, 0, 1), width = Dim(random, 4, 5);
  tester.Input(FloatsOrCodes(random, codes, {1, boxes, width}, -1, 1));
  tester.Input(FloatsOrCodes(random, score_codes, {1, boxes, classes + background}, 0, 1));
  tester.Input(FloatsOrCodes(random, codes, {boxes, 4}, 0.1f, 1));
  for (int i = 0; i < 4; ++i) tester.Output();
  return {std::move(tester)};
}

FittingCase Spectrogram(Random& random) {
  OpTester tester("AudioSpectrogram");
  auto& p = tester.params<SpectrogramParams>();
  p.window = random.Int(2, 70);
  p.stride = random.Int(1, 40);
  p.squared = random.Chance(0.5);
  tester.Input(Floats(random, {Dim(random, 1, 200), Dim(random, 1, 3)}, 1));
  return {std::move(tester)};
}

FittingCase Mfcc(Random& random) {
  OpTester tester("Mfcc");
  auto& p = tester.params<MfccParams>();
  p.lower_limit = random.Pick({0.0f, 20.0f, 300.0f});
  p.upper_limit = random.Pick({400.0f, 4000.0f, 1e6f});
  p.filters = random.Int(1, 40);
  p.coefficients = random.Int(1, p.filters);
  const Shape shape{Dim(random, 1, 2), Dim(random, 1, 4), Dim(random, 2, 65)};
  TestTensor spectrogram({.type = kF32, .shape = shape});
  spectrogram.Fill(random, 0, 4);
  tester.Input(spectrogram).Input(Numbers(random, {1}, 0, 16000));
  return {std::move(tester)};
}

FittingCase Unpool(Random& random) {
  const bool pool = random.Chance(0.5);
  OpTester tester(pool ? "MaxPoolingWithArgmax2D" : "MaxUnpooling2D");
  auto& p = tester.params<UnpoolParams>();
  p.padding = random.Pick({Padding::kSame, Padding::kValid});
  p.filter_width = Dim(random, 1, 3);
  p.filter_height = Dim(random, 1, 3);
  p.stride_w = Dim(random, 1, 3);
  p.stride_h = Dim(random, 1, 3);
  p.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
  const Shape shape = SmallShape(random, 4);
  tester.Input(Floats(random, shape, 3));
  if (!pool) {
    TestTensor places({.type = kF32, .shape = shape});
    places.Fill(random, 0, static_cast<float>(p.filter_width * p.filter_height));
    tester.Input(places);
  }
  for (int i = pool ? 0 : 1; i < 2; ++i) tester.Output();
  return {std::move(tester)};
}

FittingCase PoolOfVolumes(Random& random) {
  OpTester tester(random.Chance(0.5) ? "FlexMaxPool3D" : "FlexAvgPool3D");
  auto& p = tester.params<Pool3DParams>();
  p.padding = random.Pick({Padding::kSame, Padding::kValid});
  for (int d = 0; d < 3; ++d) {
    p.filter[d] = Dim(random, 1, 3);
    p.stride[d] = Dim(random, 1, 3);
  }
  tester.Input(Floats(random, SmallShape(random, 5), 3));
  return {std::move(tester)};
}

FittingCase PatchesOfImages(Random& random) {
  OpTester tester("FlexExtractImagePatches");
  auto& p = tester.params<PatchesParams>();
  p.padding = random.Pick({Padding::kSame, Padding::kValid});
  for (int d = 0; d < 2; ++d) {
    p.filter[d] = Dim(random, 1, 3);
    p.stride[d] = Dim(random, 1, 3);
    p.dilation[d] = Dim(random, 1, 2);
  }
  const DataType type = random.Pick({kF32, kU8, DataType::kInt16, DataType::kInt64});
  tester.Input(Any(random, type, SmallShape(random, 4)));
  return {std::move(tester)};
}

FittingCase ResizeBicubic(Random& random) {
  OpTester tester("FlexResizeBicubic");
  tester.params<ResizeParams>() = random.Pick(
      {ResizeParams{false, false}, ResizeParams{true, false}, ResizeParams{false, true}});
  tester.Input(Floats(random, SmallShape(random, 4), 3));
  tester.Constant(Numbers(random, {2}, 1, 20));
  return {std::move(tester), 1e-5f};
}

FittingCase TransposeConvWithBias(Random& random) {
  OpTester tester("Convolution2DTransposeBias");
  auto& p = tester.params<TransposeConvParams>();
  p.padding = random.Pick({Padding::kSame, Padding::kValid});
  p.stride_w = Dim(random, 1, 3);
  p.stride_h = Dim(random, 1, 3);
  const Shape in = SmallShape(random, 4);
  const int32_t channels = Dim(random, 1, 9), height = Dim(random, 1, 3);
  tester.Input(Floats(random, in, 1));
  tester.Constant(Floats(random, {channels, height, Dim(random, 1, 3), in[3]}, 1));
  tester.Constant(Floats(random, {channels}, 1));
  return {std::move(tester)};
}

FittingCase DequantizedSum(Random& random) {
  OpTester tester("FUSELITE_DEQUANTIZED_SUM");
  const Shape shape = SmallShape(random, 3);
  const auto scaled = [&]() -> Quantization {
    return {{random.Pick({0.01f, 0.5f, 2.0f})}, {Dim(random, -128, 255)}};
  };
  for (int i = Dim(random, 2, DequantizedSumParams::kMaxTerms); i > 0; --i) {
    tester.params<DequantizedSumParams>().ranges[i - 1] = {random.Pick({-3e38f, -1.0f}), 6};
    TensorInfo info{.type = random.Pick({DataType::kInt8, kU8, DataType::kFloat32}),
                    .shape = shape};
    if (info.type != DataType::kFloat32) info.quantization = scaled();
    TestTensor term(info);
    term.Fill(random, -200, 200);
    tester.Input(term);
  }
  tester.Output(random.Pick({DataType::kInt8, kU8}), scaled());
  return {std::move(tester)};
}

FittingCase Rotary(Random& random) {
  OpTester tester("FUSELITE_ROTARY");
  const int32_t half = Dim(random, 1, 20), heads = Dim(random, 1, 3);
  tester.params<RotaryParams>().width = 2 * half;
  Shape rows = SmallShape(random, 3);
  rows.set(2, heads * 2 * half);
  const int32_t table = random.Chance(0.5) ? half : 2 * half;
  tester.Input(Floats(random, rows, 2));
  for (int i = 0; i < 2; ++i) {
    tester.Input(Floats(random,
                        random.Pick({Shape{table}, Shape{rows[0], 1, table}, Shape{rows[1], table},
                                     Shape{rows[0], rows[1], table}}),
                        2));
  }
  return {std::move(tester)};
}

FittingCase LayerNorm(Random& random) {
  OpTester tester("FUSELITE_LAYER_NORM");
  tester.params<LayerNormParams>().epsilon = 1e-3f;
  tester.params<LayerNormParams>().keeps_mean = random.Chance(0.4);
  const Shape shape = SmallShape(random, Dim(random, 1, 3));
  tester.Input(Floats(random, shape, random.Pick({0.5f, 8.0f})));
  random.Chance(0.7) ? tester.Input(Floats(random, {shape.dim(-1)}, 2)) : tester.Absent();
  if (random.Chance(0.7)) tester.Input(Floats(random, {shape.dim(-1)}, 2));
  return {std::move(tester)};
}

FittingCase WeightOnly(Random& random) {
  OpTester tester("FUSELITE_WEIGHT_ONLY_FULLY_CONNECTED");
  const int32_t units = Dim(random, 1, 70), depth = Dim(random, 1, 70);
  tester.params<FullyConnectedParams>().activation =
      random.Pick({Activation::kNone, Activation::kRelu6});
  tester.Input(Floats(random, {random.Chance(0.7) ? 1 : 3, depth}, 2));
  const DataType type = random.Pick({DataType::kInt8, DataType::kInt4, DataType::kFloat16});
  TensorInfo info{.type = type, .shape = {units, depth}};
  if (type != DataType::kFloat16) {
    const auto count = static_cast<size_t>(random.Chance(0.5) ? units : 1);
    info.quantization = {std::vector<float>(count, 0.02f), std::vector<int32_t>(count)};
  }
  const TestTensor weights(info);
  const std::vector<std::byte> values = DrawValues(info, random);
  std::memcpy(weights.bytes(), values.data(), values.size());
  tester.Constant(weights);
  if (random.Chance(0.5)) tester.Input(Floats(random, {units}, 1));
  return {std::move(tester), 1e-3f};
}

FittingCase BlockwiseEmbedding(Random& random) {
  OpTester tester("FUSELITE_BLOCKWISE_EMBEDDING_LOOKUP");
  const int32_t block = random.Pick({32, 64}), blocks = Dim(random, 1, 3), rows = Dim(random, 1, 9);
  const DataType type = random.Pick({DataType::kInt4, DataType::kInt8, DataType::kInt2});
  tester.Input(Numbers(random, {Dim(random, 1, 9)}, 0, rows - 1));
  tester.Constant(Any(random, type, {rows, block * blocks}));
  const DataType scales = random.Pick({kF32, DataType::kFloat16});
  tester.Constant(Any(random, scales, {rows, blocks}));
  return {std::move(tester)};
}

FittingCase NumericVerify(Random& random) {
  OpTester tester("NumericVerify");
  tester.params<NumericVerifyParams>() = {random.Pick({0.01f, 1.0f, 1000.0f}), random.Chance(0.5)};
  const Shape shape = SmallShape(random, 3);
  TestTensor codes({.type = random.Pick({kU8, DataType::kInt8, DataType::kInt16}),
                    .shape = shape,
                    .quantization = {{0.1f}, {3}}});
  codes.Fill(random, 0, 100);
  tester.Input(random.Chance(0.3) ? Any(random, DataType::kFloat16, shape) : codes);
  tester.Input(Floats(random, shape, 10));
  return {std::move(tester)};
}

FittingCase ShuffledFullyConnected(Random& random) {
  OpTester tester("FUSELITE_SHUFFLED_FULLY_CONNECTED");
  auto& p = tester.params<FullyConnectedParams>();
  p.weights_format = kShuffledWeights;
  p.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
  const int32_t rows = random.Pick({1, 4}), depth = 16 * Dim(random, 1, 4);
  const int32_t units = 4 * Dim(random, 1, 4);
  const auto bytes = [&](const Shape& shape, float scale) {
    TestTensor tensor({.type = kU8, .shape = shape, .quantization = {{scale}, {128}}});
    tensor.Fill(random, 0, 255);
    return tensor;
  };
  TestTensor bias(
      {.type = DataType::kInt32, .shape = {units}, .quantization = {{0.5f * 0.01f}, {0}}});
  bias.Fill(random, -9999, 9999);
  tester.Input(bytes({rows, depth}, 0.5f)).Constant(bytes({units, depth}, 0.01f)).Constant(bias);
  tester.Output(DataType::kInt16, {{random.Pick({0.01f, 0.5f})}, {0}});
  tester.Output(kU8, {{0.5f}, {128}});
  return {std::move(tester)};
}

}  // namespace

FittingCase DrawCustomCase(Random& random) {
  switch (random.Int(0, 14)) {
    case 0: return Detection(random);
    case 1: return Spectrogram(random);
    case 2: return Mfcc(random);
    case 3: return Unpool(random);
    case 4: return TransposeConvWithBias(random);
    case 5: return Rotary(random);
    case 6: return LayerNorm(random);
    case 7: return WeightOnly(random);
    case 8: return NumericVerify(random);
    case 9: return ShuffledFullyConnected(random);
    case 10: return DequantizedSum(random);
    case 11: return PoolOfVolumes(random);
    case 12: return PatchesOfImages(random);
    case 13: return ResizeBicubic(random);
    default: return BlockwiseEmbedding(random);
  }
}

}  // namespace fuselite::fuzz
