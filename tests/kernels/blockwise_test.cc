// FULLY_CONNECTED and EMBEDDING_LOOKUP with weights in blocks.
#include "kernels/blockwise/blockwise.h"

#include "tests/kernels/hybrid_cases.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

// Random weights of `type`, as constants.
TestTensor RandomBits(Random& random, DataType type, Shape shape) {
  TestTensor weights({.type = type, .shape = shape});
  auto* bytes = weights.data<uint8_t>();
  for (size_t i = 0; i < weights.info().bytes(); ++i) {
    bytes[i] = static_cast<uint8_t>(random.Int(0, 255));
  }
  return weights;
}

TestTensor RandomScales(Random& random, DataType type, Shape shape) {
  TestTensor scales({.type = type, .shape = shape});
  for (int64_t i = 0; i < scales.info().elements(); ++i) {
    const float scale = random.Float(0.01f, 0.2f);
    if (type == kF32) {
      scales.at<float>(i) = scale;
    } else {
      scales.at<uint16_t>(i) = FloatToHalf(scale);
    }
  }
  return scales;
}

struct Case {
  OpTester tester{"FUSELITE_BLOCKWISE_FULLY_CONNECTED"};
  int64_t rows, depth, units, block_size;
};

void MakeCase(Random& random, Case& c) {
  c.block_size = random.Pick({32, 64, 128, 256});
  c.depth = c.block_size * random.Int(1, c.block_size > 64 ? 2 : 5);
  c.units = random.Pick({random.Int(1, 20), int64_t{64}, random.Int(60, 150)});
  c.rows = random.Pick({int64_t{1}, random.Int(2, 9), int64_t{70}});
  const DataType type = random.Pick({DataType::kInt4, DataType::kInt8, DataType::kInt2});
  const auto shape = [](int64_t a, int64_t b) {
    return Shape{static_cast<int32_t>(a), static_cast<int32_t>(b)};
  };
  TestTensor x({.type = kF32, .shape = shape(c.rows, c.depth)}, 4 * random.Int(0, 3));
  x.Fill(random, random.Pick({-1.0f, 0.0f, -8.0f}), 2);
  c.tester.Input(x);
  c.tester.Constant(RandomBits(random, type, shape(c.units, c.depth)));
  if (random.Chance(0.5)) {
    TestTensor bias({.type = kF32, .shape = {static_cast<int32_t>(c.units)}});
    bias.Fill(random, -3, 3);
    c.tester.Input(bias);
  } else {
    c.tester.Absent();
  }
  c.tester.Constant(RandomScales(random, random.Pick({kF32, DataType::kFloat16}),
                                 shape(c.units, c.depth / c.block_size)));
  c.tester.params<FullyConnectedParams>().activation =
      random.Pick({Activation::kNone, Activation::kRelu, Activation::kTanh});
}

// What an output's terms amount to, and so how far it may be from the exact sum.
float Bound(const Case& c, int64_t row, int64_t unit) {
  const TensorInfo& scales = c.tester.op.inputs[kBlockScalesInput];
  float largest = 0;
  for (int64_t d = 0; d < c.depth; ++d) {
    largest = std::max(largest, std::abs(c.tester.inputs[0].at<float>(row * c.depth + d)));
  }
  double total = 0;
  const int64_t blocks = c.depth / c.block_size;
  for (int64_t b = 0; b < blocks; ++b) {
    const float scale = BlockScale(scales, unit * blocks + b);
    total += static_cast<double>(scale) * static_cast<double>(c.block_size);
  }
  const float weight = c.tester.inputs[1].info().type == DataType::kInt8 ? 128 : 8;
  return 1e-5f + 4 * 0x1p-23f * static_cast<float>(total) * weight * largest;
}

class BlockwiseTest : public ::testing::TestWithParam<Isa> {};

TEST_P(BlockwiseTest, FastIsReference) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    Case c;
    MakeCase(random, c);
    const Status inferred = c.tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    PitchOutput(c.tester, random);
    const auto expected = c.tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = c.tester.Run("highway", GetParam(), 3, 1);
    if (!GetParam().has_vectors()) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectNear((*expected)[0], (*actual)[0],
               [&](int64_t i) { return Bound(c, i / c.units, i % c.units); }, "blockwise");
  }
}

// One scale for each unit: the integers are the reference's, and so are the bits.
TEST_P(BlockwiseTest, FewRowsAreTheHybridReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FULLY_CONNECTED");
    auto& params = tester.params<FullyConnectedParams>();
    params.asymmetric_quantize_inputs = random.Chance(0.5);
    params.activation = random.Pick({Activation::kNone, Activation::kRelu6});
    const auto depth = static_cast<int32_t>(32 * random.Int(1, 20));
    const auto units = static_cast<int32_t>(random.Int(1, 150));
    tester.Input(RandomFloats(random, {static_cast<int32_t>(random.Int(1, 4)), depth}, true));
    tester.Constant(RandomWeights(random, random.Pick({DataType::kInt8, DataType::kInt4}),
                                  {units, depth}, units, random.Chance(0.5)));
    AddFloatBias(random, tester, units);
    ASSERT_TRUE(tester.Infer().ok());
    PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar);
    const auto actual = tester.Run("few rows", GetParam(), 3, 1);
    if (!GetParam().has_vectors()) {
      EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame<float>((*expected)[0], (*actual)[0], "few rows");
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, BlockwiseTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& isa) { return std::string(IsaName(isa.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
