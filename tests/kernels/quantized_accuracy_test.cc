// Elementwise operators of 8-bit values beside real arithmetic: within one step of the output.
#include "kernels/elementwise/elementwise.h"
#include "tests/kernels/broadcast_cases.h"

namespace fuselite::kernels::testing {
namespace {

TEST(QuantizedAccuracyTest, BinaryIsNearRealArithmetic) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const char* name = random.Pick({"ADD", "SUB", "MUL"});
    const bool is_signed = random.Chance(0.5);
    const DataType type = is_signed ? DataType::kInt8 : DataType::kUInt8;
    const int low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    const auto quantization = [&](float scale) {
      return Quantization{.scales = {scale},
                          .zero_points = {static_cast<int32_t>(random.Int(low, high))}};
    };
    const ShapePair shapes = RandomShapes(random);
    TestTensor x({.type = type, .shape = shapes.x, .quantization = quantization(0.02f)});
    TestTensor y({.type = type,
                  .shape = shapes.y,
                  .quantization = quantization(random.Float(0.01f, 0.05f))});
    x.Fill(random, low, high);
    y.Fill(random, low, high);
    OpTester tester(name);
    tester.Input(x).Input(y);
    const Quantization out = quantization(0.06f);
    tester.Output(type, out);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    const auto actual = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(actual.ok());
    const auto at = [&](const TestTensor& t, int64_t i) {
      return is_signed ? int{t.at<int8_t>(i)} : int{t.at<uint8_t>(i)};
    };
    const auto real = [&](const TestTensor& t, int64_t i) {
      TestTensor floats({.type = DataType::kFloat32, .shape = t.info().shape});
      for (int64_t k = 0; k < t.info().elements(); ++k) {
        floats.at<float>(k) = t.info().quantization.scale() *
                              static_cast<float>(at(t, k) - t.info().quantization.zero_point());
      }
      return BroadcastElement(floats, shapes.out, i);
    };
    for (int64_t i = 0; i < std::min<int64_t>(shapes.out.elements(), 50); ++i) {
      const float a = real(x, i), b = real(y, i);
      const float exact = name[0] == 'A' ? a + b : name[0] == 'S' ? a - b : a * b;
      const float step = std::clamp(exact / out.scale() + static_cast<float>(out.zero_point()),
                                    static_cast<float>(low), static_cast<float>(high));
      ASSERT_NEAR(at((*actual)[0], i), step, 0.51f) << name << i;
    }
    for (const Isa isa : RunnableIsas()) {
      const auto fast = tester.Run("highway", isa, seed);
      if (fast.ok()) ExpectSame<int8_t>((*actual)[0], (*fast)[0], name);
      EXPECT_TRUE(fast.ok() || fast.status().code() == StatusCode::kUnsupported);
    }
  }
}

TEST(QuantizedAccuracyTest, UnaryIsNearRealArithmetic) {
  const struct {
    const char* name;
    float out_scale, tolerance;
    float (*exact)(float);
  } kOperators[] = {
      {"LOGISTIC", 1.0f / 256, 0.51f, [](float x) { return 1 / (1 + std::exp(-x)); }},
      {"TANH", 1.0f / 128, 0.51f, [](float x) { return std::tanh(x); }},
      {"RELU", 0.06f, 0.51f, [](float x) { return std::max(x, 0.0f); }},
      {"RELU6", 0.03f, 0.51f, [](float x) { return std::clamp(x, 0.0f, 6.0f); }},
      {"LEAKY_RELU", 0.07f, 0.76f, [](float x) { return x < 0 ? 0.25f * x : x; }},
      {"HARD_SWISH", 0.06f, 1.01f, [](float x) { return x * std::clamp(x + 3, 0.0f, 6.0f) / 6; }},
  };
  for (const auto& [name, out_scale, tolerance, exact] : kOperators) {
    SCOPED_TRACE(name);
    std::vector<int8_t> all(256);
    for (int i = 0; i < 256; ++i) all[i] = static_cast<int8_t>(i - 128);
    OpTester tester(name);
    if (std::string_view(name) == "LEAKY_RELU") tester.params<LeakyReluParams>().alpha = 0.25f;
    tester.Input(TestTensor::Of<int8_t>(DataType::kInt8, {256}, all,
                                        {.scales = {0.05f}, .zero_points = {-3}}));
    tester.Output(DataType::kInt8, {.scales = {out_scale}, .zero_points = {-20}});
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    const auto actual = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(actual.ok());
    for (int i = 0; i < 256; ++i) {
      const float x = 0.05f * static_cast<float>(i - 128 + 3);
      const float step = std::clamp(exact(x) / out_scale - 20, -128.0f, 127.0f);
      ASSERT_NEAR((*actual)[0].at<int8_t>(i), step, tolerance) << x;
    }
    for (const Isa isa : RunnableIsas()) {
      const auto fast = tester.Run("highway", isa);
      if (fast.ok()) ExpectSame<int8_t>((*actual)[0], (*fast)[0], name);
    }
  }
}

TEST(QuantizedAccuracyTest, RefusesScales) {
  const auto infer = [](float scale, int32_t zero_point) {
    OpTester tester("LOGISTIC");
    tester.Input(TestTensor({.type = DataType::kInt8,
                             .shape = {4},
                             .quantization = {.scales = {0.1f}, .zero_points = {0}}}));
    tester.Output(DataType::kInt8, {.scales = {scale}, .zero_points = {zero_point}});
    return tester.Infer().ok();
  };
  EXPECT_TRUE(infer(1.0f / 256, -128));
  EXPECT_FALSE(infer(1.0f / 128, -128));
  EXPECT_FALSE(infer(1.0f / 256, -129));
  EXPECT_FALSE(infer(0, 0));
}

}  // namespace
}  // namespace fuselite::kernels::testing
