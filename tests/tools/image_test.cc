#include "tools/inputs/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>

namespace fuselite::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

// Two pixels: red, and (0, 10, 20) of which 30 / 255 are opaque.
const Bytes kPng = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49,
                    0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06,
                    0x00, 0x00, 0x00, 0xf4, 0x22, 0x7f, 0x8a, 0x00, 0x00, 0x00, 0x11, 0x49, 0x44,
                    0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x9f, 0x81, 0x4b, 0x44,
                    0x0e, 0x00, 0x0d, 0x60, 0x02, 0x3b, 0xff, 0x46, 0xc2, 0xee, 0x00, 0x00, 0x00,
                    0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

// 8 x 8 grey pixels of 200: one block whose mean alone is coded, (200 - 128) * 8 = 576 in 10 bits.
// Without the tables that code them: what a decoder has in their place are zeros, and all is 128.
Bytes GreyJpeg(bool tables = true) {
  Bytes jpeg = {0xff, 0xd8, 0xff, 0xdb, 0x00, 0x43, 0x00};
  jpeg.insert(jpeg.end(), 64, 1);  // quantization: none
  const auto huffman_table_of_one = [&](uint8_t kind, uint8_t symbol) {
    const Bytes table = {0xff, 0xc4, 0x00, 0x14, kind, 1};
    jpeg.insert(jpeg.end(), table.begin(), table.end());
    jpeg.insert(jpeg.end(), 15, 0);
    jpeg.push_back(symbol);
  };
  const Bytes frame = {0xff, 0xc0, 0x00, 0x0b, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
  jpeg.insert(jpeg.end(), frame.begin(), frame.end());
  if (tables) huffman_table_of_one(0x00, 10);    // of means: 10 bits follow
  if (tables) huffman_table_of_one(0x10, 0x00);  // of the others: none follow
  const Bytes scan = {0xff, 0xda, 0x00, 0x08, 1, 1, 0x00, 0, 63, 0, 0x48, 0x0f, 0xff, 0xd9};
  jpeg.insert(jpeg.end(), scan.begin(), scan.end());
  return jpeg;
}

// 24 bits, rows from the top.
Bytes Bmp(int width, int height, const Bytes& rgb) {
  const int row = (width * 3 + 3) / 4 * 4;
  Bytes bmp(54 + row * height);
  const auto put = [&](int at, int32_t value) {
    for (int i = 0; i < 4; ++i) bmp[at + i] = static_cast<uint8_t>(value >> 8 * i);
  };
  bmp[0] = 'B';
  bmp[1] = 'M';
  put(2, static_cast<int32_t>(bmp.size()));
  put(10, 54);
  put(14, 40);
  put(18, width);
  put(22, -height);
  put(26, 1 | 24 << 16);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) bmp[54 + y * row + 3 * x + c] = rgb[(y * width + x) * 3 + 2 - c];
    }
  }
  return bmp;
}

template <class T>
std::vector<T> Elements(const Array& array) {
  const auto* data = reinterpret_cast<const T*>(array.bytes.data());
  return {data, data + array.bytes.size() / sizeof(T)};
}

class ImageTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  Result<Array> Read(const Bytes& bytes, const ImageRequest& request) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return ReadImage(path_, request);
  }
  const std::string path_ = ::testing::TempDir() + "fuselite_image_test.jpg";
};

TEST_F(ImageTest, KnowsNames) {
  for (const char* name : {"a.jpg", "a/b.JPEG", "x.y.png", "1.Bmp"}) {
    EXPECT_TRUE(IsImageName(name)) << name;
  }
  for (const char* name : {"a.npy", "jpg", ".png", "a.gif", ""}) {
    EXPECT_FALSE(IsImageName(name)) << name;
  }
}

TEST_F(ImageTest, TakesItsOwnSizeWhereTheShapeIsOpen) {
  const Result<Array> image = Read(kPng, {DataType::kUInt8, {-1, -1, -1, 3}});
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->shape, (Shape{1, 1, 2, 3}));
  EXPECT_THAT(Elements<uint8_t>(*image), ElementsAre(255, 0, 0, 0, 10, 20));
  const Result<Array> opaque = Read(kPng, {DataType::kUInt8, {1, 2, 4}});
  ASSERT_TRUE(opaque.ok()) << opaque.status().message();
  EXPECT_THAT(Elements<uint8_t>(*opaque), ElementsAre(255, 0, 0, 255, 0, 10, 20, 30));
}

TEST_F(ImageTest, GivesEachTypeItsRange) {
  const Result<Array> bytes = Read(GreyJpeg(), {DataType::kInt8, {8, 8, 1}});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(Elements<int8_t>(*bytes), std::vector<int8_t>(64, 72));
  const Result<Array> floats = Read(GreyJpeg(), {DataType::kFloat32, {2, 1, 1, 3}, 0, 2});
  ASSERT_TRUE(floats.ok()) << floats.status().message();
  EXPECT_EQ(floats->shape, (Shape{2, 1, 1, 3}));
  EXPECT_EQ(Elements<float>(*floats), std::vector<float>(6, static_cast<float>(200 / 255.0 * 2)));
}

TEST_F(ImageTest, StretchesFromCentreToCentre) {
  const Bytes bmp = Bmp(2, 2, {0, 0, 0, 100, 100, 100, 200, 200, 200, 100, 100, 100});
  const Result<Array> image = Read(bmp, {DataType::kUInt8, {1, 1, 4, 1}});
  ASSERT_TRUE(image.ok()) << image.status().message();
  // The mean of both rows, (100, 100), at 4 columns; and 4 rows of the left column's mean with
  // weights 1, 3/4, 1/4, 0.
  EXPECT_THAT(Elements<uint8_t>(*image), ElementsAre(100, 100, 100, 100));
  const Result<Array> column = Read(bmp, {DataType::kFloat32, {4, 2, 1}, 0, 255});
  ASSERT_TRUE(column.ok()) << column.status().message();
  EXPECT_THAT(Elements<float>(*column), ElementsAre(0, 100, 50, 100, 150, 100, 200, 100));
}

TEST_F(ImageTest, RefusesWhatIsNoImageOrNoImagesInput) {
  EXPECT_THAT(Read({'n', 'o'}, {DataType::kUInt8, {1, 2, 2, 3}}).status().message(),
              HasSubstr("image_test.jpg: is no JPEG, PNG or BMP image"));
  Bytes odd = kPng;
  odd[37] = 'A';  // a chunk of another kind, which the reason quotes
  odd[38] = '\n';
  EXPECT_THAT(Read(odd, {DataType::kUInt8, {1, 2, 2, 3}}).status().message(),
              HasSubstr("cannot be decoded: A?"));
  EXPECT_THAT(Read(Bmp(1, 1, {0, 0, 0}), {DataType::kInt32, {1, 2, 2, 3}}).status().message(),
              HasSubstr("float32, uint8 or int8"));
  for (const std::vector<int32_t>& shape :
       {std::vector<int32_t>{1, 3, 224, 224}, {10}, {}, {1, 1, 2, 2, 3}}) {
    EXPECT_FALSE(Read(kPng, {DataType::kFloat32, shape}).ok());
  }
  Bytes none = Bmp(1, 1, {0, 0, 0});
  none[18] = 0;
  EXPECT_THAT(Read(none, {DataType::kUInt8, {1, 2, 2, 3}}).status().message(),
              HasSubstr("has 0 x 1 pixels"));
  Bytes huge = kPng;
  huge[18] = huge[22] = 0xf0;  // 61440 x 61440
  EXPECT_FALSE(Read(huge, {DataType::kUInt8, {1, 2, 2, 3}}).ok());
  EXPECT_THAT(ReadImage("/nowhere.png", {DataType::kUInt8, {1, 2, 2, 3}}).status().message(),
              HasSubstr("/nowhere.png: no such file"));
}

// The last chunk of a PNG counts from its name on, and of a BMP all that pixels lie in: behind
// these of each row stand fillings, which the last one need not have.
TEST_F(ImageTest, RefusesFilesThatAreCutOff) {
  const ImageRequest request{DataType::kUInt8, {1, 2, 2, 3}};
  Bytes bmp = Bmp(3, 2, Bytes(18, 100));
  const std::pair<Bytes, size_t> files[] = {{kPng, kPng.size() - 4}, {bmp, 54 + 12 + 9}};
  for (const auto& [whole, least] : files) {
    for (const size_t size : {size_t{34}, size_t{45}, size_t{56}, least - 1}) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_THAT(Read(cut, request).status().message(),
                  HasSubstr("cannot be decoded: the file is cut off after " + std::to_string(size) +
                            " bytes"));
    }
    const Bytes enough(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(least));
    EXPECT_TRUE(Read(enough, request).ok());
    EXPECT_TRUE(Read(whole, request).ok());
  }
}

TEST_F(ImageTest, TablesThatAreNotThereAreZeros) {
  const Result<Array> image = Read(GreyJpeg(false), {DataType::kUInt8, {1, 8, 8, 1}});
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_THAT(Elements<uint8_t>(*image), ::testing::Each(128));
}

// A table of 300 symbols, where there is room for 256, said to be shorter than it is.
Bytes LongTable() {
  Bytes table = {0xff, 0xc4, 0x00, 0x13, 0x13};
  table.insert(table.end(), 14, 0);
  table.insert(table.end(), {150, 150});
  table.insert(table.end(), 300, 7);
  return table;
}

Bytes Inserted(Bytes bytes, size_t at, const Bytes& more) {
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), more.begin(), more.end());
  return bytes;
}

// One stands before the image, and one behind its first scan.
TEST_F(ImageTest, RefusesLongTables) {
  const Bytes jpeg = GreyJpeg();
  for (const size_t at : {size_t{2}, jpeg.size() - 2}) {
    EXPECT_THAT(
        Read(Inserted(jpeg, at, LongTable()), {DataType::kUInt8, {1, 8, 8, 1}}).status().message(),
        HasSubstr("cannot be decoded: a table of more than 256 symbols"));
  }
}

// In a comment, and behind the image, where cameras put films.
TEST_F(ImageTest, TakesForATableWhatIsOne) {
  const Bytes jpeg = GreyJpeg(), table = LongTable();
  const auto length = static_cast<uint16_t>(table.size() + 2);
  const Bytes comment =
      Inserted({0xff, 0xfe, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length & 0xff)},
               4, table);
  for (const Bytes& bytes : {Inserted(jpeg, 2, comment), Inserted(jpeg, jpeg.size() - 2, comment),
                             Inserted(jpeg, jpeg.size(), table)}) {
    const Result<Array> image = Read(bytes, {DataType::kUInt8, {1, 8, 8, 1}});
    ASSERT_TRUE(image.ok()) << image.status().message();
    EXPECT_THAT(Elements<uint8_t>(*image), ::testing::Each(200));
  }
}

}  // namespace
}  // namespace fuselite::tools
