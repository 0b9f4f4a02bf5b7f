// STABLEHLO operators of a function that another subgraph is, and random bits: small cases worked
// out by hand. tests/python compares them with LiteRT on random parameters.
#include "kernels/reduce_window/stablehlo.h"
#include "kernels/lsh_projection/fingerprint.h"
#include "kernels/stablehlo/region.h"
#include "kernels/stablehlo/scatter.h"
#include "runtime/tflite/builtin_codes.h"
#include "tests/kernels/movement_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

TestTensor Floats(const Shape& shape, const std::vector<float>& values) {
  return TestTensor::Of<float>(DataType::kFloat32, shape, values);
}

std::vector<float> Values(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  auto outputs = tester.Run("reference", Isa::kScalar, 3, 1);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>();
}

// Rows of [2, 3] that vectors of one index name.
OpTester Scatter(ScatterFunction function) {
  OpTester tester("STABLEHLO_SCATTER");
  auto& p = tester.params<ScatterParams>();
  p.function = function;
  p.window_dims = {{1}, 1};
  p.inserted_dims = {{0}, 1};
  p.index_map = {{0}, 1};
  p.index_vector_dim = 1;
  tester.Input(Floats({2, 3}, {1, 2, 3, 4, 5, 6}))
      .Input(TestTensor::Of<int32_t>(DataType::kInt32, {4, 1}, {1, 1, 2, -1}));
  tester.Input(Floats({4, 3}, {10, 20, 30, 1, 1, 1, 7, 7, 7, 8, 8, 8}));
  return tester;
}

TEST(ScatterTest, UpdatesCountInTheirOrder) {
  OpTester last = Scatter(ScatterFunction::kUpdate);
  EXPECT_THAT(Values(last), ElementsAre(1, 2, 3, 1, 1, 1));
}

TEST(ScatterTest, WhatLiesOutsideIsLeftOut) {
  OpTester sum = Scatter(ScatterFunction::kAdd);
  EXPECT_THAT(Values(sum), ElementsAre(1, 2, 3, 15, 26, 37));
}

TEST(RegionTest, OneOperatorIsAFunction) {
  const OperatorDef& scatter = *FindOperator("STABLEHLO_SCATTER");
  Params params;
  EXPECT_EQ(RegionOf(*FindOperator("ADD"), params), std::nullopt);
  params.as<ScatterParams>().subgraph = 3;
  EXPECT_EQ(RegionOf(scatter, params), 3);
  ASSERT_TRUE(ReadRegion(scatter, {}, params).ok());
  EXPECT_EQ(params.as<ScatterParams>().function, ScatterFunction::kUpdate);
  const int sum[] = {tflite::kTfLiteBuiltinAdd};
  EXPECT_EQ(ReadRegion(scatter, sum, params).code(), StatusCode::kUnsupported);
  const OperatorDef& windows = *FindOperator("STABLEHLO_REDUCE_WINDOW");
  ASSERT_TRUE(ReadRegion(windows, sum, params).ok());
  EXPECT_EQ(params.as<StablehloReduceWindowParams>().function, WindowFunction::kAdd);
}

TEST(StablehloReduceWindowTest, WhatIsPaddedIsTheInitialValue) {
  OpTester tester("STABLEHLO_REDUCE_WINDOW");
  auto& p = tester.params<StablehloReduceWindowParams>();
  p.function = WindowFunction::kAdd;
  p.sizes = p.strides = {{2}, 1};
  p.window_dilations = {{1}, 1};
  p.base_dilations = {{2}, 1};
  p.padding = {{1, 0}, 2};
  // The windows lie over 100, 1, 100, 2, 100, 3: each window begins with 100, too.
  tester.Input(Floats({3}, {1, 2, 3})).Input(Floats({}, {100}));
  EXPECT_THAT(Values(tester), ElementsAre(201, 202, 203));
}

TEST(StablehloReduceWindowTest, CuttingEverythingOffIsRefused) {
  OpTester tester("STABLEHLO_REDUCE_WINDOW");
  auto& p = tester.params<StablehloReduceWindowParams>();
  p.function = WindowFunction::kAdd;
  p.sizes = p.strides = p.window_dilations = p.base_dilations = {{1}, 1};
  p.padding = {{-2, -1}, 2};
  tester.Input(Floats({3}, {1, 2, 3})).Input(Floats({}, {0}));
  EXPECT_EQ(tester.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(FingerprintTest, NothingHasTheConstantOfTheHash) {
  EXPECT_EQ(Fingerprint::Of(nullptr, 0), 0x9AE16A3B2F90404FU);
}

}  // namespace
}  // namespace fuselite::kernels::testing
