#include "runtime/weights/constant_hashes.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "runtime/weights/packed_store.h"

namespace fuselite {
namespace {

TEST(ConstantHashes, AreThoseOfTheBytes) {
  const std::array<int, 100> values = {1, 2, 3};
  ConstantHashes hashes;
  hashes.Add(values.data(), sizeof values);
  hashes.Add(values.data(), 8);
  for (const size_t bytes : {sizeof values, size_t{8}, size_t{4}, size_t{0}}) {
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(hashes.HashOf(values.data(), bytes), HashBytes(values.data(), bytes)) << bytes;
    }
  }
}

// Bytes that change tell whether they are read: those that were not added, every time.
TEST(ConstantHashes, AreMadeOnce) {
  std::array<int, 100> stays = {1}, other = {1};
  ConstantHashes hashes;
  hashes.Add(stays.data(), sizeof stays);
  const Hash128 first = hashes.HashOf(stays.data(), sizeof stays);
  hashes.Add(stays.data(), sizeof stays);
  ASSERT_EQ(hashes.HashOf(other.data(), sizeof other), first);
  stays[0] = other[0] = 2;
  EXPECT_EQ(hashes.HashOf(stays.data(), sizeof stays), first);
  EXPECT_NE(hashes.HashOf(other.data(), sizeof other), first);
}

TEST(ConstantHashes, MayBeAskedByManyThreads) {
  constexpr int kThreads = 4, kConstants = 50;
  const std::vector<int> values(kConstants * 100, 7);
  ConstantHashes hashes;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kConstants; ++i) {
        const int* const constant = values.data() + i * 100;
        const size_t bytes = 4 * static_cast<size_t>(i);
        hashes.Add(constant, bytes);
        EXPECT_EQ(hashes.HashOf(constant, bytes), HashBytes(constant, bytes));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ConstantHashes, FindPackingsAsWithoutThem) {
  const std::array<int, 100> values = {1, 2, 3};
  ConstantHashes hashes;
  hashes.Add(values.data(), sizeof values);
  const std::unique_ptr<PackedStore> store = NewPackedStore();
  int packed = 0;
  const auto get = [&](ConstantHashes* known) {
    const PackRequest request{.source = values.data(),
                              .source_bytes = sizeof values,
                              .layout = "as it is",
                              .bytes = 64,
                              .hashes = known};
    return *store->GetOrPack(request, [&](std::byte*) { ++packed; });
  };
  const PackedWeights first = get(nullptr);
  EXPECT_EQ(get(&hashes), first);
  EXPECT_EQ(get(&hashes), first);
  EXPECT_EQ(packed, 1);
}

}  // namespace
}  // namespace fuselite
