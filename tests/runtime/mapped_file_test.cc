// Files that are mapped, and those that are refused.
#include "runtime/memory/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/runtime/child.h"

namespace fuselite {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() {
    std::string name = testing::TempDir() + "mapped_file_XXXXXX";
    folder_ = mkdtemp(name.data());
    chmod(folder_.c_str(), 0755);
  }
  ~MappedFileTest() override { fs::remove_all(folder_); }

  std::string Write(const char* name, const char* text, mode_t mode = 0644) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  // What either way of opening says; "ok" where the file is mapped.
  static std::string Plain(const std::string& path) {
    return MappedFile::Open(path).status().ToString();
  }
  static std::string Private(const std::string& path) {
    return MappedFile::OpenPrivate(path).status().ToString();
  }

  fs::path folder_;
};

TEST_F(MappedFileTest, HasTheBytesOfTheFile) {
  const auto file = MappedFile::Open(Write("file", "text"));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const auto bytes = (*file)->bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "text");
}

TEST_F(MappedFileTest, RefusesWhatIsNoFileWithBytes) {
  const std::string pipe = folder_ / "pipe", nonesuch = folder_ / "nonesuch";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, problem] :
       {std::pair(nonesuch, "not found: " + nonesuch + ": no such file"),
        std::pair(folder_.string(), folder_.string() + ": is a folder, not a regular file"),
        std::pair(pipe, pipe + ": not a regular file"),
        std::pair(Write("empty", ""), std::string("empty: the file is empty"))}) {
    EXPECT_THAT(Plain(path), HasSubstr(problem));
    EXPECT_THAT(Private(path), HasSubstr(problem));
  }
}

// What others may change, or put there, is refused where nobody but the user may have written it.
TEST_F(MappedFileTest, PrivateOnesAreNobodyElses) {
  const fs::path link = folder_ / "link";
  fs::create_symlink(Write("file", "text"), link);
  EXPECT_EQ(Plain(link), "ok");
  EXPECT_NE(Private(link), "ok");
  for (const mode_t mode : {0600, 0644, 0604}) {
    EXPECT_EQ(Private(Write("file", "text", mode)), "ok") << mode;
  }
  for (const mode_t mode : {0620, 0602, 0666}) {
    const std::string path = Write("file", "text", mode);
    EXPECT_EQ(Plain(path), "ok");
    EXPECT_THAT(Private(path), HasSubstr("others may write it"));
  }
}

// The administrator's are as good as one's own.
TEST_F(MappedFileTest, PrivateOnesBelongToTheUserOrTheAdministrator) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr uid_t kUser = 12345;
  for (const uid_t owner : {uid_t{0}, kUser, kUser + 1}) {
    const std::string path = Write("file", "text");
    ASSERT_EQ(chown(path.c_str(), owner, owner), 0);
    EXPECT_EQ(InChild([&] {
                if (setuid(kUser) != 0) return 2;
                return Plain(path) != "ok" ? 3 : Private(path) == "ok" ? 0 : 1;
              }),
              owner == kUser + 1 ? "exit 1" : "exit 0")
        << owner;
  }
}

}  // namespace
}  // namespace fuselite
