// CAST, QUANTIZE, DEQUANTIZE.
#include "kernels/convert/convert.h"

#include <bit>
#include <complex>
#include <limits>

#include "kernels/numbers/short_floats.h"
#include "tests/kernels/movement_tester.h"
#include "tests/kernels/quantized_cases.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8, kU8 = DataType::kUInt8,
                   kI16 = DataType::kInt16, kI32 = DataType::kInt32;

template <class From, class To>
std::vector<To> Convert(std::string_view name, DataType from_type, const std::vector<From>& from,
                        DataType to_type, Quantization in = {}, Quantization out = {},
                        Shape shape = {}) {
  OpTester tester(name);
  if (shape.rank() == 0) shape = {static_cast<int32_t>(from.size())};
  tester.Input(TestTensor::Of<From>(from_type, shape, from, in)).Output(to_type, out);
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].template values<To>() : std::vector<To>();
}

TEST(CastTest, FromFloat) {
  const std::vector<float> in = {0, 1.9f, -1.9f, 3e9f, -3e9f, 300, -5};
  EXPECT_THAT((Convert<float, int32_t>("CAST", kF32, in, kI32)),
              ElementsAre(0, 1, -1, 2147483647, INT32_MIN, 300, -5));
  EXPECT_THAT((Convert<float, int16_t>("CAST", kF32, in, kI16)),
              ElementsAre(0, 1, -1, 32767, -32768, 300, -5));
  EXPECT_THAT((Convert<float, uint8_t>("CAST", kF32, in, kU8)),
              ElementsAre(0, 1, 0, 255, 0, 255, 0));
  EXPECT_THAT((Convert<float, int8_t>("CAST", kF32, in, kI8)),
              ElementsAre(0, 1, -1, 127, -128, 127, -5));
  EXPECT_THAT((Convert<float, int8_t>("CAST", kF32, {NAN, -INFINITY}, kI8)),
              ElementsAre(127, -128));
  EXPECT_THAT((Convert<float, uint32_t>("CAST", kF32, {-1, 5e9f, 4e9f}, DataType::kUInt32)),
              ElementsAre(0, 4294967295, 4000000000));
  EXPECT_THAT((Convert<float, int64_t>("CAST", kF32, {3e9f, -3e9f}, DataType::kInt64)),
              ElementsAre(3000000000, -3000000000));
  EXPECT_THAT((Convert<float, uint8_t>("CAST", kF32, {0, -0.0f, 0.5f}, DataType::kBool)),
              ElementsAre(0, 0, 1));
  EXPECT_THAT((Convert<float, double>("CAST", kF32, {0.5f}, DataType::kFloat64)), ElementsAre(0.5));
}

TEST(CastTest, FromIntegers) {
  EXPECT_THAT((Convert<int32_t, uint8_t>("CAST", kI32, {-1, 256, 257}, kU8)),
              ElementsAre(255, 0, 1));
  EXPECT_THAT((Convert<int32_t, float>("CAST", kI32, {-7, 16777217}, kF32)),
              ElementsAre(-7, 16777216));
  EXPECT_THAT((Convert<uint8_t, int64_t>("CAST", kU8, {200}, DataType::kInt64)), ElementsAre(200));
  EXPECT_THAT((Convert<uint8_t, float>("CAST", DataType::kBool, {1, 0}, kF32)), ElementsAre(1, 0));
}

TEST(CastTest, TakesTheTypeOfTheParameters) {
  OpTester tester("CAST");
  tester.params<CastParams>().out_data_type = kI32;
  tester.Input(TestTensor::Of<float>(kF32, {1}, {1.5f}));
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.op.outputs[0].type, kI32);
  OpTester complex("CAST");
  complex.Input(TestTensor({.type = DataType::kComplex128, .shape = {1}})).Output(kF32);
  EXPECT_EQ(complex.Infer().code(), StatusCode::kUnsupported);
}

TEST(QuantizeTest, RoundsHalfAwayFromZeroAndSaturates) {
  const std::vector<float> in = {0, 0.25f, -0.25f, 0.24f, 1, 1000, -1000, INFINITY, -INFINITY};
  EXPECT_THAT((Convert<float, int8_t>("QUANTIZE", kF32, in, kI8, {}, {{0.5f}, {-1}})),
              ElementsAre(-1, 0, -2, -1, 1, 127, -128, 127, -128));
  EXPECT_THAT((Convert<float, uint8_t>("QUANTIZE", kF32, in, kU8, {}, {{0.5f}, {128}})),
              ElementsAre(128, 129, 127, 128, 130, 255, 0, 255, 0));
  EXPECT_THAT((Convert<float, int16_t>("QUANTIZE", kF32, {1, 1e9f}, kI16, {}, {{0.5f}, {0}})),
              ElementsAre(2, 32767));
}

TEST(QuantizeTest, PerChannel) {
  const Quantization q = {{1.0f, 0.5f}, {0, 10}, 1};
  EXPECT_THAT((Convert<float, int8_t>("QUANTIZE", kF32, {1, 1, 2, 2}, kI8, {}, q, {2, 2})),
              ElementsAre(1, 12, 2, 14));
  EXPECT_THAT((Convert<int8_t, float>("DEQUANTIZE", kI8, {1, 12, 2, 14}, kF32, q, {}, {2, 2})),
              ElementsAre(1, 1, 2, 2));
}

TEST(QuantizeTest, Requantizes) {
  EXPECT_THAT((Convert<int8_t, uint8_t>("QUANTIZE", kI8, {-128, 0, 127}, kU8, {{0.5f}, {0}},
                                        {{0.5f}, {128}})),
              ElementsAre(0, 128, 255));
  EXPECT_THAT((Convert<int8_t, int8_t>("QUANTIZE", kI8, {-128, -3, 3, 127}, kI8, {{0.5f}, {0}},
                                       {{1.0f}, {1}})),
              ElementsAre(-63, 0, 3, 65));  // -1.5 becomes -1: ties go up below zero
  EXPECT_THAT((Convert<int16_t, int32_t>("QUANTIZE", kI16, {-32768, 5}, kI32, {{1.0f}, {0}},
                                         {{0.25f}, {0}})),
              ElementsAre(-131072, 20));
  EXPECT_THAT((Convert<int32_t, int16_t>("QUANTIZE", kI32, {1 << 30, -6}, kI16, {{0.5f}, {0}},
                                         {{1.0f}, {0}})),
              ElementsAre(32767, -3));
}

TEST(QuantizeTest, Refuses) {
  const auto code = [](DataType from, DataType to, Quantization q) {
    OpTester tester("QUANTIZE");
    tester.Input(TestTensor({.type = from, .shape = {2}, .quantization = {{1.0f}, {0}}}));
    tester.Output(to, q);
    return tester.Infer().code();
  };
  EXPECT_EQ(code(kF32, kI8, {{1.0f}, {0}}), StatusCode::kOk);
  EXPECT_EQ(code(kF32, kI8, {}), StatusCode::kUnsupported);
  EXPECT_EQ(code(kF32, kI8, {{0.0f}, {0}}), StatusCode::kUnsupported);
  EXPECT_EQ(code(kF32, kI8, {{NAN}, {0}}), StatusCode::kUnsupported);
  EXPECT_EQ(code(kF32, kI8, {{1.0f, 1.0f, 1.0f}, {0, 0, 0}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kI8, kI8, {{1.0f, 1.0f}, {0, 0}}), StatusCode::kUnsupported);
  EXPECT_EQ(code(kF32, kI32, {{1.0f}, {0}}), StatusCode::kUnsupported);
}

TEST(DequantizeTest, Values) {
  EXPECT_THAT((Convert<uint8_t, float>("DEQUANTIZE", kU8, {0, 128, 255}, kF32, {{0.5f}, {128}})),
              ElementsAre(-64, 0, 63.5f));
  EXPECT_THAT((Convert<uint16_t, float>("DEQUANTIZE", DataType::kFloat16, {0x3C00, 0xC000}, kF32)),
              ElementsAre(1, -2));
}

bool IsFloat(DataType type) { return type == kF32 || type == DataType::kFloat16; }
bool Is16BitOrMore(DataType type) { return BitWidth(type) >= 16 && !IsFloat(type); }

// Any shape, pitch and alignment; any bits where `spread` is 0, else values within it.
TestTensor RandomOperand(Random& random, DataType type, const Quantization& q, double spread) {
  TensorInfo info{.type = type, .shape = RandomShape(random, 3, 60)};
  if (random.Chance(0.2)) info.shape = {static_cast<int32_t>(random.Int(30000, 40000))};
  if (!IsFloat(type)) info.quantization = q;
  info.row_pitch = RandomPitch(random, info.shape.dim(-1));
  TestTensor in(info, random.Int(0, 3) * (BitWidth(type) / 8));
  if (spread > 0) {
    in.Fill(random, type == kU8 ? 0 : -spread, spread);
    return in;
  }
  const int64_t width = BitWidth(type) / 8;
  for (int64_t i = 0; i < info.elements(); ++i) {
    auto* element = in.bytes() + (i / in.width() * info.pitch() + i % in.width()) * width;
    for (int64_t byte = 0; byte < width; ++byte) {
      element[byte] = static_cast<std::byte>(random.Int(0, type == DataType::kBool ? 1 : 255));
    }
  }
  return in;
}

// Every ISA's "highway" against the reference, byte for byte.
template <class Out>
void CompareHighway(OpTester& tester, uint64_t seed) {
  Random random(seed);
  ASSERT_TRUE(tester.Infer().ok());
  PitchOutput(tester, random);
  ExpectHighwayIsTheReference<Out>(tester, random);
}

template <class Out>
void CompareQuantization(std::string_view name, DataType from, DataType to, uint64_t seed) {
  Random random(seed);
  SCOPED_TRACE(std::string(name) + " " + std::string(DataTypeName(from)) + " " +
               std::string(DataTypeName(to)) + ", " + random.Trace());
  const auto quantization = [&] {
    const bool zero = Is16BitOrMore(from) || Is16BitOrMore(to);
    return Quantization{{random.Float(0.001f, 0.3f)},
                        {static_cast<int32_t>(zero ? 0 : random.Int(0, 100))}};
  };
  const Quantization q = quantization();
  const TestTensor in = RandomOperand(random, from, q, from == kF32 ? 30 : 0);
  // Ties, what lies next to one, and what does not fit: in every block, or in few of them.
  const int64_t apart = random.Pick({3, 1000});
  for (int64_t i = 0; from == kF32 && i < in.info().elements(); i += apart) {
    const float tie = (static_cast<float>(random.Int(-200, 200)) + 0.5f) * q.scales[0];
    in.at<float>(i) = std::nextafter(tie, random.Pick({-INFINITY, tie, INFINITY}));
    if (i == 0) in.at<float>(0) = random.Pick({INFINITY, -INFINITY, NAN, 1e20f, -3e9f});
  }
  OpTester tester(name);
  tester.Input(in).Output(to, to == kF32 ? Quantization{} : from == kF32 ? q : quantization());
  CompareHighway<Out>(tester, seed);
}

TEST(QuantizeTest, HighwayHasTheReferencesBits) {
  for (uint64_t seed = 100; seed < 130; ++seed) {
    CompareQuantization<int8_t>("QUANTIZE", kF32, kI8, seed);
    CompareQuantization<uint8_t>("QUANTIZE", kF32, kU8, seed);
    CompareQuantization<int16_t>("QUANTIZE", kF32, kI16, seed);
    CompareQuantization<float>("DEQUANTIZE", kI8, kF32, seed);
    CompareQuantization<float>("DEQUANTIZE", kU8, kF32, seed);
    CompareQuantization<float>("DEQUANTIZE", kI16, kF32, seed);
    CompareQuantization<float>("DEQUANTIZE", DataType::kFloat16, kF32, seed);
  }
}

// One float in a hundred, so that a block rarely has two: up to nine floats on either side of where
// each step begins.
TEST(QuantizeTest, HighwayKnowsWhichFloatsAreInDoubt) {
  for (uint64_t seed = 150; seed < 154; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const float scale = random.Float(0.001f, 0.3f);
    std::vector<float> in;
    for (int step = -270; step < 270; ++step) {
      const auto tie = std::bit_cast<int32_t>((static_cast<float>(step) + 0.5f) * scale);
      for (int32_t ulps = -9; ulps <= 9; ++ulps) {
        in.push_back(std::bit_cast<float>(tie + ulps));
        in.insert(in.end(), 99, 0.0f);
      }
    }
    const auto shape = static_cast<int32_t>(in.size());
    for (const DataType type : {kI8, kU8}) {
      OpTester tester("QUANTIZE");
      tester.Input(TestTensor::Of<float>(kF32, {shape}, in));
      const int64_t zero_point = random.Int(0, 255) - (type == kI8 ? 128 : 0);
      tester.Output(type, {{scale}, {static_cast<int32_t>(zero_point)}});
      ASSERT_TRUE(tester.Infer().ok());
      ExpectHighwayIsTheReference<uint8_t>(tester, random);
    }
  }
}

TEST(QuantizeTest, HighwayRequantizesAsTheReference) {
  for (uint64_t seed = 200; seed < 230; ++seed) {
    CompareQuantization<int8_t>("QUANTIZE", kI8, kI8, seed);
    CompareQuantization<uint8_t>("QUANTIZE", kI8, kU8, seed);
    CompareQuantization<int8_t>("QUANTIZE", kU8, kI8, seed);
    CompareQuantization<uint8_t>("QUANTIZE", kU8, kU8, seed);
    CompareQuantization<int8_t>("QUANTIZE", kI16, kI8, seed);
    CompareQuantization<int16_t>("QUANTIZE", kI16, kI16, seed);
    CompareQuantization<int32_t>("QUANTIZE", kI16, kI32, seed);
    CompareQuantization<int8_t>("QUANTIZE", kI32, kI8, seed);
    CompareQuantization<int16_t>("QUANTIZE", kI32, kI16, seed);
  }
}

// Any bits: NaNs of both kinds, infinities, subnormals, what does not fit.
template <class Out>
void CompareCast(DataType from, DataType to, uint64_t seed) {
  Random random(seed);
  SCOPED_TRACE(std::string(DataTypeName(from)) + " " + std::string(DataTypeName(to)) + ", " +
               random.Trace());
  const double spread = from == kF32 && random.Chance(0.5) ? random.Pick({300.0, 1e5, 4e9}) : 0;
  OpTester tester("CAST");
  tester.Input(RandomOperand(random, from, {}, spread)).Output(to);
  CompareHighway<Out>(tester, seed);
}

template <class To>
void CompareCastsOfIntegers(DataType to, uint64_t seed) {
  for (const DataType from : {DataType::kBool, kU8, kI8, kI16, DataType::kUInt16, kI32,
                              DataType::kUInt32, DataType::kInt64}) {
    if (from != to) CompareCast<To>(from, to, seed);
  }
}

TEST(CastTest, HighwayHasTheReferencesBits) {
  for (uint64_t seed = 300; seed < 320; ++seed) {
    for (const DataType from :
         {DataType::kFloat16, DataType::kBool, kU8, kI8, kI16, DataType::kUInt16, kI32}) {
      CompareCast<float>(from, kF32, seed);
      if (from != DataType::kFloat16) CompareCast<uint16_t>(from, DataType::kFloat16, seed);
    }
    CompareCast<uint16_t>(kF32, DataType::kFloat16, seed);
    CompareCast<int32_t>(kF32, kI32, seed);
    CompareCast<int8_t>(kF32, kI8, seed);
    CompareCast<uint8_t>(kF32, kU8, seed);
    CompareCast<int16_t>(kF32, kI16, seed);
    CompareCast<uint8_t>(kF32, DataType::kBool, seed);
    CompareCastsOfIntegers<uint8_t>(DataType::kBool, seed);
    CompareCastsOfIntegers<int8_t>(kI8, seed);
    CompareCastsOfIntegers<uint8_t>(kU8, seed);
    CompareCastsOfIntegers<int16_t>(kI16, seed);
    CompareCastsOfIntegers<int32_t>(kI32, seed);
    CompareCastsOfIntegers<int64_t>(DataType::kInt64, seed);
  }
}

// A million patterns of bits: all exponents, ties and NaNs are among them.
TEST(CastTest, EveryKindOfFloatBecomesHalf) {
  std::vector<float> in;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4093) {
    in.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (uint32_t exponent = 90; exponent < 150; ++exponent) {
    for (const uint32_t tie : {0x1000u, 0x3000u, 0x2000u, 0xFFFu, 0x1001u, 0x7FFFFFu, 0x400000u}) {
      in.push_back(std::bit_cast<float>(exponent << 23 | tie));
      in.push_back(std::bit_cast<float>(1u << 31 | exponent << 23 | tie));
    }
  }
  const TestTensor x = TestTensor::Of<float>(kF32, {static_cast<int32_t>(in.size())}, in);
  OpTester tester("CAST");
  tester.Input(x).Output(DataType::kFloat16);
  ASSERT_TRUE(tester.Infer().ok());
  const auto expected = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(expected.ok());
  for (const Isa isa : RunnableIsas()) {
    const auto actual = tester.Run("highway", isa);
    if (!actual.ok()) continue;  // below the vector levels
    EXPECT_EQ((*actual)[0].values<uint16_t>(), (*expected)[0].values<uint16_t>()) << IsaName(isa);
  }
}

TEST(CastTest, ComplexNumbersLoseTheirImaginaryPart) {
  using Complex = std::complex<float>;
  constexpr DataType kComplex = DataType::kComplex64;
  EXPECT_THAT((Convert<Complex, int8_t>("CAST", kComplex, {{-3.5f, 9}, {7, 1}}, kI8)),
              ElementsAre(-3, 7));
  EXPECT_THAT((Convert<uint8_t, Complex>("CAST", kU8, {200, 3}, kComplex)),
              ElementsAre(Complex(200, 0), Complex(3, 0)));
  EXPECT_THAT((Convert<Complex, Complex>("CAST", kComplex, {{1, 2}}, kComplex)),
              ElementsAre(Complex(1, 2)));
}

TEST(QuantizeTest, BytesBecomeShorts) {
  EXPECT_THAT((Convert<int8_t, int16_t>("QUANTIZE", kI8, {-128, 3, 127}, kI16, {{0.5f}, {3}},
                                        {{0.001f}, {0}})),
              ElementsAre(-32768, 0, 32767));
  EXPECT_THAT(
      (Convert<uint8_t, int16_t>("QUANTIZE", kU8, {0, 130}, kI16, {{0.5f}, {128}}, {{0.01f}, {0}})),
      ElementsAre(-6400, 100));
}

// -8, 7, 3 and -1, two to a byte, with a scale for each row.
TEST(DequantizeTest, FourBits) {
  OpTester tester("DEQUANTIZE");
  TestTensor in({.type = DataType::kInt4,
                 .shape = {2, 2},
                 .quantization = {.scales = {0.5f, 2.0f}, .zero_points = {0, 0}, .axis = 0}});
  in.data<uint8_t>()[0] = 0x78;
  in.data<uint8_t>()[1] = 0xF3;
  tester.Input(in).Output(kF32);
  const Status inferred = tester.Infer();
  ASSERT_TRUE(inferred.ok()) << inferred.ToString();
  const auto outputs = tester.Run("reference", Isa::kScalar);
  ASSERT_TRUE(outputs.ok());
  EXPECT_THAT((*outputs)[0].values<float>(), ElementsAre(-4, 3.5f, 6, -2));
}

// A scale for each channel along any dimension, and values of less than a byte, in blocks and at
// their ends.
TEST(DequantizeTest, HighwayHasTheReferencesBitsByChannel) {
  for (uint64_t seed = 200; seed < 320; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type =
        random.Pick({kI8, kU8, kI16, DataType::kInt4, DataType::kUInt4, DataType::kInt2});
    const int64_t most = random.Pick({4, 40});
    const auto dim = [&] { return static_cast<int32_t>(random.Int(1, most)); };
    TensorInfo info{.type = type, .shape = {dim(), dim(), dim()}};
    const auto axis = static_cast<int32_t>(random.Int(0, 2));
    std::vector<float> scales;
    std::vector<int32_t> zeros;
    const int32_t channels = random.Chance(0.8) ? info.shape[axis] : 1;
    for (int32_t i = 0; i < channels; ++i) {
      scales.push_back(random.Float(0.001f, 0.3f));
      zeros.push_back(type == kI16 || random.Chance(0.5) ? 0
                                                         : static_cast<int32_t>(random.Int(-8, 8)));
    }
    info.quantization = {scales, zeros, axis};
    TestTensor in(info, random.Int(0, 3) * (BitWidth(type) == 16 ? 2 : 1));
    for (size_t i = 0; i < info.bytes(); ++i)
      in.bytes()[i] = static_cast<std::byte>(random.Int(0, 255));
    OpTester tester("DEQUANTIZE");
    tester.Input(in).Output(kF32);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    ExpectHighwayIsTheReference<float>(tester, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
