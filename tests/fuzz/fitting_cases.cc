#include "tests/fuzz/fitting_cases.h"

#include "kernels/attention/attention.h"
#include "kernels/blockwise/blockwise.h"
#include "tests/fuzz/fitting_tensors.h"
#include "tests/kernels/hybrid_cases.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/quantized_product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::fuzz {
namespace {

using namespace kernels;
using namespace kernels::testing;

constexpr DataType kF32 = DataType::kFloat32;

OpTester Product(Random& random) {
  static const QuantizedProductCases kIntegers = {
      .types = {DataType::kInt8, DataType::kUInt8, DataType::kInt16}};
  switch (random.Int(0, 15)) {
    case 0: return RandomConv2D(random, {});
    case 1: return RandomDepthwiseConv2D(random, {});
    case 2: return RandomFullyConnected(random);
    case 3: return RandomBatchMatMul(random, random.Chance(0.5));
    case 4: return RandomSmallGroups(random, {});
    case 5: return RandomTransposeConv(random);
    case 6:
      return RandomHybridConv2D(random, {DataType::kInt8, DataType::kInt4, DataType::kInt2}, true);
    case 7: return RandomHybridFullyConnected(random, {DataType::kInt8, DataType::kInt4});
    case 8: return RandomHybridDepthwise(random, Dim(random, 1, 3));
    case 9: return RandomHybridBatchMatMul(random, 0.3, false);
    case 10: return RandomQuantizedConv2D(random, kIntegers);
    case 11: return RandomQuantizedDepthwise(random, kIntegers);
    case 12: return RandomQuantizedFullyConnected(random, kIntegers);
    case 13: return RandomQuantizedBatchMatMul(random, kIntegers);
    case 14: return RandomQuantizedHeadsMatMul(random);
    default: return RandomQuantizedTransposeConv(random, kIntegers.types);
  }
}

FittingCase Attention(Random& random) {
  const int32_t n = Dim(random, 1, 2), group = Dim(random, 1, 3), queries = Dim(random, 1, 40);
  const int32_t keys = Dim(random, 1, 70), depth = Dim(random, 1, 40), values = Dim(random, 1, 70);
  OpTester tester("FUSELITE_ATTENTION");
  auto& params = tester.params<AttentionParams>();
  params.scale = random.Pick({1.0f, 0.125f});
  params.logit_cap = random.Pick({0.0f, 3.0f});
  params.heads_inside = random.Chance(0.5);
  params.keys_by_rows = params.heads_inside || random.Chance(0.5);
  const int32_t key_heads = Dim(random, 1, 3),
                heads = params.heads_inside ? group * key_heads : key_heads;
  const auto order = [&](int32_t head_count, int32_t rows, int32_t width) {
    return params.heads_inside ? Shape{n, rows, head_count, width}
                               : Shape{n, head_count, rows, width};
  };
  tester.Input(Floats(random, order(heads, queries, depth), 1));
  const bool bytes = random.Chance(0.3);
  const auto cache = [&](const Shape& shape) {
    if (!bytes) return tester.Input(Floats(random, shape, 1)), void();
    TestTensor cache({.type = DataType::kInt8,
                      .shape = shape,
                      .quantization = {{0.02f}, {Dim(random, -128, 127)}}});
    cache.Fill(random, -128, 127);
    tester.Input(cache);
  };
  cache(params.keys_by_rows ? order(key_heads, keys, depth) : order(key_heads, depth, keys));
  cache(order(key_heads, keys, values));
  const int masks = Dim(random, 0, 2);
  params.hidden_is_zero = masks > 0 && random.Chance(0.3);
  for (int i = 0; i < masks; ++i) {
    tester.Input(Floats(random,
                        random.Pick({Shape{n, heads, queries, keys}, Shape{1, 1, queries, keys},
                                     Shape{queries, keys}}),
                        3));
  }
  return {std::move(tester)};
}

FittingCase Blockwise(Random& random) {
  const int32_t block = random.Pick({32, 64, 128}), blocks = Dim(random, 1, 4);
  const int32_t units = Dim(random, 1, 150), rows = random.Pick({1, 3, 70});
  OpTester tester("FUSELITE_BLOCKWISE_FULLY_CONNECTED");
  tester.params<FullyConnectedParams>().activation = RandomClamp(random);
  const DataType type = random.Pick({DataType::kInt4, DataType::kInt8, DataType::kInt2});
  TestTensor weights({.type = type, .shape = {units, block * blocks}});
  auto* bytes = weights.data<uint8_t>();
  for (size_t i = 0; i < weights.info().bytes(); ++i) {
    bytes[i] = static_cast<uint8_t>(random.Int(0, 255));
  }
  TestTensor scales({.type = kF32, .shape = {units, blocks}});
  scales.Fill(random, 0.01, 0.2);
  tester.Input(Floats(random, {rows, block * blocks}, 2)).Constant(weights);
  random.Chance(0.5) ? tester.Input(Floats(random, {units}, 3)) : tester.Absent();
  tester.Constant(scales);
  return {std::move(tester), 1e-2f};
}

}  // namespace

FittingCase DrawFittingCase(Random& random) {
  switch (random.Int(0, 15)) {
    case 0: return Attention(random);
    case 1: return Blockwise(random);
    case 2:
    case 3: return DrawRecurrentCase(random);
    case 4:
    case 5: return DrawIndexedCase(random);
    case 6: return DrawCustomCase(random);
    case 7: return DrawTailCase(random);
    case 8:
    case 9:
    case 10:
    case 11: return DrawFunctionCase(random);
    default: return {Product(random)};
  }
}

}  // namespace fuselite::fuzz
