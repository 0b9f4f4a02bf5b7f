// TensorFlow's operators that converters leave in models.
#include <algorithm>
#include <cmath>

#include "kernels/tensorflow/bicubic.h"
#include "kernels/tensorflow/node_def.h"
#include "kernels/tensorflow/patches.h"
#include "kernels/tensorflow/pool3d.h"
#include "tests/kernels/node_def_writer.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr DataType kF32 = DataType::kFloat32;

TEST(NodeDef, HasItsAttributes) {
  for (const bool packed : {true, false}) {
    const std::vector<std::byte> options = NodeDefWriter("MaxPool3D")
                                               .Integers("ksize", {1, 2, 3000, -1}, packed)
                                               .Text("padding", "SAME")
                                               .Integer("num_split", 7)
                                               .Flag("align_corners", true)
                                               .Flag("half_pixel_centers", false)
                                               .Options();
    const Result<NodeDef> node = NodeDef::Read(options);
    ASSERT_TRUE(node.ok()) << node.status().ToString();
    EXPECT_THAT(node->Integers("ksize"), Optional(ElementsAre(1, 2, 3000, -1)));
    EXPECT_THAT(node->Text("padding"), Optional(std::string_view("SAME")));
    EXPECT_THAT(node->Flag("align_corners"), Optional(true));
    EXPECT_THAT(node->Flag("half_pixel_centers"), Optional(false));
    EXPECT_THAT(node->Integer("num_split"), Optional(7));
    EXPECT_EQ(node->Integer("padding"), std::nullopt);
    EXPECT_EQ(node->Integers("strides"), std::nullopt);
    EXPECT_EQ(node->Integers("padding"), std::nullopt);
    EXPECT_EQ(node->Text("ksize"), std::nullopt);
    EXPECT_EQ(node->Flag("padding"), std::nullopt);
  }
}

Status ReadPool3D(std::span<const std::byte> options, Pool3DParams* params) {
  return FindCustomOperator("FlexMaxPool3D")->read_custom(options, params);
}

// No byte of them is read outside, whatever is missing or changed.
TEST(NodeDef, OfAnyBytes) {
  const std::vector<std::byte> whole = NodeDefWriter("MaxPool3D")
                                           .Integers("ksize", {1, 2, 2, 2, 1})
                                           .Integers("strides", {1, 2, 2, 2, 1}, false)
                                           .Text("padding", "VALID")
                                           .Options();
  Pool3DParams params{};
  ASSERT_TRUE(ReadPool3D(whole, &params).ok());
  EXPECT_THAT(params.filter, ElementsAre(2, 2, 2));
  EXPECT_EQ(params.padding, Padding::kValid);
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes = whole;
    for (int64_t changes = random.Int(0, 3); changes > 0; --changes) {
      bytes[random.Int(0, static_cast<int64_t>(bytes.size()) - 1)] =
          static_cast<std::byte>(random.Int(0, 255));
    }
    bytes.resize(random.Chance(0.5) ? bytes.size() : random.Int(0, whole.size() - 1));
    (void)ReadPool3D(bytes, &params);
  }
  EXPECT_FALSE(ReadPool3D({}, &params).ok());
}

std::string RefusalOf(NodeDefWriter writer) {
  Pool3DParams params{};
  return ReadPool3D(writer.Options(), &params).message();
}

TEST(NodeDef, SaysWhatIsNotTaken) {
  const auto pool = [](const std::vector<int64_t>& filter) {
    return NodeDefWriter("MaxPool3D")
        .Integers("ksize", filter)
        .Integers("strides", {1, 1, 1, 1, 1});
  };
  EXPECT_EQ(RefusalOf(pool({1, 2, 2, 1}).Text("padding", "SAME")),
            "its attribute ksize is not a list of 5 whole numbers");
  EXPECT_EQ(RefusalOf(pool({1, 2, 0, 2, 1}).Text("padding", "SAME")),
            "its attribute ksize has a number that is not at least 1");
  EXPECT_EQ(RefusalOf(pool({2, 2, 2, 2, 1}).Text("padding", "SAME")),
            "does not take ksize over samples or channels");
  EXPECT_EQ(RefusalOf(pool({1, 2, 2, 2, 1}).Text("padding", "EXPLICIT")),
            "does not take a padding other than SAME and VALID");
  EXPECT_EQ(RefusalOf(pool({1, 2, 2, 2, 1}).Text("padding", "SAME").Text("data_format", "NCDHW")),
            "does not take another order of dimensions than NDHWC");
}

// Element `i` of the output, by the operator's definition.
double PooledValue(const OpTester& tester, const TestTensor& x, int64_t i) {
  const bool maxima = tester.op.op->name == "FlexMaxPool3D";
  const auto& filter = tester.op.params.as<Pool3DParams>().filter;
  const Shape &in = tester.op.inputs[0].shape, &out = tester.op.outputs[0].shape;
  const Window3D window = *ResolvePool3D(tester.op);
  const int64_t channel = i % out[4];
  int32_t start[3];
  i /= out[4];
  for (int d = 2; d >= 0; i /= out[d-- + 1]) {
    start[d] = window.axes[d].start(static_cast<int32_t>(i % out[d + 1]));
  }
  double total = maxima ? -INFINITY : 0;
  int taps = 0;
  for (int32_t tap = 0; tap < filter[0] * filter[1] * filter[2]; ++tap) {
    const int32_t at[] = {start[0] + tap / filter[2] / filter[1],
                          start[1] + tap / filter[2] % filter[1], start[2] + tap % filter[2]};
    int64_t element = i;  // the sample is left
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      inside = inside && at[d] >= 0 && at[d] < in[d + 1];
      element = element * in[d + 1] + at[d];
    }
    if (!inside) continue;
    const double value = x.at<float>(element * in[4] + channel);
    total = maxima ? std::max(total, value) : total + value;
    ++taps;
  }
  return maxima ? total : total / taps;
}

TEST(Pool3D, IsTheMaximumOrMeanOfItsWindow) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const bool maxima = random.Chance(0.5);
    OpTester tester(maxima ? "FlexMaxPool3D" : "FlexAvgPool3D");
    auto& p = tester.params<Pool3DParams>();
    p.padding = random.Pick({Padding::kSame, Padding::kValid});
    for (int d = 0; d < 3; ++d) {
      p.filter[d] = static_cast<int32_t>(random.Int(1, 3));
      p.stride[d] = static_cast<int32_t>(random.Int(1, 3));
    }
    const auto size = [&] { return static_cast<int32_t>(random.Int(3, 7)); };
    const Shape shape{2, size(), size(), size(), static_cast<int32_t>(random.Int(1, 5))};
    TestTensor x({.type = kF32, .shape = shape}, 4);
    x.Fill(random, -9, 9);
    tester.Input(x);
    ASSERT_TRUE(tester.Infer().ok());
    const auto outputs = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    const auto made = (*outputs)[0].values<float>();
    for (size_t i = 0; i < made.size(); ++i) {
      const double expected = PooledValue(tester, x, static_cast<int64_t>(i));
      ASSERT_NEAR(made[i], expected, maxima ? 0 : 1e-5) << "element " << i;
    }
  }
}

TEST(Patches, HaveTheTapsOfTheirWindows) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FlexExtractImagePatches");
    auto& p = tester.params<PatchesParams>();
    p.padding = random.Pick({Padding::kSame, Padding::kValid});
    for (int d = 0; d < 2; ++d) {
      p.filter[d] = static_cast<int32_t>(random.Int(1, 4));
      p.stride[d] = static_cast<int32_t>(random.Int(1, 3));
      p.dilation[d] = static_cast<int32_t>(random.Int(1, 2));
    }
    const auto size = [&] { return static_cast<int32_t>(random.Int(7, 12)); };
    const Shape shape{2, size(), size(), static_cast<int32_t>(random.Int(1, 5))};
    TestTensor x({.type = DataType::kInt16, .shape = shape}, 2);
    x.Fill(random, 1, 999);
    tester.Input(x);
    ASSERT_TRUE(tester.Infer().ok());
    const auto outputs = tester.Run("reference", Isa::kScalar, seed, 1);
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    const auto [y, z] = *ResolvePatches(tester.op);
    const int64_t taps = int64_t{y.filter} * z.filter, line = taps * shape[3];
    for (int64_t i = 0; i < tester.op.outputs[0].elements(); ++i) {
      const int64_t tap = i % line / shape[3], pixel = i / line, row = pixel / z.output;
      const int64_t iy =
          y.start(static_cast<int32_t>(row % y.output)) + tap / z.filter * y.dilation;
      const int64_t ix =
          z.start(static_cast<int32_t>(pixel % z.output)) + tap % z.filter * z.dilation;
      const bool inside = iy >= 0 && ix >= 0 && iy < shape[1] && ix < shape[2];
      const int64_t image = row / y.output * shape[1];
      const int16_t expected =
          inside ? x.at<int16_t>(((image + iy) * shape[2] + ix) * shape[3] + i % shape[3]) : 0;
      ASSERT_EQ((*outputs)[0].at<int16_t>(i), expected) << "element " << i;
    }
  }
}

// Enlarged twice, as TensorFlow 2.19 does it.
TEST(Bicubic, HasTensorFlowsNumbers) {
  struct Case {
    ResizeParams params;
    std::vector<float> expected;
  };
  const Case cases[] = {
      {{false, false}, {1, 3.0625f, 4, 0.8125f, -2, -0.0625f, 3, 3.46875f}},
      {{false, true},
       {0.735294223f, 1.70072985f, 3.7480917f, 2.875f, -1.0625f, -1.30534339f, 1.91970801f,
        3.44117665f}},
      {{true, false},
       {1, 2.73243809f, 4.10949564f, 2.52316952f, -0.829560995f, -1.86803365f, 0.427599788f, 3}},
  };
  for (const Case& c : cases) {
    OpTester tester("FlexResizeBicubic");
    tester.params<ResizeParams>() = c.params;
    TestTensor x({.type = kF32, .shape = {1, 1, 4, 1}});
    const float values[] = {1, 4, -2, 3};
    std::copy_n(values, 4, x.data<float>());
    TestTensor size({.type = DataType::kInt32, .shape = {2}});
    size.at<int32_t>(0) = 1;
    size.at<int32_t>(1) = 8;
    tester.Input(x).Constant(size);
    ASSERT_TRUE(tester.Infer().ok());
    const auto outputs = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    const auto made = (*outputs)[0].values<float>();
    for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], c.expected[i], 2e-6) << i;
  }
}

TEST(Bicubic, AgreesWithTheReferenceOnEveryIsa) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FlexResizeBicubic");
    tester.params<ResizeParams>() = random.Pick(
        {ResizeParams{false, false}, ResizeParams{true, false}, ResizeParams{false, true}});
    const auto any = [&](int64_t most) { return static_cast<int32_t>(random.Int(1, most)); };
    TestTensor x({.type = kF32, .shape = {any(2), any(9), any(30), any(20)}}, 4);
    x.Fill(random, -4, 4);
    TestTensor size({.type = DataType::kInt32, .shape = {2}});
    size.at<int32_t>(0) = any(20);
    size.at<int32_t>(1) = any(50);
    tester.Input(x).Constant(size);
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const Isa isa : RunnableIsas()) {
      SCOPED_TRACE(IsaName(isa));
      const auto actual = tester.Run("highway", isa, seed, 1);
      ASSERT_EQ(actual.ok(), isa.has_vectors()) << actual.status().ToString();
      if (!actual.ok()) continue;
      const auto wanted = (*expected)[0].values<float>(), made = (*actual)[0].values<float>();
      for (size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], wanted[i], 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
