#include "runtime/weights_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/runtime/child.h"

namespace fuselite {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WeightsCacheTest : public ::testing::Test {
 protected:
  WeightsCacheTest() {
    std::string name = testing::TempDir() + "weights_cache_XXXXXX";
    folder_ = mkdtemp(name.data());
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = static_cast<std::byte>(i * 7);
  }
  ~WeightsCacheTest() override {
    std::error_code error;
    fs::permissions(folder_, fs::perms::owner_all, error);
    fs::remove_all(folder_, error);
  }

  CacheOptions Options(CacheMode mode = CacheMode::kReadWrite) const {
    return {(folder_ / "cache").string(), mode};
  }
  WeightsCache Open(CacheMode mode = CacheMode::kReadWrite) const {
    return WeightsCache(Options(mode), std::array{WeightsSource{weights_, true}});
  }
  // What opening a model does: `count` packings out of a process' own store and a cache. Each has
  // every byte of the weights, raised by its number.
  std::vector<PackedWeights> PackAll(WeightsCache& cache, int count, PackedStore& store) {
    std::vector<PackedWeights> all;
    for (int i = 0; i < count; ++i) {
      const PackRequest request{.source = weights_.data(),
                                .source_bytes = weights_.size(),
                                .layout = "packing " + std::to_string(i),
                                .bytes = weights_.size() + static_cast<size_t>(i),
                                .cache = &cache};
      const auto packed = store.GetOrPack(request, [&](std::byte* to) {
        ++packed_;
        std::memset(to, i, request.bytes);
        for (size_t b = 0; b < weights_.size(); ++b) to[b] = Raised(b, i);
      });
      EXPECT_TRUE(packed.ok()) << packed.status().message();
      all.push_back(*packed);
      EXPECT_TRUE(IsPacking(*all.back(), i));
    }
    cache.Save();
    return all;
  }
  std::vector<PackedWeights> PackAll(WeightsCache& cache, int count) {
    return PackAll(cache, count, *NewPackedStore());
  }
  std::byte Raised(size_t byte, int by) const {
    return static_cast<std::byte>(static_cast<int>(weights_[byte]) + by);
  }
  bool IsPacking(const AlignedBuffer& packed, int i) const {
    if (packed.size() != weights_.size() + static_cast<size_t>(i)) return false;
    if (reinterpret_cast<uintptr_t>(packed.data()) % kAlignment != 0) return false;
    for (size_t b = 0; b < weights_.size(); ++b) {
      if (packed.data()[b] != Raised(b, i)) return false;
    }
    // What may be read behind the last byte is there.
    volatile std::byte behind = packed.data()[packed.size() + kAlignment - 1];
    (void)behind;
    return true;
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    if (!fs::exists(folder_ / "cache")) return files;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache")) {
      files.push_back(entry.path());
    }
    return files;
  }
  fs::path File() const { return Open(CacheMode::kRead).report().file; }
  std::string ProblemOfFile() const { return Open(CacheMode::kRead).report().problem; }

  fs::path folder_;
  std::array<std::byte, 1000> weights_{};
  int packed_ = 0;
};

TEST_F(WeightsCacheTest, WhatOneProcessPackedTheNextFinds) {
  WeightsCache first = Open();
  PackAll(first, 5);
  EXPECT_EQ(packed_, 5);
  EXPECT_EQ(first.report().found, 0);
  EXPECT_EQ(first.report().made, 5);
  EXPECT_THAT(first.report().problem, IsEmpty());

  std::vector<PackedWeights> kept;
  {
    WeightsCache second = Open();
    kept = PackAll(second, 5);
    EXPECT_EQ(packed_, 5);
    EXPECT_EQ(second.report().found, 5);
    EXPECT_EQ(second.report().made, 0);
  }
  // They live without the cache, and without the file's name.
  fs::remove_all(folder_ / "cache");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(IsPacking(*kept[i], i));
}

TEST_F(WeightsCacheTest, FoldersAndFilesAreTheUsersAlone) {
  CacheOptions options = Options();
  options.directory += "/a/b";
  WeightsCache cache(options, std::array{WeightsSource{weights_, true}});
  PackAll(cache, 1);
  const auto permissions = [](const fs::path& path) { return fs::status(path).permissions(); };
  EXPECT_EQ(permissions(folder_ / "cache" / "a"), fs::perms::owner_all);
  EXPECT_EQ(permissions(cache.report().file), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(WeightsCacheTest, MorePackingsJoinThoseThatAreThere) {
  WeightsCache first = Open(), second = Open(), third = Open();
  PackAll(first, 2);
  // It was opened before the first one wrote.
  PackAll(second, 4);
  EXPECT_EQ(second.report().made, 4);
  PackAll(third, 1);
  ASSERT_EQ(Files().size(), 1);
  WeightsCache all = Open();
  PackAll(all, 4);
  EXPECT_EQ(all.report().found, 4);
}

TEST_F(WeightsCacheTest, AFileThatHasEverythingByNowIsNotWrittenAgain) {
  WeightsCache first = Open(), second = Open();
  PackAll(first, 2);
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(File().c_str(), &before), 0);
  PackAll(second, 2);
  EXPECT_EQ(second.report().made, 2);
  ASSERT_EQ(stat(File().c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
}

TEST_F(WeightsCacheTest, WeightsThatTheProcessHasArePutIntoTheFileToo) {
  const std::unique_ptr<PackedStore> store = NewPackedStore();
  WeightsCache first = Open(CacheMode::kRead);
  const auto held = PackAll(first, 3, *store);
  EXPECT_THAT(Files(), IsEmpty());
  WeightsCache second = Open();
  PackAll(second, 3, *store);
  EXPECT_EQ(packed_, 3);
  WeightsCache third = Open();
  PackAll(third, 3);
  EXPECT_EQ(third.report().found, 3);
}

TEST_F(WeightsCacheTest, ReadingAloneWritesNothing) {
  WeightsCache reader = Open(CacheMode::kRead);
  PackAll(reader, 2);
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
  EXPECT_THAT(reader.report().problem, IsEmpty());
}

TEST_F(WeightsCacheTest, OtherWeightsHaveAnotherFileAndPartsOfThemTheSame) {
  std::array<std::byte, 1000> other = weights_;
  const auto file_of = [&](const std::vector<WeightsSource>& weights) {
    return WeightsCache(Options(), weights).report().file;
  };
  other[999] ^= std::byte{1};
  const std::string one = file_of({{weights_, true}}), another = file_of({{other, false}});
  EXPECT_NE(one, another);
  const std::string both = file_of({{weights_, true}, {other, true}});
  EXPECT_TRUE(both == one || both == another);
  EXPECT_EQ(both, file_of({{other, true}, {weights_, true}}));
}

TEST_F(WeightsCacheTest, WhatOthersPutIntoTheFileGoesWhereItIsMuchMore) {
  constexpr int kMost = static_cast<int>(WeightsCache::kMostOfOthers);
  const std::unique_ptr<PackedStore> store = NewPackedStore();
  const auto pack = [&](WeightsCache& cache, int i) {
    const PackRequest request{.source = weights_.data(),
                              .source_bytes = weights_.size(),
                              .layout = "packing " + std::to_string(i),
                              .bytes = 100,
                              .cache = &cache};
    EXPECT_TRUE(store->GetOrPack(request, [](std::byte* to) { std::memset(to, 1, 100); }).ok());
  };
  const auto entries = [&] { return (*PackedFile::Open(File().string()))->entries().size(); };
  for (int i = 0; i <= kMost; ++i) {
    WeightsCache cache = Open();
    pack(cache, i);
    cache.Save();
    EXPECT_EQ(entries(), i + 1);
  }
  WeightsCache cache = Open();
  pack(cache, kMost + 1);
  cache.Save();
  EXPECT_EQ(entries(), 1);
}

TEST_F(WeightsCacheTest, HashesAreThoseOfTheBytesThatStandThereNow) {
  std::array<std::byte, 100> bytes{};
  WeightsCache cache(Options(), std::array{WeightsSource{bytes, false}});
  bytes[5] = std::byte{1};
  EXPECT_EQ(cache.HashOf(bytes.data(), bytes.size()), HashBytes(bytes.data(), bytes.size()));
}

TEST_F(WeightsCacheTest, FilesThatAreNotOursAreNotTaken) {
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
TEST_F(WeightsCacheTest, EntriesAreDistinctInOrderAndWithinTheFile) {
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

TEST_F(WeightsCacheTest, FilesOfOthersAreNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  WeightsCache first = Open();
  PackAll(first, 1);
  ASSERT_EQ(chown(File().c_str(), 12345, 12345), 0);
  EXPECT_THAT(ProblemOfFile(), HasSubstr("belongs to user 12345"));
}

TEST_F(WeightsCacheTest, ATruncatedFileIsNoticedAtEveryLength) {
  WeightsCache first = Open();
  PackAll(first, 2);
  const fs::path file = File();
  for (auto size = static_cast<int64_t>(fs::file_size(file)) - 1; size >= 0; size -= 97) {
    fs::resize_file(file, static_cast<uintmax_t>(size));
    EXPECT_THAT(ProblemOfFile(), Not(IsEmpty())) << size;
  }
  // And it is made anew.
  WeightsCache again = Open();
  PackAll(again, 2);
  EXPECT_EQ(again.report().made, 2);
  EXPECT_THAT(ProblemOfFile(), IsEmpty());
}

TEST_F(WeightsCacheTest, AChangedPackingIsPackedAgain) {
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

TEST_F(WeightsCacheTest, WhatCannotBeWrittenIsToldAndNoError) {
  const auto problem_in = [&](const std::string& directory) {
    WeightsCache cache({directory, CacheMode::kReadWrite},
                       std::array{WeightsSource{weights_, true}});
    PackAll(cache, 2);
    return cache.report().problem;
  };
  EXPECT_THAT(problem_in("/proc/nonesuch"), HasSubstr("/proc/nonesuch: cannot be made"));
  EXPECT_THAT(problem_in("/proc/self"), HasSubstr("cannot be written"));
  std::ofstream(folder_ / "file") << "text";
  EXPECT_THAT(problem_in((folder_ / "file").string()), HasSubstr("file: cannot be made"));
}

TEST_F(WeightsCacheTest, AFullDiskLeavesNothingBehind) {
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

TEST_F(WeightsCacheTest, AFolderThatVanishesIsMadeAgain) {
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
TEST_F(WeightsCacheTest, AKilledWriterLeavesNoHalfFile) {
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

TEST_F(WeightsCacheTest, LeftoversOfKilledWritersGoAfterAnHour) {
  WeightsCache first = Open();
  PackAll(first, 1);
  const fs::path old = File().string() + ".abcdef", young = File().string() + ".ghijkl",
                 other = folder_ / "cache" / "other.abcdef";
  for (const fs::path& path : {old, young, other}) std::ofstream(path) << "half";
  const auto hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const fs::path& path : {old, other}) fs::last_write_time(path, hours_ago);
  WeightsCache second = Open();
  PackAll(second, 2);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(other)) << "it is no file of this cache";
}

TEST_F(WeightsCacheTest, WritersAtTheSameTimeEachGetTheirPackings) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int turn = 0; turn < 25; ++turn) {
        WeightsCache cache = Open();
        const std::unique_ptr<PackedStore> store = NewPackedStore();
        for (int i = 0; i < 6; ++i) {
          const PackRequest request{.source = weights_.data(),
                                    .source_bytes = weights_.size(),
                                    .layout = "packing " + std::to_string(t + i),
                                    .bytes = weights_.size(),
                                    .cache = &cache};
          const auto packed = store->GetOrPack(
              request, [&](std::byte* to) { std::memset(to, t + i, request.bytes); });
          const auto last = packed.ok() ? (*packed)->data()[request.bytes - 1] : std::byte{255};
          if (last != static_cast<std::byte>(t + i)) ++wrong;
        }
        cache.Save();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(ProblemOfFile(), IsEmpty());
  EXPECT_EQ(Files().size(), 1) << "no half file is left";
}

}  // namespace
}  // namespace fuselite
