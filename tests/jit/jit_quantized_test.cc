#include "tests/jit/quantized_cases.h"

#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Activation;
using kernels::Conv2DParams;
using kernels::FullyConnectedParams;
using kernels::Padding;

TestTensor RandomInput(Random& random, DataType type, Shape shape) {
  const int32_t inner = shape.dim(-1);
  const TestTensor input({.type = type,
                          .shape = shape,
                          .quantization = RandomQuantization(random, type),
                          .row_pitch = random.Chance(0.3) ? inner + random.Int(1, 9) : 0},
                         random.Int(0, 3));
  input.Fill(random, type == DataType::kInt8 ? -128 : 0, type == DataType::kInt8 ? 127 : 255);
  return input;
}

TEST(JitQuantizedConv2DTest, HasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Chance(0.7) ? DataType::kInt8 : DataType::kUInt8;
    OpTester tester("CONV_2D");
    auto& params = tester.params<Conv2DParams>();
    params.padding = random.Pick({Padding::kSame, Padding::kValid});
    params.stride_h = random.Int(1, 3);
    params.stride_w = random.Int(1, 3);
    params.dilation_h = random.Int(1, 2);
    params.dilation_w = random.Int(1, 2);
    params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
    if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
    const int32_t channels_in = random.Pick({1, 2, 3, 4, 5, 8, 16, 17, 31, 64});
    const auto channels_out = static_cast<int32_t>(random.Int(1, 70));
    auto filter_h = static_cast<int32_t>(random.Int(1, 4));
    auto filter_w = static_cast<int32_t>(random.Int(1, 4));
    if (random.Chance(0.4)) {
      filter_h = filter_w = params.stride_h = params.stride_w = 1;
      params.extra_padding = {};
    }
    tester.Input(RandomInput(
        random, type,
        {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(8, 17)),
         static_cast<int32_t>(random.Int(8, 17)), channels_in}));
    tester.Constant(
        RandomWeights(random, type, {channels_out, filter_h, filter_w, channels_in}, 0));
    if (random.Chance(0.7)) tester.Constant(RandomBias(random, channels_out));
    tester.Output(type, RandomQuantization(random, type));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddQuantizedTail(tester, random);
    if (random.Chance(0.3)) tester.op.outputs[0].row_pitch = channels_out + random.Int(1, 9);
    CompareBytes(tester, random);
    if (HasFailure()) return;
  }
}

TEST(JitQuantizedDepthwiseTest, HasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Chance(0.7) ? DataType::kInt8 : DataType::kUInt8;
    OpTester tester("DEPTHWISE_CONV_2D");
    auto& params = tester.params<kernels::DepthwiseConv2DParams>();
    params.padding = random.Pick({Padding::kSame, Padding::kValid});
    params.stride_h = random.Int(1, 3);
    params.stride_w = random.Int(1, 3);
    params.dilation_h = random.Int(1, 3);
    params.dilation_w = random.Pick({1, 1, 1, 2, 3});
    params.depth_multiplier = 1;
    params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
    if (random.Chance(0.3)) params.extra_padding = {1, 2, 0, 1};
    // Blocks of AVX-VNNI are whole ones.
    const auto channels = random.Chance(0.5) ? 32 * static_cast<int32_t>(random.Int(1, 5))
                                             : static_cast<int32_t>(random.Int(1, 150));
    std::vector<Isa> isas;
    for (Isa isa : ByteIsas()) {
      if (channels % 32 == 0 || Includes(isa, Isa::kAvx512Vnni)) isas.push_back(isa);
    }
    const int32_t least = params.padding == Padding::kSame ? 1 : 19;
    tester.Input(RandomInput(
        random, type,
        {static_cast<int32_t>(random.Int(1, 2)), static_cast<int32_t>(random.Int(least, 25)),
         static_cast<int32_t>(random.Int(least, 30)), channels}));
    tester.Constant(RandomWeights(
        random, type,
        {1, static_cast<int32_t>(random.Int(1, 5)), random.Pick({1, 2, 3, 4, 5, 7}), channels}, 3));
    if (random.Chance(0.7)) tester.Constant(RandomBias(random, channels));
    tester.Output(type, RandomQuantization(random, type));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddQuantizedTail(tester, random);
    if (random.Chance(0.3)) tester.op.outputs[0].row_pitch = channels + random.Int(1, 9);
    CompareBytes(tester, random, isas);
    if (HasFailure()) return;
  }
}

TEST(JitQuantizedFullyConnectedTest, HasTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = random.Chance(0.7) ? DataType::kInt8 : DataType::kUInt8;
    OpTester tester("FULLY_CONNECTED");
    tester.params<FullyConnectedParams>().activation =
        random.Pick({Activation::kNone, Activation::kRelu});
    const auto depth = static_cast<int32_t>(random.Int(4, 150));
    const auto units = static_cast<int32_t>(random.Int(1, 200));
    tester.Input(RandomInput(random, type, {random.Pick({1, 1, 2, 7, 40}), depth}));
    tester.Constant(RandomWeights(random, type, {units, depth}, 0));
    if (random.Chance(0.7)) tester.Constant(RandomBias(random, units));
    tester.Output(type, RandomQuantization(random, type));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddQuantizedTail(tester, random);
    CompareBytes(tester, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
