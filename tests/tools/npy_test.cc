#include "tools/inputs/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace fuselite::tools {
namespace {

using ::testing::HasSubstr;

class NpyTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = ::testing::TempDir() + "fuselite_npy_test.npy";
};

TEST_F(NpyTest, ReadsBackWhatItWrites) {
  for (DataType type : {DataType::kFloat32, DataType::kInt8, DataType::kUInt8, DataType::kInt16,
                        DataType::kInt32, DataType::kInt64, DataType::kBool, DataType::kFloat16}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{1, 2, 3}}) {
      Array array{type, shape, {}};
      array.bytes.resize(static_cast<size_t>(shape.elements() * BitWidth(type) / 8), std::byte{1});
      ASSERT_TRUE(WriteNpy(path_, array).ok());
      const Result<Array> read = ReadNpy(path_);
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_EQ(read->type, type);
      EXPECT_EQ(read->shape, shape);
      EXPECT_EQ(read->bytes, array.bytes);
    }
  }
}

TEST_F(NpyTest, BrokenFilesAreNamed) {
  EXPECT_THAT(ReadNpy("/nowhere.npy").status().message(), HasSubstr("/nowhere.npy"));
  ASSERT_TRUE(WriteNpy(path_, {DataType::kFloat32, Shape{4}, std::vector<std::byte>(16)}).ok());
  const auto size = std::filesystem::file_size(path_);
  for (uintmax_t length : {uintmax_t{0}, uintmax_t{5}, uintmax_t{9}, uintmax_t{40}, size - 1}) {
    std::filesystem::resize_file(path_, size);
    std::filesystem::resize_file(path_, length);
    const Result<Array> read = ReadNpy(path_);
    ASSERT_FALSE(read.ok()) << length << " bytes";
    EXPECT_THAT(read.status().message(), HasSubstr(path_));
  }
}

TEST_F(NpyTest, WhatHeadersSayIsToldInOneLine) {
  for (const char* header : {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,\nx), }",
                             "{'descr': '>\nf4', 'fortran_order': False, 'shape': (2,), }",
                             "{'descr': '', 'fortran_order': False, 'shape': (2,), }",
                             "{'descr': '\n', 'fortran_order': False, 'shape': (2,), }"}) {
    std::ofstream(path_, std::ios::binary)
        << "\x93NUMPY" << std::string("\x01\x00", 2) << static_cast<char>(std::strlen(header))
        << '\0' << header;
    const std::string error = ReadNpy(path_).status().message();
    EXPECT_THAT(error, HasSubstr(path_ + ": its "));
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST_F(NpyTest, TypesThatNumPyLacksAreRefused) {
  EXPECT_FALSE(WriteNpy(path_, {DataType::kBFloat16, Shape{1}, std::vector<std::byte>(2)}).ok());
}

}  // namespace
}  // namespace fuselite::tools
