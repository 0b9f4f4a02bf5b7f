// Random convolutions of volumes, and transposed ones.
#pragma once

#include "kernels/conv3d/conv3d.h"
#include "tests/kernels/float_cases.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::kernels::testing {

// Filters have at least `min_taps` taps along each axis; strides are up to 3.
inline OpTester RandomConv3D(Random& random, bool transposed, int32_t min_taps = 1) {
  const auto size = [&](int64_t low, int64_t high) {
    return static_cast<int32_t>(random.Int(low, high));
  };
  const int32_t batch = size(1, 3), inputs = size(1, 20), outputs = size(1, 40);
  const Shape large = {batch, size(3, 6), size(6, 9), size(8, 20), transposed ? outputs : inputs};
  OpTester tester(transposed ? "CONV_3D_TRANSPOSE" : "CONV_3D");
  auto& params = tester.params<Conv3DParams>();
  params.padding = random.Pick({Padding::kSame, Padding::kValid});
  params.stride_d = size(1, 2);
  params.stride_h = size(1, 2);
  params.stride_w = size(1, 3);
  params.activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6});
  const Shape taps = {size(min_taps, 3), size(min_taps, 3), size(min_taps, 3)};
  for (int32_t* dilation : {&params.dilation_d, &params.dilation_h, &params.dilation_w}) {
    const bool dilates = !transposed && params.padding == Padding::kSame && random.Chance(0.2);
    *dilation = dilates ? 2 : 1;
  }
  const auto floats = [&](const Shape& shape, bool may_pitch) {
    TestTensor tensor({.type = DataType::kFloat32,
                       .shape = shape,
                       .row_pitch = may_pitch ? RandomPitch(random, shape.dim(-1)) : 0},
                      4 * random.Int(0, 3));
    tensor.Fill(random, -1, 1);
    return tensor;
  };
  const auto constant = [&](const TestTensor& tensor) {
    random.Chance(0.8) ? tester.Constant(tensor) : tester.Input(tensor);
  };
  if (!transposed) {
    tester.Input(floats(large, true));
    constant(floats({taps[0], taps[1], taps[2], inputs, outputs}, false));
  } else {
    const std::vector<int32_t> dims = {large[0], large[1], large[2], large[3], large[4]};
    tester.Constant(TestTensor::Of<int32_t>(DataType::kInt32, {5}, dims));
    constant(floats({taps[0], taps[1], taps[2], outputs, inputs}, false));
    tester.op.inputs.push_back({.type = DataType::kFloat32, .shape = large});
    const Result<Window3D> window = [&] {
      OpTester sizes = tester;
      return ResolveConv3D(sizes.op, large);
    }();
    tester.op.inputs.pop_back();
    EXPECT_TRUE(window.ok()) << window.status().ToString();
    const auto& [d, h, w] = window->axes;
    tester.Input(floats({batch, d.output, h.output, w.output, inputs}, true));
  }
  if (random.Chance(0.7)) constant(floats({outputs}, false));
  return tester;
}

inline double Conv3DDepth(const OpTester& tester) {
  return static_cast<double>(tester.op.inputs[1].shape.elements(0, 5)) /
         tester.op.outputs[0].shape.dim(-1);
}

}  // namespace fuselite::kernels::testing
