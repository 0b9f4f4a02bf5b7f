// What caches of packed weights find, and what they put into their files.
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "runtime/support/log.h"
#include "tests/runtime/child.h"
#include "tests/runtime/weights_cache_fixture.h"

namespace fuselite {
namespace {

using ::testing::IsEmpty;
using testing::WeightsCacheTest;
namespace fs = std::filesystem;

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

// Nor is there anything to say.
TEST_F(WeightsCacheTest, WithoutPackingsNothingIsWritten) {
  SetLogLevel(LogLevel::kWarning);
  ::testing::internal::CaptureStderr();
  WeightsCache cache = Open();
  cache.Save();
  EXPECT_THAT(Files(), IsEmpty());
  PackAll(cache, 1);
  EXPECT_EQ(Files().size(), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  SetLogLevel(LogLevel::kOff);
}

TEST_F(WeightsCacheTest, FoldersMayBeNamedFromWhereTheProcessIs) {
  EXPECT_EQ(InChild([&] {
              fs::current_path(folder_);
              WeightsCache cache({"relative/folder", CacheMode::kReadWrite},
                                 std::array{WeightsSource{weights_, true}});
              PackAll(cache, 1);
              WeightsCache simple({"simple", CacheMode::kReadWrite},
                                  std::array{WeightsSource{weights_, true}});
              PackAll(simple, 1);
              return cache.report().problem.empty() && simple.report().problem.empty() ? 0 : 1;
            }),
            "exit 0");
  EXPECT_FALSE(fs::is_empty(folder_ / "relative" / "folder"));
  EXPECT_FALSE(fs::is_empty(folder_ / "simple"));
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
