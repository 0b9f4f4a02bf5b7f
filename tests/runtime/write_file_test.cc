#include "runtime/support/write_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace fuselite {
namespace {

TEST(WriteFileTest, ReplacesWhatIsThere) {
  const std::string path = testing::TempDir() + "write_file_test.txt";
  ASSERT_TRUE(WriteFile(path, {"a longer text"}).ok());
  ASSERT_TRUE(WriteFile(path, {"two ", std::string_view("par\0ts", 6)}).ok());
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), std::string("two par\0ts", 10));
  std::filesystem::remove(path);
}

TEST(WriteFileTest, SaysWhatTheSystemSays) {
  EXPECT_EQ(WriteFile("/nonesuch/x", {"text"}).message(),
            "/nonesuch/x: cannot be written: No such file or directory");
  EXPECT_EQ(WriteFile("/", {"text"}).message(), "/: cannot be written: Is a directory");
  EXPECT_EQ(WriteFile("/dev/full", {"text"}).message(),
            "/dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace fuselite
