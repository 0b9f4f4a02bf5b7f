// Files of caches that are damaged, not fuselite's, in the way, half written or cannot be written.
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <random>

#include "tests/runtime/child.h"
#include "tests/runtime/weights_cache_fixture.h"

namespace fuselite {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using WeightsCacheFilesTest = testing::WeightsCacheTest;
namespace fs = std::filesystem;

TEST_F(WeightsCacheFilesTest, FilesThatAreNotOursAreNotTaken) {
  WeightsCache first = Open();
  PackAll(first, 3);
  const fs::path file = File(), copy = folder_ / "copy";
  fs::copy_file(file, copy);
  const auto restore = [&] {
    fs::remove(file);
    fs::copy_file(copy, file);
  };
  const auto patch = [&](std::streamoff at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const int byte = stream.get();
    stream.seekp(at);
    stream.put(static_cast<char>(byte ^ 0x40));
  };
  EXPECT_THAT(ProblemOfFile(), IsEmpty());
  patch(0);
  EXPECT_THAT(ProblemOfFile(), HasSubstr("not a file of packed weights"));
  restore();
  patch(offsetof(FileHeader, format));
  EXPECT_THAT(ProblemOfFile(), HasSubstr("not a file of packed weights"));
  restore();
  patch(offsetof(FileHeader, build));
  EXPECT_THAT(ProblemOfFile(), HasSubstr("another build"));
  restore();
  patch(sizeof(FileHeader));
  EXPECT_THAT(ProblemOfFile(), HasSubstr("its index was changed"));
  restore();
  fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
  EXPECT_THAT(ProblemOfFile(), HasSubstr("others may write it"));
  restore();
  fs::rename(file, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", file);
  EXPECT_THAT(ProblemOfFile(), HasSubstr(file.string()));
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_THAT(ProblemOfFile(), HasSubstr("not a regular file"));
}

// Found by its key, an entry would be checked and another one taken on into the next file; beyond
// its part of the file, it would be of other bytes.
TEST_F(WeightsCacheFilesTest, EntriesAreDistinctInOrderAndWithinTheFile) {
  const fs::path path = folder_ / "keys";
  fs::create_directories(folder_);
  const std::array<std::byte, 64> bytes{};
  const std::vector<PackedBytes> packings = {{{1, 0}, bytes}, {{2, 0}, bytes}, {{3, 0}, bytes}};
  ASSERT_TRUE(WritePackedFile(path, packings).ok());
  ASSERT_TRUE(PackedFile::Open(path).ok());
  const uint64_t size = fs::file_size(path);
  FileHeader header;
  std::array<FileEntry, 3> entries;
  std::fstream(path, std::ios::in | std::ios::binary)
      .read(reinterpret_cast<char*>(&header), sizeof header)
      .read(reinterpret_cast<char*>(&entries), sizeof entries);
  const auto problem = [&](const FileEntry& second) {
    std::array<FileEntry, 3> changed = entries;
    changed[1] = second;
    header.index = HashBytes(&changed, sizeof changed);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
        .write(reinterpret_cast<const char*>(&header), sizeof header)
        .write(reinterpret_cast<const char*>(&changed), sizeof changed);
    return PackedFile::Open(path).status().message();
  };
  EXPECT_THAT(problem(entries[1]), IsEmpty());
  for (const uint64_t key : {1, 3, 4}) {
    FileEntry entry = entries[1];
    entry.key = {key, 0};
    EXPECT_THAT(problem(entry), HasSubstr("its index was changed")) << key;
  }
  const auto problem_of_count = [&](uint32_t count) {
    FileHeader more = header;
    more.entries = count;
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
        .write(reinterpret_cast<const char*>(&more), sizeof more);
    return PackedFile::Open(path).status().message();
  };
  EXPECT_THAT(problem_of_count(4), HasSubstr("its index was changed"));
  EXPECT_THAT(problem_of_count(1000), HasSubstr("truncated"));
  EXPECT_THAT(problem_of_count(UINT32_MAX), HasSubstr("truncated"));
  const uint64_t last = entries[2].at;
  struct {
    uint64_t at, bytes;
    bool lies;
  } const kPlaces[] = {{last, 64, true},
                       {last, 0, true},
                       {last, size - last - kAlignment, true},
                       {last, size - last - kAlignment + 1, false},
                       {last, size - last + 1, false},
                       {last, UINT64_MAX, false},
                       {last + 1, 8, false},
                       {0, 64, false},
                       {kAlignment, 64, false},
                       {AlignUp(size) + kAlignment, 0, false},
                       {AlignUp(size) + kAlignment, UINT64_MAX, false},
                       {uint64_t{1} << 63, 64, false}};
  for (const auto& [at, length, lies] : kPlaces) {
    FileEntry entry = entries[1];
    entry.at = at;
    entry.bytes = length;
    EXPECT_EQ(problem(entry).empty(), lies) << at << ", " << length;
  }
}

TEST_F(WeightsCacheFilesTest, FindsWhatHasItsKeyAndLength) {
  const fs::path path = folder_ / "found";
  fs::create_directories(folder_);
  const std::array<std::byte, 64> bytes{};
  ASSERT_TRUE(
      WritePackedFile(path, std::array<PackedBytes, 2>{{{{1, 0}, bytes}, {{3, 0}, bytes}}}).ok());
  const auto file = PackedFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_NE((*file)->Find({3, 0}, 64), nullptr);
  for (const uint64_t key : {0, 2, 4}) EXPECT_EQ((*file)->Find({key, 0}, 64), nullptr) << key;
  for (const size_t length : {0, 63, 65}) EXPECT_EQ((*file)->Find({3, 0}, length), nullptr);
}

TEST_F(WeightsCacheFilesTest, FilesOfOthersAreNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  WeightsCache first = Open();
  PackAll(first, 1);
  ASSERT_EQ(chown(File().c_str(), 12345, 12345), 0);
  EXPECT_THAT(ProblemOfFile(), HasSubstr("belongs to user 12345"));
}

TEST_F(WeightsCacheFilesTest, ATruncatedFileIsNoticedAtEveryLength) {
  WeightsCache first = Open();
  PackAll(first, 2);
  const fs::path file = File();
  for (auto size = static_cast<int64_t>(fs::file_size(file)) - 1; size >= 0; size -= 97) {
    fs::resize_file(file, static_cast<uintmax_t>(size));
    EXPECT_THAT(ProblemOfFile(), HasSubstr(size == 0 ? "is empty" : "truncated")) << size;
  }
  // And it is made anew.
  WeightsCache again = Open();
  PackAll(again, 2);
  EXPECT_EQ(again.report().made, 2);
  EXPECT_THAT(ProblemOfFile(), IsEmpty());
}

TEST_F(WeightsCacheFilesTest, AChangedPackingIsPackedAgain) {
  WeightsCache first = Open();
  PackAll(first, 3);
  const fs::path file = File();
  const auto packings = static_cast<int64_t>(sizeof(FileHeader) + 3 * sizeof(FileEntry));
  std::mt19937 random(20261123);
  std::uniform_int_distribution<int64_t> anywhere(packings,
                                                  static_cast<int64_t>(fs::file_size(file)) - 1);
  for (int i = 0; i < 20; ++i) {
    const int64_t at = anywhere(random);
    {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(at);
      const int byte = stream.get();
      stream.seekp(at);
      stream.put(static_cast<char>(byte ^ 1));
    }
    WeightsCache cache = Open();
    PackAll(cache, 3);  // which compares the bytes
    EXPECT_GE(cache.report().found, 2) << "byte " << at;
  }
  WeightsCache last = Open();
  PackAll(last, 3);
  EXPECT_EQ(last.report().found, 3) << "what was wrong has been written again";
}

TEST_F(WeightsCacheFilesTest, AChangedPackingIsNotTakenOn) {
  WeightsCache first = Open();
  PackAll(first, 3);
  const fs::path path = File();
  {
    const uint64_t at = (*PackedFile::Open(path))->entries()[1].at;
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.write("changed", 7);
  }
  WeightsCache cache = Open();
  cache.Keep({1, 1}, std::make_shared<const AlignedBuffer>(1000));
  cache.Save();
  EXPECT_EQ((*PackedFile::Open(path))->entries().size(), 3u) << "two of the three, and the new one";
}

TEST_F(WeightsCacheFilesTest, WhatCannotBeWrittenIsToldAndNoError) {
  const auto problem_in = [&](const std::string& directory) {
    WeightsCache cache({directory, CacheMode::kReadWrite},
                       std::array{WeightsSource{weights_, true}});
    PackAll(cache, 2);
    return cache.report().problem;
  };
  EXPECT_THAT(problem_in("/proc/nonesuch"), HasSubstr("/proc/nonesuch: cannot be made"));
  EXPECT_THAT(problem_in("/proc/self"), HasSubstr("cannot be written: No such file"));
  std::ofstream(folder_ / "file") << "text";
  EXPECT_THAT(problem_in((folder_ / "file").string()), HasSubstr("file: cannot be made"));
}

TEST_F(WeightsCacheFilesTest, AFullDiskLeavesNothingBehind) {
  const std::string result = InChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    WeightsCache cache = Open();
    PackAll(cache, 3);
    return cache.report().problem.find("cannot be written") == std::string::npos ? 1 : 0;
  });
  EXPECT_EQ(result, "exit 0");
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(WeightsCacheFilesTest, AFolderThatVanishesIsMadeAgain) {
  WeightsCache cache = Open();
  {
    WeightsCache first = Open();
    PackAll(first, 1);
  }
  fs::remove_all(folder_ / "cache");
  PackAll(cache, 2);
  EXPECT_THAT(cache.report().problem, IsEmpty());
  EXPECT_EQ(Files().size(), 1);
}

// However far it came: the next process finds a whole file or none.
TEST_F(WeightsCacheFilesTest, AKilledWriterLeavesNoHalfFile) {
  for (int after = 0; after < 60; ++after) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int count = 1;; ++count) {
        fs::remove(File());
        WeightsCache cache = Open();
        PackAll(cache, 1 + count % 20);
      }
    }
    usleep(static_cast<useconds_t>(500 + 137 * after));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    WeightsCache cache = Open();
    EXPECT_THAT(cache.report().problem, IsEmpty()) << "killed after step " << after;
    PackAll(cache, 20);
  }
}

TEST_F(WeightsCacheFilesTest, LeftoversOfKilledWritersGoAfterAnHour) {
  WeightsCache first = Open();
  PackAll(first, 1);
  const fs::path old = File().string() + ".abcdef", young = File().string() + ".ghijkl",
                 other = folder_ / "cache" / "other.abcdef";
  for (const fs::path& path : {old, young, other}) std::ofstream(path) << "half";
  const auto hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const fs::path& path : {old, other}) fs::last_write_time(path, hours_ago);
  const fs::path link = File().string() + ".mnopqr";  // nobody knows how old it is
  fs::create_symlink(folder_ / "nonesuch", link);
  WeightsCache second = Open();
  PackAll(second, 2);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::exists(other)) << "it is no file of this cache";
}

}  // namespace
}  // namespace fuselite
