#include "kernels/window.h"

#include <gtest/gtest.h>

#include <utility>

namespace fuselite::kernels {
namespace {

WindowAxis Axis(WindowRequest request) {
  Result<Window> window = ResolveWindow(request);
  EXPECT_TRUE(window.ok()) << window.status().ToString();
  return window.ok() ? window->x : WindowAxis{};
}

WindowRequest Row(int32_t input, int32_t filter, int32_t stride, int32_t dilation,
                  Padding padding) {
  return {.input_h = 1,
          .input_w = input,
          .filter_w = filter,
          .stride_w = stride,
          .dilation_w = dilation,
          .padding = padding};
}

TEST(WindowTest, SamePutsTheOddPaddingBehind) {
  const WindowAxis axis = Axis(Row(224, 3, 2, 1, Padding::kSame));
  EXPECT_EQ(axis.output, 112);
  EXPECT_EQ(axis.before, 0);
  EXPECT_EQ(axis.after, 1);
  EXPECT_EQ(axis.interior_begin(), 0);
  EXPECT_EQ(axis.interior_end(), 111);
}

TEST(WindowTest, SameWithDilation) {
  const WindowAxis axis = Axis(Row(10, 3, 1, 4, Padding::kSame));
  EXPECT_EQ(axis.output, 10);
  EXPECT_EQ(axis.before, 4);
  EXPECT_EQ(axis.after, 4);
  EXPECT_EQ(axis.interior_begin(), 4);
  EXPECT_EQ(axis.interior_end(), 6);
  EXPECT_EQ(axis.first_tap(axis.start(0)), 1);
  EXPECT_EQ(axis.last_tap(axis.start(0)), 3);
  EXPECT_EQ(axis.first_tap(axis.start(9)), 0);
  EXPECT_EQ(axis.last_tap(axis.start(9)), 2);
}

TEST(WindowTest, SameWithAStrideBeyondTheFilterNeedsNoPadding) {
  const WindowAxis axis = Axis(Row(9, 1, 4, 1, Padding::kSame));
  EXPECT_EQ(axis.output, 3);
  EXPECT_EQ(axis.before, 0);
}

TEST(WindowTest, ValidCountsWindowsThatFit) {
  const WindowAxis axis = Axis(Row(11, 3, 2, 2, Padding::kValid));
  EXPECT_EQ(axis.output, 4);
  EXPECT_EQ(axis.interior_end(), 4);
}

TEST(WindowTest, ValidHasNoOutputsWhereTheInputIsALittleTooSmall) {
  EXPECT_EQ(Axis(Row(2, 3, 1, 1, Padding::kValid)).output, 0);
  EXPECT_FALSE(ResolveWindow(Row(1, 3, 1, 1, Padding::kValid)).ok());
}

TEST(WindowTest, PoolsHaveNoOutputsWhereTheInputIsMuchTooSmall) {
  const auto outputs = [](int32_t height, int32_t width) {
    const auto window = ResolveWindow({.input_h = height,
                                       .input_w = width,
                                       .filter_h = 3,
                                       .filter_w = 3,
                                       .padding = Padding::kValid,
                                       .none_in_too_small = true});
    EXPECT_TRUE(window.ok());
    return std::pair(window->y.output, window->x.output);
  };
  for (const int32_t size : {0, 1}) {
    EXPECT_EQ(outputs(size, 7), std::pair(0, 5));
    EXPECT_EQ(outputs(7, size), std::pair(0, 0));
  }
  EXPECT_EQ(outputs(7, 2), std::pair(5, 0));
}

TEST(WindowTest, ExtraPaddingComesFirst) {
  WindowRequest request = Row(224, 3, 2, 1, Padding::kValid);
  request.extra = {.top = 0, .left = 1, .bottom = 0, .right = 1};
  const WindowAxis axis = Axis(request);
  EXPECT_EQ(axis.output, 112);
  EXPECT_EQ(axis.before, 1);
  EXPECT_EQ(axis.interior_begin(), 1);
  EXPECT_EQ(axis.interior_end(), 112);
  request.padding = Padding::kSame;
  EXPECT_EQ(Axis(request).output, 113);
}

TEST(WindowTest, TapsInsideAreThoseOfAScan) {
  for (int32_t input : {1, 2, 5, 9}) {
    for (int32_t filter : {1, 2, 3, 7}) {
      for (int32_t stride : {1, 2, 3}) {
        for (int32_t dilation : {1, 2, 5}) {
          const WindowAxis axis = Axis(Row(input, filter, stride, dilation, Padding::kSame));
          for (int32_t o = 0; o < axis.output; ++o) {
            int32_t inside = 0;
            for (int32_t k = 0; k < filter; ++k) {
              const int32_t at = axis.start(o) + k * dilation;
              const bool in = at >= 0 && at < input;
              inside += in;
              EXPECT_EQ(in, k >= axis.first_tap(axis.start(o)) && k < axis.last_tap(axis.start(o)));
            }
            EXPECT_EQ(inside == filter, o >= axis.interior_begin() && o < axis.interior_end());
          }
        }
      }
    }
  }
}

// Each number alone out of range, along each axis.
TEST(WindowTest, RefusesWhatCannotBe) {
  using Member = int32_t WindowRequest::*;
  const WindowRequest good = {.input_h = 5, .input_w = 5, .filter_h = 3, .filter_w = 3};
  ASSERT_TRUE(ResolveWindow(good).ok());
  for (const Member member :
       {&WindowRequest::filter_h, &WindowRequest::filter_w, &WindowRequest::stride_h,
        &WindowRequest::stride_w, &WindowRequest::dilation_h, &WindowRequest::dilation_w}) {
    for (const int32_t wrong : {0, -1}) {
      WindowRequest request = good;
      request.*member = wrong;
      EXPECT_FALSE(ResolveWindow(request).ok());
    }
  }
  for (const Member member : {&WindowRequest::input_h, &WindowRequest::input_w}) {
    WindowRequest request = good;
    // Padded to five: the size alone is what is wrong.
    request.extra = {.top = 3, .left = 3, .bottom = 3, .right = 3};
    request.*member = -1;
    EXPECT_FALSE(ResolveWindow(request).ok());
  }
  for (int32_t ExtraPadding::*const member :
       {&ExtraPadding::top, &ExtraPadding::left, &ExtraPadding::bottom, &ExtraPadding::right}) {
    WindowRequest request = good;
    request.extra.*member = -1;
    EXPECT_FALSE(ResolveWindow(request).ok());
  }
  EXPECT_FALSE(ResolveWindow(Row(5, 7, 1, 1, Padding::kValid)).ok());
  EXPECT_FALSE(ResolveWindow(Row(5, INT32_MAX, 1, INT32_MAX, Padding::kSame)).ok());
  EXPECT_FALSE(ResolveWindow(Row(5, 2, INT32_MAX, 1, Padding::kSame)).ok());
}

TEST(WindowTest, PositionsStayBelowHalfOfTheirRange) {
  // input + filter + stride = 2^30 along each axis.
  EXPECT_TRUE(ResolveWindow(Row((1 << 30) - 2, 1, 1, 1, Padding::kValid)).ok());
  EXPECT_FALSE(ResolveWindow(Row((1 << 30) - 1, 1, 1, 1, Padding::kValid)).ok());
  WindowRequest tall = {.input_h = (1 << 30) - 2, .input_w = 1};
  EXPECT_TRUE(ResolveWindow(tall).ok());
  ++tall.input_h;
  EXPECT_EQ(ResolveWindow(tall).status().code(), StatusCode::kUnsupported);
}

TEST(WindowTest, WindowsBeyondTheInputHaveNoInterior) {
  const WindowAxis axis = Axis(Row(3, 9, 1, 1, Padding::kSame));
  EXPECT_EQ(axis.output, 3);
  EXPECT_EQ(axis.interior_begin(), axis.interior_end());
  // An input as long as the filter: only the window that covers all of it is interior.
  const WindowAxis one = Axis(Row(3, 3, 1, 1, Padding::kSame));
  EXPECT_EQ(one.interior_begin(), 1);
  EXPECT_EQ(one.interior_end(), 2);
}

}  // namespace
}  // namespace fuselite::kernels
