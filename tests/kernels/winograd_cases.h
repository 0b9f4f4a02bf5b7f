// Convolutions that Winograd's algorithm computes.
#pragma once

#include <algorithm>
#include <random>

#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::kernels::testing {

// Mostly none, up to a window as large as `size`.
inline int32_t RandomDilation(Random& random, int32_t size) {
  const int64_t most = std::max(1, (size - 1) / 2);
  return static_cast<int32_t>(random.Pick<int64_t>({1, 1, random.Int(1, most)}));
}

// A 3x3 convolution over n images of h x w, with everything but the stride at random.
inline OpTester RandomWinogradCase(Random& random, Shape image, int32_t channels_out,
                                   int32_t stride = 1) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  RandomWindow(random, params);
  params.stride_h = params.stride_w = stride;
  params.dilation_h = stride == 1 ? RandomDilation(random, image[1]) : 1;
  params.dilation_w = stride == 1 ? RandomDilation(random, image[2]) : 1;
  const int32_t channels_in = image.dim(-1);
  tester.Input(RandomFloats(random, image, RandomPitch(random, channels_in)));
  AddWeights(tester, random, {channels_out, 3, 3, channels_in}, channels_out,
             {.run_time_weights = false});
  return tester;
}

inline OpTester RandomSmallWinogradCase(Random& random, int32_t stride = 1) {
  const auto size = [&](int64_t low, int64_t high) {
    return static_cast<int32_t>(random.Int(low, high));
  };
  const Shape image = {size(1, 3), size(3, 19), size(3, 19),
                       random.Pick({1, 2, 3, 7, 8, 15, 16, 17, 31, 40})};
  return RandomWinogradCase(random, image, random.Pick({1, 3, 7, 8, 9, 16, 24, 63, 65, 70, 130}),
                            stride);
}

// The error of normally distributed operands, against sums in double precision, as a part of the
// bound of docs/design.md.
inline double PartOfBound(const Candidate& candidate, int32_t channels, Isa isa,
                          int32_t stride = 1) {
  std::mt19937_64 engine(7);
  std::normal_distribution<float> normal;
  const auto fill = [&](const TestTensor& tensor) {
    for (int64_t i = 0; i < tensor.info().elements(); ++i) tensor.at<float>(i) = normal(engine);
    return tensor;
  };
  constexpr int32_t kSize = 12, kChannelsOut = 16;
  const int32_t side = (kSize - 1) * stride + 3;
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  params.stride_h = params.stride_w = stride;
  params.dilation_h = params.dilation_w = 1;
  params.padding = Padding::kValid;
  const TestTensor x =
      fill(TestTensor({.type = DataType::kFloat32, .shape = {1, side, side, channels}}));
  const TestTensor w =
      fill(TestTensor({.type = DataType::kFloat32, .shape = {kChannelsOut, 3, 3, channels}}));
  tester.Input(x);
  tester.Constant(w);
  EXPECT_TRUE(tester.Infer().ok());
  auto y = tester.RunCandidate(candidate, isa, 1, 1);
  EXPECT_TRUE(y.ok()) << y.status().ToString();
  if (!y.ok()) return 1;
  double worst = 0;
  for (int64_t i = 0; i < kSize * kSize * kChannelsOut; ++i) {
    const int64_t n = i % kChannelsOut, ox = i / kChannelsOut % kSize,
                  oy = i / kChannelsOut / kSize;
    double sum = 0, magnitudes = 0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t pixel = (oy * stride + tap / 3) * side + ox * stride + tap % 3;
      for (int64_t c = 0; c < channels; ++c) {
        const double product = double{x.at<float>(pixel * channels + c)} *
                               double{w.at<float>((n * 9 + tap) * channels + c)};
        sum += product;
        magnitudes += std::abs(product);
      }
    }
    const double bound = 1e-5 + 4 * double{kEpsilon} * std::sqrt(9.0 * channels) * magnitudes;
    worst = std::max(worst, std::abs((*y)[0].at<float>(i) - sum) / bound);
  }
  return worst;
}

}  // namespace fuselite::kernels::testing
