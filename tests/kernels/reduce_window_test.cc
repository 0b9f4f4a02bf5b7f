// Windows by rows give the bits of the reference, which takes each output's values one by one.
#include "kernels/reduce_window/reduce_window.h"

#include <iterator>
#include <limits>

#include "kernels/reduce_window/stablehlo.h"
#include "tests/kernels/beside_reference.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kInt8,
                               DataType::kUInt8,   DataType::kInt16,   DataType::kInt32,
                               DataType::kInt64,   DataType::kBool};

TestTensor Values(Random& random, DataType type, const Shape& shape) {
  TestTensor tensor({.type = type, .shape = shape});
  tensor.Fill(random, type == DataType::kUInt8 ? 0 : -120, 120);
  return tensor;
}

// Windows that reach beyond both ends, skip elements, or cover one; in the innermost dimensions
// mostly, the last of which may have many elements or none that a window covers.
WindowDim RandomWindow(Random& random) {
  if (random.Chance(0.4)) return {};
  WindowDim w{.size = random.Int(1, 4), .stride = random.Int(1, 3), .dilation = random.Int(1, 2)};
  if (random.Chance(0.5)) w.low = random.Int(-1, 4);
  if (random.Chance(0.5)) w.high = random.Int(-1, 4);
  if (random.Chance(0.2)) w.base = random.Int(1, 3);
  return w;
}

// Sets what the file says of dimension `d`.
void SetWindow(StablehloReduceWindowParams& p, int d, const WindowDim& w) {
  p.sizes.count = p.strides.count = p.window_dilations.count = p.base_dilations.count = d + 1;
  p.padding.count = 2 * (d + 1);
  p.sizes.values[d] = w.size;
  p.strides.values[d] = w.stride;
  p.window_dilations.values[d] = w.dilation;
  p.base_dilations.values[d] = w.base;
  p.padding.values[2 * d] = w.low;
  p.padding.values[2 * d + 1] = w.high;
}

TEST(ReduceWindowTest, RowsMatchTheReference) {
  int compared = 0;
  for (int seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const DataType type = kTypes[random.Int(0, std::size(kTypes) - 1)];
    const int rank = random.Int(1, 4);
    OpTester tester("STABLEHLO_REDUCE_WINDOW");
    auto& p = tester.params<StablehloReduceWindowParams>();
    p.function = static_cast<WindowFunction>(random.Int(1, 6));
    Shape shape;
    for (int d = 0; d < rank; ++d) {
      SetWindow(p, d, RandomWindow(random));
      shape.push_back(random.Int(1, d + 1 < rank ? 9 : 150));
    }
    tester.Input(Values(random, type, shape)).Input(Values(random, type, {}));
    // Windows may fit nowhere.
    if (!tester.Infer().ok() || tester.op.outputs[0].elements() == 0) continue;
    ++compared;
    ExpectLikeReference(tester, random);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 200);
}

// More elements than are computed at once, as a sum over all that come before each has them.
TEST(ReduceWindowTest, LongRowsMatchTheReference) {
  for (const int64_t stride : {1, 2}) {
    SCOPED_TRACE(stride);
    Random random(7);
    OpTester tester("STABLEHLO_REDUCE_WINDOW");
    auto& p = tester.params<StablehloReduceWindowParams>();
    p.function = WindowFunction::kAdd;
    SetWindow(p, 0, {.size = 40, .stride = stride, .low = 39});
    tester.Input(Values(random, DataType::kFloat32, {5000}));
    tester.Input(Values(random, DataType::kFloat32, {}));
    ASSERT_TRUE(tester.Infer().ok());
    ExpectLikeReference(tester, random);
  }
}

TEST(ReduceWindowTest, ExtremesOfSpecialValuesMatchTheReference) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x;
  for (const float a : {kNan, -kInfinity, -0.0F, 0.0F, 1.0F, kInfinity}) {
    for (const float b : {kNan, -kInfinity, -0.0F, 0.0F, 1.0F, kInfinity}) {
      x.insert(x.end(), {a, b, 0.5F});
    }
  }
  for (const WindowFunction function : {WindowFunction::kMinimum, WindowFunction::kMaximum}) {
    for (const float initial : {kNan, -0.0F, 0.0F, -kInfinity, kInfinity}) {
      Random random(1);
      OpTester tester("STABLEHLO_REDUCE_WINDOW");
      auto& p = tester.params<StablehloReduceWindowParams>();
      p.function = function;
      SetWindow(p, 0, {.size = 2});
      const Shape shape = {static_cast<int32_t>(x.size())};
      tester.Input(TestTensor::Of<float>(DataType::kFloat32, shape, x));
      tester.Input(TestTensor::Of<float>(DataType::kFloat32, {}, {initial}));
      ASSERT_TRUE(tester.Infer().ok());
      ExpectLikeReference(tester, random);
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
