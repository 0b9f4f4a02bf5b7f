// Files that people give as inputs: .npy and images. Any bytes are read, or refused in one line
// that names the file.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/target.h"
#include "tools/common/image.h"
#include "tools/common/npy.h"

namespace fuselite::fuzz {
namespace {

using namespace tools;

// A file without a name, of these bytes.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : file_(memfd_create("fuzz", 0)) {
    if (file_ >= 0 && write(file_, bytes.data(), bytes.size()) < 0) ADD_FAILURE() << "no memory";
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

void Check(const Result<Array>& array, const std::string& path) {
  if (array.ok()) {
    const TensorInfo info{.type = array->type, .shape = array->shape};
    EXPECT_EQ(array->bytes.size(), info.bytes());
  } else {
    EXPECT_EQ(array.status().message().find('\n'), std::string::npos);
    EXPECT_NE(array.status().message().find(path), std::string::npos) << array.status().message();
  }
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  const MemoryFile file(bytes);
  Check(ReadNpy(file.path()), file.path());
  for (const DataType type : {DataType::kFloat32, DataType::kUInt8, DataType::kInt8}) {
    Check(ReadImage(file.path(), {.type = type, .shape = {1, 5, 7, 3}}), file.path());
  }
  Check(ReadImage(file.path(), {.type = DataType::kFloat32, .shape = {-1, -1, 1}}), file.path());
}

}  // namespace fuselite::fuzz
