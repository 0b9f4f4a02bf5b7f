#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "kernels/operator.h"
#include "kernels/tail/apply.h"
#include "tests/kernels/op_tester.h"
#include "tests/kernels/tail_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A tile with room around it, so that writes outside are seen; both sides are misaligned by one
// element.
template <class In, class Out>
struct TileCase {
  std::vector<In> source;
  std::vector<Out> initial;
  int64_t rows = 1, channels = 0, source_pitch = 0, destination_pitch = 0;
  DataType source_type, destination_type;
  int64_t row = 0, channel = 0;

  std::vector<Out> Run(ApplyTailFunction* apply, const Tail& tail,
                       const std::vector<const void*>& inputs) const {
    std::vector<Out> out = initial;
    apply(tail, inputs.data(),
          {.source = source.data() + 1,
           .source_pitch = source_pitch,
           .source_type = source_type,
           .destination = out.data() + 1,
           .destination_pitch = destination_pitch,
           .destination_type = destination_type,
           .row = row,
           .rows = rows,
           .channel = channel,
           .channels = channels});
    return out;
  }
};

template <class In, class Out>
TileCase<In, Out> MakeTile(Random& random, DataType in, DataType out, bool dense) {
  TileCase<In, Out> tile{};
  tile.rows = random.Int(1, 5);
  tile.channels = random.Pick<int64_t>({1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1024, 1500});
  tile.source_pitch = tile.channels + (dense ? 0 : random.Int(0, 3));
  tile.destination_pitch = tile.channels + (dense ? 0 : random.Int(0, 3));
  tile.source_type = in;
  tile.destination_type = out;
  tile.source.resize(tile.rows * tile.source_pitch + 2);
  tile.initial.assign(tile.rows * tile.destination_pitch + 2, Out(77));
  tile.row = random.Int(0, 20);
  tile.channel = random.Int(0, 9);
  return tile;
}

// One row of all of `values`.
template <class In, class Out>
TileCase<In, Out> RowOf(std::vector<In> values, DataType in, DataType out) {
  TileCase<In, Out> tile{};
  tile.channels = static_cast<int64_t>(values.size());
  values.insert(values.begin(), In(0));
  tile.initial.resize(values.size() + 1);
  tile.source = std::move(values);
  tile.source_type = in;
  tile.destination_type = out;
  return tile;
}

void ExpectClose(const std::vector<float>& source, const std::vector<float>& expected,
                 const std::vector<float>& actual, float absolute, std::string_view what) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const float e = expected[i], a = actual[i];
    if (e == a || (std::isnan(e) && std::isnan(a))) continue;
    EXPECT_LE(std::abs(e - a), absolute + 1e-6f * std::abs(e))
        << what << " element " << i << ": " << a << ", expected " << e
        << (i < source.size() ? " for " + std::to_string(source[i]) : "");
  }
}

// GELU's own formula loses what 1 + erf cancels; sine and cosine lose relative precision near
// their zeros, the logarithm near 1.
float AbsoluteTolerance(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kGelu:
    case UnaryKind::kGeluTanh: return 2e-6f;
    case UnaryKind::kSin:
    case UnaryKind::kCos: return 5e-7f;
    case UnaryKind::kLog: return 2e-7f;
    default: return 1e-38f;
  }
}

class TailTest : public ::testing::TestWithParam<Isa> {
 protected:
  ApplyTailFunction* apply() const { return ApplyTail(GetParam()); }
};

TEST_P(TailTest, UnaryAgreesWithReference) {
  for (uint64_t seed = 0; seed < 4 * kUnaryKindCount; ++seed) {
    const auto kind = static_cast<UnaryKind>(seed % kUnaryKindCount);
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    auto tile = MakeTile<float, float>(random, DataType::kFloat32, DataType::kFloat32, false);
    const float magnitude = random.Pick({1.0f, 5.0f, 30.0f});
    for (float& x : tile.source) x = random.Float(-magnitude, magnitude);
    const Tail tail{{TailStage::Unary(kind, 0.2f, 0.5f)}};
    ExpectClose({}, tile.Run(&ApplyTailReference, tail, {}), tile.Run(apply(), tail, {}),
                AbsoluteTolerance(kind), UnaryName(kind));
  }
}

TEST_P(TailTest, UnaryTakesEveryMagnitude) {
  std::vector<float> values = {0.0f, -0.0f, kInfinity, -kInfinity, kNan, 0.5f, -0.5f, 1.5f, 2.5f};
  for (float m = 1e-38f; m < 3e38f; m *= 7.3f) values.insert(values.end(), {m, -m});
  for (float x = -110; x < 95; x += 0.37f) values.push_back(x);
  const auto tile = RowOf<float, float>(values, DataType::kFloat32, DataType::kFloat32);
  for (int k = 0; k < kUnaryKindCount; ++k) {
    const auto kind = static_cast<UnaryKind>(k);
    const Tail tail{{TailStage::Unary(kind, -0.5f, 1.5f)}};
    ExpectClose(tile.source, tile.Run(&ApplyTailReference, tail, {}), tile.Run(apply(), tail, {}),
                AbsoluteTolerance(kind), UnaryName(kind));
  }
}

TEST_P(TailTest, BinaryReadsEveryOperandLayout) {
  std::vector<float> operand(100000);
  Random values(99);
  for (float& y : operand) y = values.Float(-3, 3);
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const bool dense = random.Chance(0.5);
    auto tile = MakeTile<float, float>(random, DataType::kFloat32, DataType::kFloat32, dense);
    for (float& x : tile.source) x = random.Float(-5, 5);
    Tail tail;
    const bool batches = random.Chance(0.6);
    if (batches) tail.rows_per_batch = random.Int(1, 8);
    const int64_t width = tile.channels;
    for (int64_t s = random.Int(1, 3); s > 0; --s) {
      const int64_t row_stride = random.Pick<int64_t>({0, 1, width, width});
      const int64_t batch_stride = random.Chance(0.5)
                                       ? random.Int(0, width)
                                       : row_stride * (batches ? tail.rows_per_batch : 0);
      tail.stages.push_back(
          TailStage::Binary(static_cast<BinaryKind>(random.Int(0, kBinaryKindCount - 1)),
                            {.input = 1,
                             .batch_stride = batch_stride,
                             .row_stride = row_stride,
                             .channel_stride = static_cast<int32_t>(random.Int(0, 1))}));
    }
    const std::vector<const void*> inputs = {nullptr, operand.data()};
    const auto expected = tile.Run(&ApplyTailReference, tail, inputs);
    const auto actual = tile.Run(apply(), tail, inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(expected[i] == actual[i] || (std::isnan(expected[i]) && std::isnan(actual[i])))
          << tail.ToString() << " element " << i << ": " << actual[i] << " vs " << expected[i];
    }
  }
}

template <class Out>
void TestRequantize(ApplyTailFunction* apply, DataType type) {
  constexpr int32_t kLow = std::numeric_limits<Out>::min(), kHigh = std::numeric_limits<Out>::max();
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    auto tile = MakeTile<int32_t, Out>(random, DataType::kInt32, type, random.Chance(0.5));
    for (int32_t& x : tile.source) x = RandomAccumulator(random);
    const TailStage stage = RandomRequantize(random, tile.channels + tile.channel, kLow, kHigh);
    const Tail tail{{stage}};
    ASSERT_EQ(tile.Run(&ApplyTailReference, tail, {}), tile.Run(apply, tail, {}));
  }
}

TEST_P(TailTest, RequantizesToTheBit) {
  TestRequantize<int8_t>(apply(), DataType::kInt8);
  TestRequantize<uint8_t>(apply(), DataType::kUInt8);
  TestRequantize<int16_t>(apply(), DataType::kInt16);
}

template <class T>
void TestQuantizedStages(ApplyTailFunction* apply, DataType type) {
  constexpr int32_t kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    auto tile = MakeTile<T, T>(random, type, type, random.Chance(0.5));
    for (T& x : tile.source) x = static_cast<T>(random.Int(kLow, kHigh));
    std::vector<T> operand(100000);
    for (T& y : operand) y = static_cast<T>(random.Int(kLow, kHigh));
    Tail tail;
    if (sizeof(T) == 1 && random.Chance(0.4)) {
      tail.stages.push_back(RandomLookup(random));
    }
    if (tail.empty() || random.Chance(0.7)) {
      tail.stages.push_back(RandomQuantizedAdd(random, tile.channels, kLow, kHigh));
    }
    const std::vector<const void*> inputs = {operand.data()};
    ASSERT_EQ(tile.Run(&ApplyTailReference, tail, inputs), tile.Run(apply, tail, inputs));
  }
}

TEST_P(TailTest, QuantizedAddAndLookupToTheBit) {
  TestQuantizedStages<int8_t>(apply(), DataType::kInt8);
  TestQuantizedStages<uint8_t>(apply(), DataType::kUInt8);
  TestQuantizedStages<int16_t>(apply(), DataType::kInt16);
}

TEST_P(TailTest, DequantizesAndQuantizesToTheBit) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    auto tile = MakeTile<int8_t, int16_t>(random, DataType::kInt8, DataType::kInt16, true);
    for (int8_t& x : tile.source) x = static_cast<int8_t>(random.Int(-128, 127));
    TailStage dequantize, quantize;
    dequantize.kind = TailStage::Kind::kDequantize;
    dequantize.zero_point = static_cast<int32_t>(random.Int(-128, 127));
    const int64_t scales = random.Chance(0.5) ? 1 : tile.channels + tile.channel;
    std::vector<float> of_channels(scales);
    for (float& scale : of_channels) scale = random.Float(0.01f, 2);
    dequantize.scales = std::move(of_channels);
    quantize.kind = TailStage::Kind::kQuantize;
    quantize.scales = {random.Pick({0.5f, 0.25f, random.Float(0.001f, 1)})};
    quantize.zero_point = static_cast<int32_t>(random.Int(-100, 100));
    quantize.min = static_cast<int32_t>(random.Int(-32768, 0));
    quantize.max = static_cast<int32_t>(random.Int(1, 32767));
    const Tail tail{{dequantize, TailStage::Unary(UnaryKind::kClamp, -50, 60), quantize}};
    ASSERT_EQ(tile.Run(&ApplyTailReference, tail, {}), tile.Run(apply(), tail, {}));
  }
}

TEST_P(TailTest, RescalesToTheBit) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    auto tile = MakeTile<int32_t, int8_t>(random, DataType::kInt32, DataType::kInt8, true);
    for (int32_t& x : tile.source) x = static_cast<int32_t>(random.Int(-5000, 5000));
    TailStage rescale;
    rescale.kind = TailStage::Kind::kRescale;
    const int64_t scales = random.Chance(0.5) ? 1 : tile.channels + tile.channel;
    std::vector<double> real_scales(scales);
    for (double& scale : real_scales) {
      scale = random.Pick({0.5, 0.0625, 0.013 * random.Float(0.1f, 2)});
    }
    rescale.real_scales = std::move(real_scales);
    rescale.zero_point = static_cast<int32_t>(random.Int(-100, 100));
    rescale.min = -128;
    rescale.max = 127;
    const Tail tail{{rescale}};
    ASSERT_EQ(tile.Run(&ApplyTailReference, tail, {}), tile.Run(apply(), tail, {}));
  }
}

TEST_P(TailTest, RescaleRoundsHalvesAwayFromZero) {
  const auto tile = RowOf<int32_t, int8_t>({1, -1, 3, -5, 2147483647, -2147483647, 0, 2},
                                           DataType::kInt32, DataType::kInt8);
  TailStage rescale;
  rescale.kind = TailStage::Kind::kRescale;
  rescale.real_scales = {0.5};
  rescale.zero_point = 3;
  rescale.min = -128;
  rescale.max = 127;
  const std::vector<int8_t> expected = {0, 4, 2, 5, 0, 127, -128, 3, 4, 0};
  EXPECT_EQ(tile.Run(apply(), {{rescale}}, {}), expected);
}

TEST_P(TailTest, QuantizeRoundsHalvesAwayFromZero) {
  const auto tile = RowOf<float, int8_t>({0.5f, -0.5f, 1.5f, 0.49999997f, -2.5f, 300, -300},
                                         DataType::kFloat32, DataType::kInt8);
  TailStage quantize;
  quantize.kind = TailStage::Kind::kQuantize;
  quantize.scales = {1};
  quantize.zero_point = 3;
  quantize.min = -128;
  quantize.max = 127;
  const std::vector<int8_t> expected = {0, 4, 2, 5, 3, 0, 127, -128, 0};
  EXPECT_EQ(tile.Run(apply(), {{quantize}}, {}), expected);
}

TEST_P(TailTest, WorksInPlace) {
  std::vector<float> values(2000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 1000;
  const Tail tail{{TailStage::Unary(UnaryKind::kClamp, 0, 6), TailStage::Unary(UnaryKind::kNeg)}};
  apply()(tail, nullptr,
          {.source = values.data(),
           .source_pitch = 500,
           .source_type = DataType::kFloat32,
           .destination = values.data(),
           .destination_pitch = 500,
           .destination_type = DataType::kFloat32,
           .row = 0,
           .rows = 4,
           .channel = 0,
           .channels = 500});
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], -std::min(std::max(static_cast<float>(i) - 1000, 0.0f), 6.0f)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, TailTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
