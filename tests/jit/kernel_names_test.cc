// Which kernel computes a layer of a real net, for each ISA: a slide to a slower one, or to another
// tiling, shows here. No code is run, so every machine tests every ISA.
#include <string>
#include <vector>

#include "tests/jit/jit_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Conv2DParams;
using kernels::DepthwiseConv2DParams;
using kernels::Padding;
using kernels::TransposeConvParams;

constexpr DataType kF32 = DataType::kFloat32, kInt8 = DataType::kInt8;
constexpr Isa kIsas[] = {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Vnni};

Quantization Scales(int32_t channels, int axis) {
  return {.scales = std::vector<float>(channels, 0.01f),
          .zero_points = std::vector<int32_t>(channels, 0),
          .axis = axis};
}

// The types of a layer: float32, int8, or float32 with int8 weights.
enum class Types { kFloat, kInt8, kHybrid };

struct Layer {
  std::string_view op;
  Types types;
  Shape input, weights;
  int32_t stride = 1;
};

OpTester Make(const Layer& layer) {
  OpTester tester(layer.op);
  const bool bytes = layer.types == Types::kInt8, byte_weights = layer.types != Types::kFloat;
  const bool depthwise = layer.op == "DEPTHWISE_CONV_2D", matmul = layer.op == "BATCH_MATMUL";
  const bool transposed = layer.op == "TRANSPOSE_CONV";
  const int32_t channels = layer.weights[depthwise ? 3 : 0];
  const Quantization activations = bytes ? Scales(1, 0) : Quantization();
  const TestTensor input(
      {.type = bytes ? kInt8 : kF32, .shape = layer.input, .quantization = activations});
  const TestTensor weights({.type = byte_weights ? kInt8 : kF32,
                            .shape = layer.weights,
                            .quantization = byte_weights
                                                ? Scales(matmul ? 1 : channels, depthwise ? 3 : 0)
                                                : Quantization()});
  if (layer.op == "CONV_2D") {
    auto& params = tester.params<Conv2DParams>();
    params.padding = Padding::kSame;
    params.stride_h = params.stride_w = layer.stride;
    params.dilation_h = params.dilation_w = 1;
  } else if (depthwise) {
    auto& params = tester.params<DepthwiseConv2DParams>();
    params.padding = Padding::kSame;
    params.stride_h = params.stride_w = layer.stride;
    params.dilation_h = params.dilation_w = 1;
    params.depth_multiplier = channels / layer.input[3];
  } else if (transposed) {
    auto& params = tester.params<TransposeConvParams>();
    params.padding = Padding::kSame;
    params.stride_h = params.stride_w = layer.stride;
    tester.Constant(TestTensor::Of<int32_t>(
        DataType::kInt32, {4},
        {layer.input[0], layer.input[1] * layer.stride, layer.input[2] * layer.stride, channels}));
    tester.Constant(weights).Input(input);
  }
  if (!transposed) {
    tester.Input(input);
    matmul ? tester.Input(weights) : tester.Constant(weights);
  }
  if (bytes) tester.Output(kInt8, activations);
  return tester;
}

// The name of the first kernel that accepts, as the planner asks.
std::string NameOf(const OpTester& tester, Isa isa,
                   kernels::Precision precision = kernels::Precision::kDefault) {
  for (const auto candidates : {CandidatesFor(*tester.op.op), tester.op.op->candidates}) {
    for (const kernels::Candidate& candidate : candidates) {
      const auto plan = candidate.Plan(tester.op, {.isa = isa, .precision = precision});
      if (plan.ok()) return std::string(plan->kernel().name());
    }
  }
  return "none";
}

void Expect(const Layer& layer, const std::vector<std::string>& names) {
  OpTester tester = Make(layer);
  const Status inferred = tester.Infer();
  ASSERT_TRUE(inferred.ok()) << inferred.ToString();
  std::vector<std::string> actual;
  for (Isa isa : kIsas) actual.push_back(NameOf(tester, isa));
  EXPECT_EQ(actual, names) << layer.op << " of " << layer.input << " with " << layer.weights;
}

TEST(KernelNamesTest, StayTheSame) {
  Expect({"CONV_2D", Types::kFloat, {1, 224, 224, 3}, {32, 3, 3, 3}, 2},
         {"conv f32 6x16 avx2 jit", "conv f32 6x16 avx2 jit", "conv f32 14x32 avx512 jit",
          "conv f32 14x32 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 224, 224, 3}, {32, 3, 3, 3}, 2},
         {"conv int8 6x16 avx2 jit", "conv int8 6x16 avxvnni jit", "conv int8 14x32 avx512 jit",
          "conv int8 14x32 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 224, 224, 3}, {32, 3, 3, 3}, 2},
         {"conv hybrid int8 6x16 avx2 jit", "conv hybrid int8 6x16 avxvnni jit",
          "conv hybrid int8 14x32 avx512 jit", "conv hybrid int8 14x32 avx512vnni jit"});
  Expect({"CONV_2D", Types::kFloat, {1, 112, 112, 16}, {96, 1, 1, 16}, 1},
         {"conv f32 6x16 avx2 jit", "conv f32 6x16 avx2 jit", "conv f32 9x48 avx512 jit",
          "conv f32 9x48 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 112, 112, 16}, {96, 1, 1, 16}, 1},
         {"conv int8 6x16 avx2 jit", "conv int8 6x16 avxvnni jit", "conv int8 4x96 avx512 jit",
          "conv int8 4x96 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 112, 112, 16}, {96, 1, 1, 16}, 1},
         {"conv hybrid int8 6x16 avx2 jit", "conv hybrid int8 6x16 avxvnni jit",
          "conv hybrid int8 4x96 avx512 jit", "conv hybrid int8 4x96 avx512vnni jit"});
  Expect({"CONV_2D", Types::kFloat, {1, 14, 14, 384}, {64, 1, 1, 384}, 1},
         {"conv f32 6x16 avx2 jit", "conv f32 6x16 avx2 jit", "conv f32 14x32 avx512 jit",
          "conv f32 14x32 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 14, 14, 384}, {64, 1, 1, 384}, 1},
         {"conv int8 6x16 avx2 jit", "conv int8 6x16 avxvnni jit", "conv int8 6x64 avx512 jit",
          "conv int8 6x64 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 14, 14, 384}, {64, 1, 1, 384}, 1},
         {"conv hybrid int8 6x16 avx2 jit", "conv hybrid int8 6x16 avxvnni jit",
          "conv hybrid int8 6x64 avx512 jit", "conv hybrid int8 6x64 avx512vnni jit"});
  Expect({"CONV_2D", Types::kFloat, {1, 56, 56, 64}, {64, 3, 3, 64}, 1},
         {"conv winograd 4x4 f32 6x16 avx2 jit", "conv winograd 4x4 f32 6x16 avx2 jit",
          "conv winograd 4x4 f32 6x64 avx512 jit", "conv winograd 4x4 f32 6x64 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 56, 56, 64}, {64, 3, 3, 64}, 1},
         {"conv winograd 2x2 s16 6x16 avx2 jit", "conv int8 6x16 avxvnni jit",
          "conv winograd 2x2 s16 6x64 avx512 jit", "conv int8 6x64 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 56, 56, 64}, {64, 3, 3, 64}, 1},
         {"conv winograd 2x2 s16 6x16 avx2 jit", "conv hybrid int8 6x16 avxvnni jit",
          "conv winograd 2x2 s16 6x64 avx512 jit", "conv hybrid int8 6x64 avx512vnni jit"});
  Expect({"CONV_2D", Types::kFloat, {1, 7, 7, 512}, {2048, 1, 1, 512}, 1},
         {"conv f32 5x16 avx2 jit", "conv f32 5x16 avx2 jit", "conv f32 9x48 avx512 jit",
          "conv f32 9x48 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 7, 7, 512}, {2048, 1, 1, 512}, 1},
         {"conv int8 5x16 avx2 jit", "conv int8 5x16 avxvnni jit", "conv int8 9x48 avx512 jit",
          "conv int8 9x48 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 7, 7, 512}, {2048, 1, 1, 512}, 1},
         {"conv hybrid int8 5x16 avx2 jit", "conv hybrid int8 5x16 avxvnni jit",
          "conv hybrid int8 9x48 avx512 jit", "conv hybrid int8 9x48 avx512vnni jit"});
  Expect({"CONV_2D", Types::kFloat, {1, 56, 56, 128}, {128, 3, 3, 4}, 1},
         {"grouped f32 3x3x4 7x8 avx2 jit", "grouped f32 3x3x4 7x8 avx2 jit",
          "grouped f32 3x3x4 2x4x16 avx512 jit", "grouped f32 3x3x4 2x4x16 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 56, 56, 128}, {128, 3, 3, 4}, 1},
         {"grouped int8 3x3x4 5x16 avx2 jit", "grouped int8 3x3x4 2x32 avxvnni jit",
          "grouped int8 3x3x4 8x32 avx512 jit", "grouped int8 3x3x4 4x64 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 56, 56, 128}, {128, 3, 3, 4}, 1},
         {"grouped hybrid int8 3x3x4 5x16 avx2 jit", "grouped hybrid int8 3x3x4 2x32 avxvnni jit",
          "grouped hybrid int8 3x3x4 8x32 avx512 jit",
          "grouped hybrid int8 3x3x4 4x64 avx512vnni jit"});
  Expect({"CONV_2D", Types::kFloat, {1, 9, 9, 37}, {41, 3, 3, 37}, 1},
         {"conv winograd 2x2 f32 5x16 avx2 jit", "conv winograd 2x2 f32 5x16 avx2 jit",
          "conv f32 9x48 avx512 jit", "conv f32 9x48 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 9, 9, 37}, {41, 3, 3, 37}, 1},
         {"conv int8 5x16 avx2 jit", "conv int8 5x16 avxvnni jit", "conv int8 9x48 avx512 jit",
          "conv int8 9x48 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 9, 9, 37}, {41, 3, 3, 37}, 1},
         {"conv hybrid int8 5x16 avx2 jit", "conv hybrid int8 5x16 avxvnni jit",
          "conv hybrid int8 9x48 avx512 jit", "conv hybrid int8 9x48 avx512vnni jit"});
  Expect({"DEPTHWISE_CONV_2D", Types::kFloat, {1, 112, 112, 96}, {1, 3, 3, 96}, 2},
         {"depthwise f32 3x3 7x8 avx2 jit", "depthwise f32 3x3 7x8 avx2 jit",
          "depthwise f32 3x3 7x16 avx512 jit", "depthwise f32 3x3 7x16 avx512 jit"});
  Expect({"DEPTHWISE_CONV_2D", Types::kFloat, {1, 14, 14, 384}, {1, 3, 3, 384}, 1},
         {"depthwise f32 3x3 2x4x8 avx2 jit", "depthwise f32 3x3 2x4x8 avx2 jit",
          "depthwise f32 3x3 2x7x16 avx512 jit", "depthwise f32 3x3 2x7x16 avx512 jit"});
  Expect({"DEPTHWISE_CONV_2D", Types::kInt8, {1, 112, 112, 96}, {1, 3, 3, 96}, 2},
         {"depthwise int8 3x3 4x16 avx2 jit", "depthwise int8 3x3 2x32 avxvnni jit",
          "depthwise int8 3x3 8x32 avx512 jit", "depthwise int8 3x3 4x64 avx512vnni jit"});
  Expect({"DEPTHWISE_CONV_2D", Types::kHybrid, {1, 112, 112, 96}, {1, 3, 3, 96}, 2},
         {"depthwise hybrid int8 3x3 4x16 avx2 jit", "depthwise hybrid int8 3x3 2x32 avxvnni jit",
          "depthwise hybrid int8 3x3 8x32 avx512 jit",
          "depthwise hybrid int8 3x3 4x64 avx512vnni jit"});
  Expect({"DEPTHWISE_CONV_2D", Types::kFloat, {1, 49, 10, 1}, {1, 10, 8, 8}, 2},
         {"conv f32 10x8 avx2 jit", "conv f32 10x8 avx2 jit", "conv f32 10x8 avx2 jit",
          "conv f32 10x8 avx2 jit"});
  Expect({"CONV_2D", Types::kFloat, {1, 128, 3, 1}, {24, 4, 3, 1}, 1},
         {"conv f32 3x24 avx2 jit", "conv f32 3x24 avx2 jit", "conv f32 12x32 avx512 jit",
          "conv f32 12x32 avx512 jit"});
  Expect({"CONV_2D", Types::kInt8, {1, 128, 3, 1}, {24, 4, 3, 1}, 1},
         {"conv int8 6x16 avx2 jit", "conv int8 3x24 avxvnni jit", "conv int8 12x32 avx512 jit",
          "conv int8 12x32 avx512vnni jit"});
  Expect({"CONV_2D", Types::kHybrid, {1, 128, 3, 1}, {24, 4, 3, 1}, 1},
         {"conv hybrid int8 6x16 avx2 jit", "conv hybrid int8 3x24 avxvnni jit",
          "conv hybrid int8 12x32 avx512 jit", "conv hybrid int8 12x32 avx512vnni jit"});
  Expect({"DEPTHWISE_CONV_2D", Types::kInt8, {1, 49, 10, 1}, {1, 10, 8, 8}, 2},
         {"conv int8 10x8 avx2 jit", "conv int8 10x8 avxvnni jit", "conv int8 20x16 avx512 jit",
          "conv int8 20x16 avx512vnni jit"});
  Expect({"FULLY_CONNECTED", Types::kFloat, {1, 1280}, {1000, 1280}, 1},
         {"fully_connected f32 1x56 avx2 jit", "fully_connected f32 1x56 avx2 jit",
          "fully_connected f32 1x128 avx512 jit", "fully_connected f32 1x128 avx512 jit"});
  Expect({"FULLY_CONNECTED", Types::kInt8, {1, 1280}, {1000, 1280}, 1},
         {"fully_connected int8 1x56 avx2 jit", "fully_connected int8 1x56 avxvnni jit",
          "fully_connected int8 1x128 avx512 jit", "fully_connected int8 1x128 avx512vnni jit"});
  Expect(
      {"FULLY_CONNECTED", Types::kHybrid, {1, 1280}, {1000, 1280}, 1},
      {"fully_connected hybrid int8 1x16 avx2 jit", "fully_connected hybrid int8 1x16 avxvnni jit",
       "fully_connected hybrid int8 1x48 avx512 jit",
       "fully_connected hybrid int8 1x48 avx512vnni jit"});
  Expect({"FULLY_CONNECTED", Types::kFloat, {197, 192}, {768, 192}, 1},
         {"fully_connected f32 6x16 avx2 jit", "fully_connected f32 6x16 avx2 jit",
          "fully_connected f32 9x48 avx512 jit", "fully_connected f32 9x48 avx512 jit"});
  Expect({"FULLY_CONNECTED", Types::kInt8, {197, 192}, {768, 192}, 1},
         {"fully_connected int8 6x16 avx2 jit", "fully_connected int8 6x16 avxvnni jit",
          "fully_connected int8 6x64 avx512 jit", "fully_connected int8 6x64 avx512vnni jit"});
  Expect(
      {"FULLY_CONNECTED", Types::kHybrid, {197, 192}, {768, 192}, 1},
      {"fully_connected hybrid int8 6x16 avx2 jit", "fully_connected hybrid int8 6x16 avxvnni jit",
       "fully_connected hybrid int8 6x64 avx512 jit",
       "fully_connected hybrid int8 6x64 avx512vnni jit"});
  Expect({"BATCH_MATMUL", Types::kFloat, {3, 197, 64}, {3, 64, 197}, 1},
         {"batch_matmul f32 6x16 avx2 jit", "batch_matmul f32 6x16 avx2 jit",
          "batch_matmul f32 9x48 avx512 jit", "batch_matmul f32 9x48 avx512 jit"});
  Expect({"BATCH_MATMUL", Types::kInt8, {3, 197, 64}, {3, 64, 197}, 1},
         {"batch_matmul int8 6x16 avx2 jit", "batch_matmul int8 6x16 avxvnni jit",
          "batch_matmul int8 6x64 avx512 jit", "batch_matmul int8 6x64 avx512vnni jit"});
  Expect({"TRANSPOSE_CONV", Types::kFloat, {1, 16, 16, 256}, {128, 2, 2, 256}, 2},
         {"transpose_conv f32 6x16 avx2 jit", "transpose_conv f32 6x16 avx2 jit",
          "transpose_conv f32 8x48 avx512 jit", "transpose_conv f32 8x48 avx512 jit"});
  Expect({"TRANSPOSE_CONV", Types::kInt8, {1, 16, 16, 256}, {128, 2, 2, 256}, 2},
         {"transpose_conv int8 6x16 avx2 jit", "transpose_conv int8 6x16 avxvnni jit",
          "transpose_conv int8 6x64 avx512 jit", "transpose_conv int8 6x64 avx512vnni jit"});
}

// Expects what the layer takes at a precision.
void ExpectName(const Layer& layer, Isa isa, kernels::Precision precision,
                const std::string& name) {
  OpTester tester = Make(layer);
  const Status inferred = tester.Infer();
  ASSERT_TRUE(inferred.ok()) << inferred.ToString();
  EXPECT_EQ(NameOf(tester, isa, precision), name);
}

// Expects what a machine with AMX takes.
void ExpectOfAmx(const Layer& layer, kernels::Precision precision, const std::string& name) {
  ExpectName(layer, Isa::kAmx.with(Trait::kTwoVectorPorts), precision, name);
}

// Deep products of many rows take tiles; a row, and few terms, do not repay them.
TEST(KernelNamesTest, ThoseOfAmxStayTheSame) {
  const auto expect = [](const Layer& layer, const std::string& name) {
    ExpectOfAmx(layer, kernels::Precision::kDefault, name);
  };
  expect({"CONV_2D", Types::kInt8, {1, 56, 56, 64}, {64, 3, 3, 64}, 1}, "conv int8 14x64 amx jit");
  expect({"CONV_2D", Types::kInt8, {1, 7, 7, 512}, {512, 3, 3, 512}, 1}, "conv int8 28x16 amx jit");
  expect({"CONV_2D", Types::kInt8, {1, 56, 56, 4}, {64, 1, 1, 4}, 1},
         "conv int8 6x64 avx512vnni jit");
  expect({"FULLY_CONNECTED", Types::kInt8, {197, 192}, {768, 192}, 1},
         "fully_connected int8 16x64 amx jit");
  expect({"FULLY_CONNECTED", Types::kInt8, {1, 1280}, {1000, 1280}, 1},
         "fully_connected int8 1x128 avx512vnni jit");
  expect({"TRANSPOSE_CONV", Types::kInt8, {1, 16, 16, 256}, {128, 2, 2, 256}, 2},
         "transpose_conv int8 16x64 amx jit");
}

// On cores with tiles what has none multiplies float32, but for single rows.
TEST(KernelNamesTest, ThoseOfBf16InTilesStayTheSame) {
  const auto expect = [](const Layer& layer, const std::string& name) {
    ExpectOfAmx(layer, kernels::Precision::kFast, name);
  };
  expect({"CONV_2D", Types::kFloat, {1, 224, 224, 3}, {64, 7, 7, 3}, 2}, "conv bf16 16x64 amx jit");
  expect({"CONV_2D", Types::kFloat, {1, 14, 14, 256}, {1024, 1, 1, 256}, 1},
         "conv bf16 30x32 amx jit");
  expect({"CONV_2D", Types::kFloat, {1, 56, 56, 64}, {64, 3, 3, 64}, 1}, "conv bf16 28x32 amx jit");
  expect({"CONV_2D", Types::kFloat, {1, 7, 7, 512}, {512, 3, 3, 512}, 1},
         "conv bf16 28x16 amx jit");
  expect({"CONV_2D", Types::kFloat, {1, 56, 56, 128}, {128, 3, 3, 4}, 1},
         "grouped f32 3x3x4 2x4x16 avx512 jit");
  expect({"FULLY_CONNECTED", Types::kFloat, {1, 1280}, {1000, 1280}, 1},
         "fully_connected bf16 1x128 avx512bf16 jit");
  expect({"FULLY_CONNECTED", Types::kFloat, {197, 192}, {768, 192}, 1},
         "fully_connected bf16 31x32 amx jit");
  expect({"BATCH_MATMUL", Types::kFloat, {3, 197, 64}, {3, 64, 197}, 1},
         "batch_matmul bf16 16x64 amx jit");
  expect({"TRANSPOSE_CONV", Types::kFloat, {1, 16, 16, 256}, {128, 2, 2, 256}, 2},
         "transpose_conv bf16 16x64 amx jit");
}

// Expects what precision=fast takes on a machine with AVX512-BF16 and on one without.
void ExpectFast(const Layer& layer, const std::string& bf16, const std::string& other) {
  ExpectName(layer, Isa::kAvx512Bf16, kernels::Precision::kFast, bf16);
  ExpectName(layer, Isa::kAvx512Vnni, kernels::Precision::kFast, other);
}

TEST(KernelNamesTest, ThoseOfPrecisionFastStayTheSame) {
  ExpectFast({"CONV_2D", Types::kFloat, {1, 224, 224, 3}, {32, 3, 3, 3}, 2},
             "conv bf16 14x32 avx512bf16 jit", "conv f32 14x32 avx512 jit");
  ExpectFast({"CONV_2D", Types::kFloat, {1, 14, 14, 384}, {64, 1, 1, 384}, 1},
             "conv bf16 14x32 avx512bf16 jit", "conv f32 14x32 avx512 jit");
  ExpectFast({"CONV_2D", Types::kFloat, {1, 56, 56, 64}, {64, 3, 3, 64}, 1},
             "conv winograd 4x4 f32 6x64 avx512 jit", "conv winograd 4x4 f32 6x64 avx512 jit");
  ExpectFast({"CONV_2D", Types::kFloat, {1, 7, 7, 512}, {512, 3, 3, 512}, 1},
             "conv bf16 14x32 avx512bf16 jit", "conv f32 14x32 avx512 jit");
  ExpectFast({"CONV_2D", Types::kFloat, {1, 56, 56, 128}, {128, 3, 3, 4}, 1},
             "conv bf16 19x16 avx512bf16 jit", "grouped f32 3x3x4 2x4x16 avx512 jit");
  ExpectFast({"FULLY_CONNECTED", Types::kFloat, {1, 1280}, {1000, 1280}, 1},
             "fully_connected bf16 1x128 avx512bf16 jit", "fully_connected f32 1x128 avx512 jit");
  ExpectFast({"FULLY_CONNECTED", Types::kFloat, {197, 192}, {768, 192}, 1},
             "fully_connected bf16 9x48 avx512bf16 jit", "fully_connected f32 9x48 avx512 jit");
  ExpectFast({"FULLY_CONNECTED", Types::kInt8, {197, 192}, {768, 192}, 1},
             "fully_connected int8 6x64 avx512vnni jit",
             "fully_connected int8 6x64 avx512vnni jit");
  ExpectFast({"BATCH_MATMUL", Types::kFloat, {3, 197, 64}, {3, 64, 197}, 1},
             "batch_matmul bf16 9x48 avx512bf16 jit", "batch_matmul f32 9x48 avx512 jit");
  ExpectFast({"TRANSPOSE_CONV", Types::kFloat, {1, 16, 16, 256}, {128, 2, 2, 256}, 2},
             "transpose_conv bf16 8x48 avx512bf16 jit", "transpose_conv f32 8x48 avx512 jit");
}

}  // namespace
}  // namespace fuselite::jit::testing
