// Files that people give as inputs: .npy and images. Any bytes are read, or refused in one line
// that names the file.
#include <gtest/gtest.h>

#include <string>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tools/inputs/image.h"
#include "tools/inputs/npy.h"

namespace fuselite::fuzz {
namespace {

using namespace tools;

void Check(const Result<Array>& array, const std::string& path) {
  if (array.ok()) {
    const TensorInfo info{.type = array->type, .shape = array->shape};
    EXPECT_EQ(array->bytes.size(), info.bytes());
  } else {
    EXPECT_EQ(array.status().message().find('\n'), std::string::npos);
    EXPECT_NE(array.status().message().find(path), std::string::npos) << array.status().message();
  }
}

// What was read can be written, and is read again as it was.
void CheckWritten(const Array& array) {
  const MemoryFile file({});
  const Status written = WriteNpy(file.path(), array);
  ASSERT_TRUE(written.ok()) << written.message();
  const Result<Array> again = ReadNpy(file.path());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->type, array.type);
  EXPECT_EQ(again->shape, array.shape);
  EXPECT_EQ(again->bytes, array.bytes);
}

// Names end in anything.
void CheckName(const std::string& name) {
  EXPECT_TRUE(IsImageName(name + "x.JPeg"));
  EXPECT_FALSE(IsImageName(name + ".png/"));
  EXPECT_TRUE(!IsImageName(name) || IsImageName("folder/" + name));
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  const MemoryFile file(std::as_bytes(bytes));
  const Result<Array> array = ReadNpy(file.path());
  Check(array, file.path());
  if (array.ok()) CheckWritten(*array);
  EXPECT_FALSE(WriteNpy(file.path(), {DataType::kString, {1}, {}}).ok());
  EXPECT_FALSE(WriteNpy("/proc/self", {DataType::kInt8, {1}, {std::byte{}}}).ok());
  CheckName(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (const DataType type : {DataType::kFloat32, DataType::kUInt8, DataType::kInt8}) {
    Check(ReadImage(file.path(), {.type = type, .shape = {1, 5, 7, 3}}), file.path());
  }
  Check(ReadImage(file.path(), {.type = DataType::kFloat32, .shape = {-1, -1, 1}}), file.path());
  Check(ReadImage(file.path(), {.type = DataType::kInt16, .shape = {-1, -1, 3}}), file.path());
  Check(ReadNpy("/proc/self"), "/proc/self");
  Check(ReadNpy(file.path() + "none"), file.path());
}

}  // namespace fuselite::fuzz
