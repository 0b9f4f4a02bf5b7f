// A folder for a cache of packed weights, and weights that are packed in it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/weights/weights_cache.h"

namespace fuselite::testing {

namespace fs = std::filesystem;

class WeightsCacheTest : public ::testing::Test {
 protected:
  WeightsCacheTest() {
    std::string name = ::testing::TempDir() + "weights_cache_XXXXXX";
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

}  // namespace fuselite::testing
