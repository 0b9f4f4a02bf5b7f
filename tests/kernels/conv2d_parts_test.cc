// Dilated convolutions in parts: each output in one of them, with the taps that lie in the image.
#include "kernels/conv2d/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {
namespace {

constexpr int64_t kChannels = 5;

WindowAxis SameAxis(int32_t size, int32_t dilation) {
  return {.input = size,
          .filter = 3,
          .dilation = dilation,
          .output = size,
          .before = dilation,
          .after = dilation};
}

using Places = std::map<std::pair<int32_t, int32_t>, std::vector<int64_t>>;

// The taps of each output, as the parts have them; nothing where two parts have an output.
Places TapsOf(const std::vector<ProductPart>& parts) {
  Places places;
  for (const ProductPart& part : parts) {
    for (int32_t y = 0; y < part.window.y.output; ++y) {
      for (int32_t x = 0; x < part.window.x.output; ++x) {
        if (!places.try_emplace({part.out_y + y, part.out_x + x}, part.taps).second) return {};
      }
    }
  }
  return places;
}

// The taps of an output that lie inside, by definition.
std::vector<int64_t> TapsInside(const Window& window, int32_t oy, int32_t ox) {
  std::vector<int64_t> taps;
  for (int32_t ky = 0; ky < 3; ++ky) {
    for (int32_t kx = 0; kx < 3; ++kx) {
      const int32_t iy = window.y.start(oy) + ky * window.y.dilation;
      const int32_t ix = window.x.start(ox) + kx * window.x.dilation;
      const bool inside = iy >= 0 && iy < window.y.input && ix >= 0 && ix < window.x.input;
      if (inside) taps.push_back((ky * 3 + kx) * kChannels);
    }
  }
  return taps;
}

TEST(PartsByTaps, LeaveOutWhatMeetsPaddingAlone) {
  for (const auto& [size, dilation] : {std::pair{33, 12}, {33, 6}, {65, 18}, {65, 36}, {26, 11}}) {
    SCOPED_TRACE(::testing::Message() << size << " by " << dilation);
    const Window window = {SameAxis(size, dilation), SameAxis(size, dilation)};
    const std::vector<ProductPart> parts = PartsByTaps(window, 1, kChannels);
    ASSERT_GT(parts.size(), 1u);
    const Places places = TapsOf(parts);
    ASSERT_EQ(places.size(), static_cast<size_t>(size * size));
    for (const auto& [output, taps] : places) {
      ASSERT_EQ(taps, TapsInside(window, output.first, output.second))
          << output.first << ' ' << output.second;
    }
    // The first tap of a part's first window, in the padded image.
    for (const ProductPart& part : parts) {
      const int64_t tap = part.taps.front() / kChannels;
      EXPECT_EQ(part.first_y, part.out_y + tap / 3 * dilation);
      EXPECT_EQ(part.first_x, part.out_x + tap % 3 * dilation);
    }
  }
}

// Of 33 outputs three have but one tap, or one has all of them: they join their neighbours.
TEST(PartsByTaps, AreLargeEnoughForTiles) {
  for (const int32_t dilation : {16, 18}) {
    const Window window = {SameAxis(33, dilation), SameAxis(33, dilation)};
    const std::vector<ProductPart> parts = PartsByTaps(window, 1, kChannels);
    EXPECT_EQ(parts.size(), 4u) << dilation;
    for (const ProductPart& part : parts) {
      EXPECT_GE(std::min(part.window.y.output, part.window.x.output), 15) << dilation;
    }
  }
}

// A single tap of each window lies in the image, whose rows are padded all the same.
TEST(PartsByTaps, OfOneTapAreNoRowsOfPixels) {
  const Window window = {{.input = 5, .output = 5}, SameAxis(2, 2)};
  const std::vector<ProductPart> parts = PartsByTaps(window, 1, kChannels);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].taps, std::vector<int64_t>({kChannels}));
  EXPECT_FALSE(PixelsFollow(parts[0].window));
}

// Whatever the window, each output has its taps, others of which meet padding.
TEST(PartsByTaps, HaveEachOutputOnce) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto axis = [&] {
      WindowAxis axis = SameAxis(static_cast<int32_t>(random.Int(3, 40)),
                                 static_cast<int32_t>(random.Int(1, 20)));
      axis.stride = static_cast<int32_t>(random.Int(1, 2));
      axis.before = static_cast<int32_t>(random.Int(0, 2 * axis.dilation));
      axis.output = static_cast<int32_t>(random.Int(1, (axis.input - 1) / axis.stride + 1));
      return axis;
    };
    const Window window = {axis(), axis()};
    const auto parts = PartsByTaps(window, random.Int(1, 4), kChannels);
    if (parts.size() == 1 && parts[0].taps.empty()) continue;
    const Places places = TapsOf(parts);
    ASSERT_EQ(places.size(), static_cast<size_t>(window.y.output * window.x.output));
    for (const auto& [output, taps] : places) {
      const std::vector<int64_t> inside = TapsInside(window, output.first, output.second);
      ASSERT_TRUE(std::ranges::includes(taps, inside));
    }
  }
}

// A dilation of one, few outputs for each pair of weights, and windows that seldom meet padding.
TEST(PartsByTaps, AreOneWhereMoreWouldNotPay) {
  for (const auto& [size, dilation] : {std::pair{33, 1}, {7, 3}, {65, 2}, {9, 8}}) {
    const Window window = {SameAxis(size, dilation), SameAxis(size, dilation)};
    EXPECT_EQ(PartsByTaps(window, 1, kChannels).size(), 1u) << size << ' ' << dilation;
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
