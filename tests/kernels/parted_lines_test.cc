#include "kernels/depthwise_conv2d/parted_lines.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/random.h"

namespace fuselite::kernels {
namespace {

using testing::Random;

Window Line(int32_t input, int32_t filter, Padding padding, int32_t stride = 1,
            int32_t dilation = 1) {
  return *ResolveWindow({.input_h = 1,
                         .input_w = input,
                         .filter_w = filter,
                         .stride_w = stride,
                         .dilation_w = dilation,
                         .padding = padding});
}

// Each output reads the taps in a part's window that it reads in the line's: they lie where they
// lie there, and none is padding that is not there.
void ExpectSameTaps(const Window& line, const std::vector<LinePart>& parts) {
  int32_t output = 0;
  for (const LinePart& part : parts) {
    EXPECT_EQ(part.first, output);
    const WindowAxis& x = part.window.x;
    ASSERT_GT(x.input, 0);
    EXPECT_LE(part.first_input + x.input, line.x.input);
    for (int32_t o = 0; o < x.output; ++o, ++output) {
      const int32_t start = x.start(o), of_line = line.x.start(output);
      EXPECT_EQ(part.first_input + start, of_line);
      EXPECT_EQ(x.first_tap(start), line.x.first_tap(of_line));
      EXPECT_EQ(x.last_tap(start), line.x.last_tap(of_line));
    }
  }
  EXPECT_EQ(output, line.x.output);
}

TEST(PartedLines, OutputsReadWhatTheyReadInTheLine) {
  int parted = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto dilation = static_cast<int32_t>(random.Int(1, 9));
    const Window line =
        Line(static_cast<int32_t>(random.Int(1, 2000)), static_cast<int32_t>(random.Int(1, 40)),
             Padding::kSame, static_cast<int32_t>(random.Int(1, 3)), dilation);
    const std::vector<LinePart> parts =
        PartsOfLine(line, random.Int(1, 3), static_cast<int>(random.Int(1, 9)));
    ExpectSameTaps(line, parts);
    parted += parts.size() > 1;
    if (HasFailure()) return;
  }
  EXPECT_GT(parted, 150);
}

TEST(PartedLines, PartsBetweenTheEndsAreAlike) {
  const std::vector<LinePart> parts = PartsOfLine(Line(1024, 5, Padding::kSame), 1, 2);
  ASSERT_EQ(parts.size(), 16);
  for (size_t i = 2; i + 1 < parts.size(); ++i) {
    EXPECT_EQ(parts[i].window.x.input, parts[1].window.x.input);
    EXPECT_EQ(parts[i].window.x.before, 0);
    EXPECT_EQ(parts[i].window.x.after, 0);
  }
  EXPECT_EQ(parts.front().window.x.before, 2);
  EXPECT_EQ(parts.back().window.x.after, 2);
}

TEST(PartedLines, LeavesLinesWhole) {
  const Window line = Line(1024, 5, Padding::kSame);
  EXPECT_EQ(PartsOfLine(line, 1, 1).size(), 1);                         // one thread
  EXPECT_EQ(PartsOfLine(line, 16, 2).size(), 1);                        // enough of them
  EXPECT_EQ(PartsOfLine(Line(63, 5, Padding::kSame), 1, 2).size(), 1);  // short ones
  Window rows = line;
  rows.y = {.input = 2, .output = 2};
  EXPECT_EQ(PartsOfLine(rows, 1, 2).size(), 1);
}

}  // namespace
}  // namespace fuselite::kernels
