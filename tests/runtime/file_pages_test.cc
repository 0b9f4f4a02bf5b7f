// What has been read of a file leaves the process, is there when it is read again, and nothing else
// changes.
#include "runtime/memory/file_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace fuselite {
namespace {

constexpr size_t kBytes = size_t{4} << 20;

// 4 MiB of a file of its own, each byte the low one of its index / 1000; mapped with `flags`.
class Mapped {
 public:
  explicit Mapped(int flags) {
    std::string name = testing::TempDir() + "file_pages_XXXXXX";
    const int fd = mkstemp(name.data());
    EXPECT_GE(fd, 0) << name;
    std::vector<uint8_t> bytes(kBytes);
    for (size_t i = 0; i < kBytes; ++i) bytes[i] = ByteAt(i);
    EXPECT_EQ(write(fd, bytes.data(), kBytes), static_cast<ssize_t>(kBytes));
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    EXPECT_NE(memory, MAP_FAILED);
    close(fd);
    unlink(name.c_str());
    bytes_ = {static_cast<uint8_t*>(memory), kBytes};
  }
  ~Mapped() { munmap(bytes_.data(), kBytes); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  static uint8_t ByteAt(size_t i) { return static_cast<uint8_t>(i / 1000); }
  std::span<uint8_t> bytes() { return bytes_; }
  bool IsWhole() const {
    for (size_t i = 0; i < kBytes; ++i) {
      if (bytes_[i] != ByteAt(i)) return false;
    }
    return true;
  }

  // How many of its bytes lie in pages of this process; negative where the system does not tell.
  int64_t Resident() const {
    const int fd = open("/proc/self/pagemap", O_RDONLY);
    if (fd < 0) return -1;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<uint64_t> entries(kBytes / page);
    const size_t first = reinterpret_cast<uintptr_t>(bytes_.data()) / page;
    const ssize_t read = pread(fd, entries.data(), entries.size() * sizeof(uint64_t),
                               static_cast<off_t>(first * sizeof(uint64_t)));
    close(fd);
    if (read != static_cast<ssize_t>(entries.size() * sizeof(uint64_t))) return -1;
    int64_t bytes = 0;
    for (const uint64_t entry : entries) bytes += entry >> 63 != 0 ? static_cast<int64_t>(page) : 0;
    return bytes;
  }

 private:
  std::span<uint8_t> bytes_;
};

bool AreAll(uint8_t value, std::span<const uint8_t> bytes) {
  return std::ranges::all_of(bytes, [=](uint8_t byte) { return byte == value; });
}

class FilePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    Mapped file(MAP_SHARED);
    EXPECT_TRUE(file.IsWhole());
    if (file.Resident() != kBytes) GTEST_SKIP() << "the system does not tell which pages it maps";
    madvise(file.bytes().data(), kBytes, MADV_DONTNEED);
    if (file.Resident() != 0) GTEST_SKIP() << "the system does not take pages that it is given";
  }
};

TEST_F(FilePagesTest, LeaveTheProcess) {
  Mapped file(MAP_SHARED);
  EXPECT_TRUE(file.IsWhole());
  FilePages pages(file.bytes().data());
  pages.WereRead(file.bytes().data(), kBytes / 2 + 100);
  // Less where a huge page holds both what was read and what was not.
  EXPECT_LE(file.Resident(), static_cast<int64_t>(kBytes / 2));
  EXPECT_TRUE(file.IsWhole());
  EXPECT_EQ(file.Resident(), kBytes);
}

TEST_F(FilePagesTest, AreGivenBackByTheMebibyte) {
  Mapped file(MAP_SHARED);
  EXPECT_TRUE(file.IsWhole());
  FilePages pages(file.bytes().data());
  constexpr size_t kPart = kBytes / 16;
  for (int part : {5, 0, 9}) pages.WereRead(file.bytes().data() + part * kPart, kPart);
  EXPECT_EQ(file.Resident(), kBytes);
  pages.WereRead(file.bytes().data() + 2 * kPart, kPart);
  EXPECT_LE(file.Resident(), static_cast<int64_t>(kBytes - 4 * kPart));
}

TEST_F(FilePagesTest, OfSmallConstantsLeaveWhereTheseAreNeighbours) {
  constexpr size_t kSmall = 8192, kGap = 12288;
  Mapped near(MAP_SHARED), far(MAP_SHARED);
  EXPECT_TRUE(near.IsWhole() && far.IsWhole());
  FilePages near_pages(near.bytes().data()), far_pages(far.bytes().data());
  // The last ones first, as some converters order a file.
  for (size_t i = kBytes / (kSmall + kGap); i-- > 0;) {
    near_pages.WereRead(near.bytes().data() + i * (kSmall + kGap), kSmall);
  }
  EXPECT_LE(near.Resident(), static_cast<int64_t>(kBytes / 2));
  constexpr size_t kFar = size_t{128} << 10;
  for (int times = 0; times < 8; ++times) {
    for (size_t begin = 0; begin < kBytes; begin += kFar) {
      far_pages.WereRead(far.bytes().data() + begin, kSmall);
    }
  }
  EXPECT_EQ(far.Resident(), kBytes);
}

// What somebody wrote there would be lost.
TEST_F(FilePagesTest, OfPrivateMappingsStay) {
  Mapped file(MAP_PRIVATE);
  std::memset(file.bytes().data(), 77, kBytes);
  std::vector<uint8_t> heap(kBytes, 78);
  {
    FilePages pages(file.bytes().data());
    pages.WereRead(file.bytes().data(), kBytes);
    pages.WereRead(heap.data(), kBytes);
  }
  EXPECT_TRUE(AreAll(77, file.bytes()));
  EXPECT_TRUE(AreAll(78, heap));
}

TEST_F(FilePagesTest, MayBeWrittenWhereTheMappingIsShared) {
  Mapped file(MAP_SHARED);
  std::memset(file.bytes().data(), 79, kBytes);
  FilePages pages(file.bytes().data());
  pages.WereRead(file.bytes().data(), kBytes);
  EXPECT_EQ(file.Resident(), 0);
  EXPECT_TRUE(AreAll(79, file.bytes()));
}

// A model of halves: its weights lie in memory of its own.
TEST_F(FilePagesTest, OfOthersStay) {
  Mapped file(MAP_SHARED), other(MAP_SHARED);
  EXPECT_TRUE(file.IsWhole() && other.IsWhole());
  std::vector<uint8_t> heap(kBytes, 80);
  {
    FilePages none(nullptr);
    none.WereRead(file.bytes().data(), kBytes);
  }
  EXPECT_EQ(file.Resident(), kBytes);
  FilePages pages(file.bytes().data() + kBytes - 1);
  pages.WereRead(heap.data(), kBytes);
  pages.WereRead(other.bytes().data(), kBytes);
  pages.WereRead(file.bytes().data(), kBytes);
  EXPECT_EQ(file.Resident(), 0);
  EXPECT_EQ(other.Resident(), kBytes);
  EXPECT_TRUE(AreAll(80, heap));
}

}  // namespace
}  // namespace fuselite
