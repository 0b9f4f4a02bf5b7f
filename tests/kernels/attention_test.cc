// Attention against the reference: layouts of heads, groups, masks, caches of bytes.
#include "kernels/attention/attention.h"

#include <limits>

#include "tests/kernels/attention_cases.h"
#include "tests/kernels/composites.h"

namespace fuselite::kernels::testing {
namespace {

using AttentionIsaTest = CompositesTest;

TEST_P(AttentionIsaTest, WithHeadsOutside) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = RandomAttention(random);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    const Shape &q = tester.op.inputs[0].shape, &v = tester.op.inputs[2].shape;
    ASSERT_EQ(tester.op.outputs[0].shape, (Shape{q[0], q[1], q[2], v[3]}));
    if (random.Chance(0.3)) {
      tester.op.tail.stages.push_back(TailStage::Unary(UnaryKind::kAffine, 2, 1));
    }
    PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    Compare(tester, (*expected)[0], 2e-5f);
  }
}

// [batch, row, head, channel] as [batch, head, row, channel], each head `repeats` times.
TestTensor HeadsOutside(const TestTensor& from, int32_t repeats) {
  const Shape& s = from.info().shape;
  TestTensor to({.type = kF32, .shape = {s[0], s[2] * repeats, s[1], s[3]}});
  int64_t i = 0;
  for (int b = 0; b < s[0]; ++b) {
    for (int h = 0; h < s[2] * repeats; ++h) {
      for (int row = 0; row < s[1]; ++row) {
        for (int c = 0; c < s[3]; ++c) {
          to.at<float>(i++) =
              from.at<float>(((int64_t{b} * s[1] + row) * s[2] + h / repeats) * s[3] + c);
        }
      }
    }
  }
  return to;
}

// Whether the version of few rows takes so many queries, whose keys fill vectors of every target.
bool AreFewRows(int32_t queries, int32_t keys, int32_t depth) {
  return queries <= 8 && keys >= 16 && depth % 4 == 0;
}

// Grouped queries over a cache give what the same heads give one by one, in either layout.
TEST_P(AttentionIsaTest, WithHeadsInside) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto dim = [&](int low, int high) { return static_cast<int32_t>(random.Int(low, high)); };
    const int32_t n = dim(1, 2), group = dim(1, 4), key_heads = dim(1, 3), keys = dim(1, 70);
    const int32_t queries = random.Chance(0.5) ? dim(1, 2) : dim(1, 60), heads = group * key_heads;
    const int32_t depth = random.Chance(0.5) ? 4 * dim(1, 10) : dim(1, 40), values = dim(1, 70);
    OpTester tester("FUSELITE_ATTENTION"), outside("FUSELITE_ATTENTION");
    OpTester shared("FUSELITE_ATTENTION");
    AttentionParams& params = tester.params<AttentionParams>();
    params.scale = random.Pick({1.0f, 0.125f});
    params.logit_cap = random.Pick({0.0f, 3.0f});
    params.by_roots = random.Chance(0.5);
    params.keys_by_rows = true;
    outside.params<AttentionParams>() = shared.params<AttentionParams>() = params;
    params.heads_inside = true;
    tester.Input(RandomTensor(random, {n, queries, heads, depth}, 1));
    tester.Input(TestTensor({.type = kF32, .shape = {n, keys, key_heads, depth}}));
    tester.Input(TestTensor({.type = kF32, .shape = {n, keys, key_heads, values}}));
    tester.inputs[1].Fill(random, -1, 1);
    tester.inputs[2].Fill(random, -2, 2);
    for (int i = 0; i < 3; ++i) {
      outside.Input(HeadsOutside(tester.inputs[i], i == 0 ? 1 : group));
      shared.Input(HeadsOutside(tester.inputs[i], 1));
    }
    // Where some queries may see nothing, only the last mask hides.
    const int masks = dim(0, 2), hiding = masks > 0 && random.Chance(0.4) ? masks : 0;
    for (int i = 1; i <= masks; ++i) {
      const Shape shape = random.Pick({Shape{n, heads, queries, keys}, Shape{1, 1, queries, keys}});
      const bool causal = hiding > 0 ? i == hiding : random.Chance(0.7);
      const TestTensor mask = causal ? CausalMask(random, shape, dim(hiding > 0 ? -40 : 0, keys))
                                     : RandomTensor(random, shape, 3);
      for (OpTester* each : {&tester, &outside, &shared}) each->Input(mask);
    }
    for (OpTester* each : {&tester, &outside, &shared}) {
      each->params<AttentionParams>().hidden_is_zero = hiding > 0;
    }
    ASSERT_TRUE(tester.Infer().ok() && outside.Infer().ok() && shared.Infer().ok());
    ASSERT_EQ(tester.op.outputs[0].shape, (Shape{n, queries, heads, values}));
    const auto expected = tester.Run("reference", Isa::kScalar);
    const auto by_heads = outside.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok() && by_heads.ok());
    ASSERT_EQ(HeadsOutside((*expected)[0], 1).values<float>(), (*by_heads)[0].values<float>());
    const auto of_shared = shared.Run("reference", Isa::kScalar);
    ASSERT_TRUE(of_shared.ok());
    ASSERT_EQ((*of_shared)[0].values<float>(), (*by_heads)[0].values<float>());
    Compare(tester, (*expected)[0], 2e-5f);
    Compare(shared, (*by_heads)[0], 2e-5f);
    if (AreFewRows(group * queries, keys, depth)) {
      Compare(tester, (*expected)[0], 2e-5f, "few rows");
      Compare(shared, (*by_heads)[0], 2e-5f, "few rows");
    }
  }
}

// The bytes of `from` as rows of all heads' channels, `pad` further apart.
TestTensor AsRows(const TestTensor& from, int32_t pad) {
  const Shape& s = from.info().shape;
  const int32_t width = s[2] * s[3];
  TestTensor to({.type = kF32, .shape = {s[0], s[1], width}, .row_pitch = pad ? width + pad : 0});
  for (int64_t i = 0; i < from.info().elements(); ++i) to.at<float>(i) = from.at<float>(i);
  return to;
}

// Rows that hold all heads, parts of wider ones as a layer of queries, keys and values gives them.
TEST_P(AttentionIsaTest, OverRowsOfHeads) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto dim = [&](int low, int high) { return static_cast<int32_t>(random.Int(low, high)); };
    const int32_t n = dim(1, 2), group = dim(1, 2), key_heads = dim(1, 3), keys = dim(1, 70);
    const int32_t queries = random.Chance(0.3) ? dim(1, 2) : dim(1, 60), heads = group * key_heads;
    const int32_t depth = random.Chance(0.5) ? 4 * dim(1, 10) : dim(1, 40), values = dim(1, 40);
    OpTester tester("FUSELITE_ATTENTION"), apart("FUSELITE_ATTENTION");
    AttentionParams& params = tester.params<AttentionParams>();
    params = {.scale = 0.25f, .keys_by_rows = true, .heads_inside = true, .heads = heads};
    apart.params<AttentionParams>() = params;
    apart.Input(RandomTensor(random, {n, queries, heads, depth}, 1));
    apart.Input(RandomTensor(random, {n, keys, key_heads, depth}, 1));
    apart.Input(RandomTensor(random, {n, keys, key_heads, values}, 2));
    for (int i = 0; i < 3; ++i) {
      tester.Input(AsRows(apart.inputs[i], random.Chance(0.6) ? dim(1, 20) : 0));
    }
    if (random.Chance(0.5)) {
      tester.Input(RandomTensor(random, {n, heads, queries, keys}, 3));
      apart.Input(tester.inputs[3]);
    }
    ASSERT_TRUE(tester.Infer().ok() && apart.Infer().ok());
    ASSERT_EQ(tester.op.outputs[0].shape, (Shape{n, queries, heads, values}));
    const auto expected = apart.Run("reference", Isa::kScalar);
    const auto by_rows = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok() && by_rows.ok());
    ASSERT_EQ((*by_rows)[0].values<float>(), (*expected)[0].values<float>());
    Compare(tester, (*expected)[0], 2e-5f);
    if (AreFewRows(group * queries, keys, depth)) {
      Compare(tester, (*expected)[0], 2e-5f, "few rows");
    }
  }
}

// What DEQUANTIZE makes of int8 values.
TestTensor Dequantized(const TestTensor& bytes) {
  const Quantization& q = bytes.info().quantization;
  TestTensor floats({.type = kF32, .shape = bytes.info().shape});
  for (int64_t i = 0; i < floats.info().elements(); ++i) {
    floats.at<float>(i) = q.scale() * static_cast<float>(bytes.at<int8_t>(i) - q.zero_point());
  }
  return floats;
}

TEST_P(AttentionIsaTest, OverCachesOfBytes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto dim = [&](int low, int high) { return static_cast<int32_t>(random.Int(low, high)); };
    const int32_t n = dim(1, 2), group = dim(1, 2), key_heads = dim(1, 3), keys = dim(1, 70);
    const int32_t queries = random.Chance(0.5) ? dim(1, 2) : dim(1, 60), heads = group * key_heads;
    const int32_t depth = random.Chance(0.5) ? 4 * dim(1, 10) : dim(1, 40), values = dim(1, 70);
    const bool inside = random.Chance(0.5);
    const auto shape = [&](int32_t of, int32_t rows, int32_t width) {
      return inside ? Shape{n, rows, of, width} : Shape{n, of, rows, width};
    };
    const auto cache = [&](int32_t width) {
      TensorInfo info{.type = DataType::kInt8,
                      .shape = shape(key_heads, keys, width),
                      .quantization = {{0.02f}, {dim(-128, 127)}}};
      info.row_pitch = RandomPitch(random, width);
      TestTensor bytes(info, random.Int(0, 3));
      bytes.Fill(random, -128, 127);
      return bytes;
    };
    OpTester tester("FUSELITE_ATTENTION"), wide("FUSELITE_ATTENTION");
    const AttentionParams params{.scale = 0.25f, .keys_by_rows = true, .heads_inside = inside};
    tester.params<AttentionParams>() = wide.params<AttentionParams>() = params;
    tester.Input(RandomTensor(random, shape(heads, queries, depth), 1));
    tester.Input(cache(depth)).Input(cache(values));
    wide.Input(tester.inputs[0]);
    for (const int i : {1, 2}) wide.Input(Dequantized(tester.inputs[i]));
    if (random.Chance(0.7)) {
      // The cache is filled up to some position.
      TestTensor mask = RandomTensor(random, {n, heads, queries, keys}, 3);
      const int32_t filled = dim(1, keys);
      for (int64_t i = 0; i < mask.info().elements(); ++i) {
        if (i % keys >= filled) mask.at<float>(i) = kHiddenScore;
      }
      tester.Input(mask);
      wide.Input(mask);
    }
    ASSERT_TRUE(tester.Infer().ok() && wide.Infer().ok());
    const auto expected = wide.Run("reference", Isa::kScalar);
    const auto of_bytes = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok() && of_bytes.ok());
    ASSERT_EQ((*of_bytes)[0].values<float>(), (*expected)[0].values<float>());
    Compare(tester, (*expected)[0], 5e-5f);
    if (AreFewRows(group * queries, keys, depth)) {
      Compare(tester, (*expected)[0], 5e-5f, "few rows");
    }
  }
}

TEST(AttentionTest, OneKeyGivesItsValue) {
  OpTester tester("FUSELITE_ATTENTION");
  tester.params<AttentionParams>() = {.scale = 0.5f, .keys_by_rows = true};
  tester.Input(TestTensor::Of<float>(kF32, {2, 1}, {4, -7}));
  tester.Input(TestTensor::Of<float>(kF32, {1, 1}, {3}));
  tester.Input(TestTensor::Of<float>(kF32, {1, 2}, {5, 6}));
  ASSERT_TRUE(tester.Infer().ok());
  const auto actual = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(actual.ok());
  EXPECT_THAT((*actual)[0].values<float>(), ::testing::ElementsAre(5, 6, 5, 6));
}

// Of three queries the last mask hides all from the first; another hides as much from the second.
TEST(AttentionTest, HiddenQueriesHaveZerosOrTheMean) {
  for (const Isa isa : RunnableIsas()) {
    for (const bool zero : {false, true}) {
      OpTester tester("FUSELITE_ATTENTION");
      tester.params<AttentionParams>() = {
          .scale = 0.5f, .keys_by_rows = true, .hidden_is_zero = zero};
      tester.Input(TestTensor::Of<float>(kF32, {3, 1}, {1, 1, 1}));
      tester.Input(TestTensor::Of<float>(kF32, {2, 1}, {3, 3}));
      tester.Input(TestTensor::Of<float>(kF32, {2, 1}, {4, 8}));
      tester.Input(TestTensor::Of<float>(kF32, {3, 2}, {0, 0, -1e9f, -1e9f, 0, 0}));
      tester.Input(TestTensor::Of<float>(kF32, {3, 2}, {-1e9f, -1e9f, 0, 0, 0, -1e9f}));
      ASSERT_TRUE(tester.Infer().ok());
      const auto actual = tester.Run(HasVectors(isa) ? "highway" : "reference", isa);
      ASSERT_TRUE(actual.ok());
      EXPECT_THAT((*actual)[0].values<float>(), ::testing::ElementsAre(zero ? 0 : 6, 6, 4))
          << IsaName(isa);
    }
  }
}

TEST(AttentionTest, RefusesHiddenQueriesWithoutMask) {
  OpTester tester("FUSELITE_ATTENTION");
  tester.params<AttentionParams>() = {.scale = 1, .keys_by_rows = true, .hidden_is_zero = true};
  for (int i = 0; i < 3; ++i) tester.Input(TestTensor::Of<float>(kF32, {1, 1}, {1}));
  EXPECT_FALSE(tester.Infer().ok());
}

TEST(AttentionTest, RefusesWhatDoesNotFit) {
  const auto infer = [](Shape q, Shape k, Shape v) {
    OpTester tester("FUSELITE_ATTENTION");
    tester.params<AttentionParams>() = {.scale = 1, .keys_by_rows = true};
    for (const Shape& shape : {q, k, v}) tester.Input(TestTensor({.type = kF32, .shape = shape}));
    return tester.Infer().ok();
  };
  EXPECT_TRUE(infer({2, 3, 4}, {2, 5, 4}, {2, 5, 6}));
  EXPECT_TRUE(infer({4, 3, 4}, {2, 5, 4}, {2, 5, 6}));
  EXPECT_FALSE(infer({4, 3, 4}, {3, 5, 4}, {3, 5, 6}));
  EXPECT_FALSE(infer({4, 3, 4}, {4, 5, 4}, {2, 5, 6}));
  EXPECT_FALSE(infer({4, 3, 4}, {2, 5, 4}, {4, 5, 6}));
  EXPECT_FALSE(infer({2, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 6}));
  EXPECT_FALSE(infer({2, 3, 4}, {2, 5, 3}, {2, 5, 6}));
  EXPECT_FALSE(infer({2, 3, 4}, {2, 5, 4}, {2, 7, 6}));
  EXPECT_FALSE(infer({4}, {4}, {4}));
}

INSTANTIATE_TEST_SUITE_P(Isas, AttentionIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
