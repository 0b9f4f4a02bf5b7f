#include "kernels/source/padded_image.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/source/converted_image.h"
#include "tests/kernels/random.h"

namespace fuselite::kernels {
namespace {

using testing::Random;

Window AnyWindow(Random& random, int64_t most_pixels) {
  const auto stride = static_cast<int32_t>(random.Int(1, 3));
  return *ResolveWindow(
      {.input_h = static_cast<int32_t>(random.Pick({1, 1, 2, 5})),
       .input_w = static_cast<int32_t>(random.Int(1, most_pixels)),
       .filter_h = static_cast<int32_t>(random.Int(1, 4)),
       .filter_w = static_cast<int32_t>(random.Int(2, 9)),
       .stride_h = stride,
       .stride_w = stride,
       .padding = Padding::kSame,
       .extra = {
           .top = static_cast<int32_t>(random.Int(0, 2)), .left = 1, .bottom = 0, .right = 2}});
}

std::vector<std::byte> AnyBytes(Random& random, int64_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Int(0, 255));
  return bytes;
}

// Calls f(pixel of the copy, pixel of the input; -1: padding) for those of all images.
template <class F>
void ForEachPixel(const Window& window, int64_t batch, F f) {
  const PaddedRows rows(window, 1);
  int64_t pixel = 0;
  for (int64_t image = 0; image < batch; ++image) {
    for (int64_t row = -rows.top; row < rows.height - rows.top; ++row) {
      for (int64_t x = -rows.left; x < rows.width - rows.left; ++x) {
        const bool inside = row >= 0 && row < window.y.input && x >= 0 && x < window.x.input;
        f(pixel++, inside ? (image * window.y.input + row) * window.x.input + x : -1);
      }
    }
  }
}

// All pieces of the image's rows, as several threads might take them.
template <class Image>
void CopyInPieces(const Image& image, const std::byte* input, std::byte* copy, Random& random) {
  const int64_t units = image.rows() * image.pieces();
  for (int64_t begin = 0; begin < units;) {
    const int64_t end = random.Int(begin + 1, units);
    image.Copy(input, copy, begin, end);
    begin = end;
  }
}

// Makes all pieces and counts what differs: `wrong(copy, to, from)` is that of pixel `to` of the
// copy, made of pixel `from` of the input; -1: of padding.
template <class Image, class Wrong>
void ExpectCopied(const Image& image, const Window& window, int64_t batch, const std::byte* input,
                  Random& random, Wrong wrong) {
  std::vector<std::byte> copy(image.bytes());
  CopyInPieces(image, input, copy.data(), random);
  int64_t count = 0;
  ForEachPixel(window, batch,
               [&](int64_t to, int64_t from) { count += wrong(copy.data(), to, from); });
  EXPECT_EQ(count, 0);
}

TEST(PaddedImage, LongRowsAreCopiedByPieces) {
  constexpr int kFill = 7;
  int in_pieces = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int64_t pixel = random.Pick({3, 4, 32, 100, 260}), batch = random.Int(1, 2);
    const int64_t pitch = pixel + random.Pick({0, 0, 4});
    const Window window = AnyWindow(random, random.Pick({20, 3000}));
    const PaddedImage image(window, batch, pixel, pitch, DetectIsa(), kFill);
    if (!image.needed()) continue;
    in_pieces += image.pieces() > 1;
    const auto input = AnyBytes(random, batch * window.y.input * window.x.input * pitch);
    const auto wrong = [&](const std::byte* copy, int64_t to, int64_t from) {
      int64_t count = 0;
      for (int64_t i = 0; i < pixel; ++i) {
        count += copy[to * pixel + i] != (from < 0 ? std::byte{kFill} : input[from * pitch + i]);
      }
      return count;
    };
    ExpectCopied(image, window, batch, input.data(), random, wrong);
    if (HasFailure()) return;
  }
  EXPECT_GT(in_pieces, 20);
}

TEST(ConvertedImage, LongRowsAreConvertedByPieces) {
  constexpr int32_t kZeroPoint = -5;
  int in_pieces = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const int64_t channels = random.Pick({1, 3, 8, 40}), batch = random.Int(1, 2);
    const int64_t pitch = channels + random.Pick({0, 0, 4});
    const bool wide = random.Chance(0.5);
    const Window window = AnyWindow(random, random.Pick({20, 9000}));
    const ConvertedImage image(window, batch, channels, pitch, DataType::kInt8, kZeroPoint,
                               wide ? ActivationFormat::kWide : ActivationFormat::kFlipped,
                               DetectIsa());
    in_pieces += image.pieces() > 1;
    const auto input = AnyBytes(random, batch * window.y.input * window.x.input * pitch);
    const auto wrong = [&](const std::byte* copy, int64_t to, int64_t from) {
      int64_t count = 0;
      for (int64_t i = 0; i < channels; ++i) {
        const int value = from < 0 ? kZeroPoint : static_cast<int8_t>(input[from * pitch + i]);
        const int64_t at = to * channels + i;
        const int copied =
            wide ? reinterpret_cast<const int16_t*>(copy)[at] : static_cast<int>(copy[at]) - 128;
        count += copied != value;
      }
      return count;
    };
    ExpectCopied(image, window, batch, input.data(), random, wrong);
    if (HasFailure()) return;
  }
  EXPECT_GT(in_pieces, 20);
}

}  // namespace
}  // namespace fuselite::kernels
