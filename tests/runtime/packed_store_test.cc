#include "runtime/weights/packed_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/support/sanitizers.h"
#include "runtime/weights/hash.h"

namespace fuselite {
namespace {

PackRequest RequestFor(const std::vector<unsigned char>& source, std::string layout = "l") {
  PackRequest request;
  request.source = source.data();
  request.source_bytes = source.size();
  request.layout = std::move(layout);
  request.bytes = 128;
  return request;
}

// Counts its calls and writes their number.
struct CountingPack {
  std::atomic<int> calls{0};
  std::function<void(std::byte*)> function() {
    return [this](std::byte* to) { std::memset(to, ++calls, 128); };
  }
};

TEST(Hash, DependsOnEveryBitOnLengthAndOnSeed) {
  std::vector<unsigned char> data(100, 0);
  std::set<Hash128> seen;
  size_t hashes = 0;
  for (size_t length = 0; length <= data.size(); ++length, ++hashes) {
    seen.insert(HashBytes(data.data(), length));
  }
  for (size_t bit = 0; bit < data.size() * 8; ++bit, ++hashes) {
    data[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    seen.insert(HashBytes(data.data(), data.size()));
    data[bit / 8] = 0;
  }
  seen.insert(HashBytes(data.data(), data.size(), 1));
  EXPECT_EQ(seen.size(), hashes + 1);
}

TEST(Hash, DoesNotDependOnAlignment) {
  std::vector<unsigned char> data(300);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 37);
  const Hash128 expected = HashBytes(data.data(), 200);
  for (size_t shift = 1; shift < 64; ++shift) {
    std::vector<unsigned char> moved(300);
    std::memcpy(moved.data() + shift, data.data(), 200);
    EXPECT_EQ(HashBytes(moved.data() + shift, 200), expected) << shift;
  }
}

TEST(Hash, HalvesAreEachWellSpread) {
  std::set<uint64_t> low, high;
  for (uint32_t i = 0; i < 20000; ++i) {
    const Hash128 hash = HashBytes(&i, sizeof(i));
    low.insert(hash.low);
    high.insert(hash.high);
  }
  EXPECT_EQ(low.size(), 20000u);
  EXPECT_EQ(high.size(), 20000u);
}

TEST(PackedStore, SameContentAtAnotherAddressIsPackedOnce) {
  const auto store = NewPackedStore();
  CountingPack pack;
  const std::vector<unsigned char> a(100, 5), b(100, 5);
  const auto first = store->GetOrPack(RequestFor(a), pack.function());
  const auto second = store->GetOrPack(RequestFor(b), pack.function());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value(), second.value());
  EXPECT_EQ(pack.calls, 1);
  EXPECT_EQ(first.value()->size(), 128u);
  EXPECT_EQ(first.value()->data()[127], std::byte{1});
}

TEST(PackedStore, EverythingInTheRequestTellsPackingsApart) {
  const auto store = NewPackedStore();
  CountingPack pack;
  const std::vector<unsigned char> a(100, 5), b(100, 6);
  std::vector<PackRequest> requests(7, RequestFor(a));
  requests[1] = RequestFor(b);
  requests[2].layout = "other";
  requests[3].bytes = 64;
  requests[4].source_bytes = 99;
  requests[5].source2 = b.data();
  requests[5].source2_bytes = 10;
  requests[6].source2 = a.data();
  requests[6].source2_bytes = 10;
  std::set<PackedWeights> distinct;
  for (const PackRequest& request : requests) {
    const auto packed = store->GetOrPack(request, [&](std::byte*) { ++pack.calls; });
    ASSERT_TRUE(packed.ok());
    distinct.insert(packed.value());
  }
  EXPECT_EQ(distinct.size(), requests.size());
  EXPECT_EQ(pack.calls, 7);
}

TEST(PackedStore, TheSecondSourceMayBeMissing) {
  const auto store = NewPackedStore();
  CountingPack pack;
  const std::vector<unsigned char> source(100, 5);
  PackRequest request = RequestFor(source);
  const auto first = store->GetOrPack(request, pack.function());
  request.source2_bytes = 10;
  const auto second = store->GetOrPack(request, pack.function());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(PackedStore, PutsPackingsIntoTheirRegion) {
  if (kAddressSanitizer) GTEST_SKIP() << "buffers stay apart";
  const auto store = NewPackedStore();
  CountingPack pack;
  BufferRegion region(kHugePage);
  const std::byte* last = nullptr;
  std::vector<PackedWeights> held;
  for (const char* layout : {"first", "second", "third"}) {
    const std::vector<unsigned char> source(100, 5);
    PackRequest request = RequestFor(source, layout);
    request.region = &region;
    held.push_back(*store->GetOrPack(request, pack.function()));
    if (last != nullptr) {
      EXPECT_EQ(held.back()->data(), last + 128 + kAlignment);
    }
    last = held.back()->data();
  }
}

TEST(PackedStore, ForgetsWhatNobodyHolds) {
  const auto store = NewPackedStore();
  CountingPack pack;
  std::vector<unsigned char> source(4);
  for (int i = 0; i < 500; ++i) {
    std::memcpy(source.data(), &i, sizeof(i));
    std::weak_ptr<const AlignedBuffer> seen;
    {
      const auto packed = store->GetOrPack(RequestFor(source), pack.function());
      ASSERT_TRUE(packed.ok());
      seen = packed.value();
    }
    EXPECT_TRUE(seen.expired());
  }
  const auto again = store->GetOrPack(RequestFor(source), pack.function());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(pack.calls, 501);
}

TEST(PackedStore, RemembersWhatSomebodyHoldsAmongMuchThatNobodyDoes) {
  const auto store = NewPackedStore();
  CountingPack pack;
  const std::vector<unsigned char> kept(4, 255);
  const auto held = store->GetOrPack(RequestFor(kept), pack.function());
  ASSERT_TRUE(held.ok());
  std::vector<unsigned char> source(4);
  for (int i = 0; i < 500; ++i) {
    std::memcpy(source.data(), &i, sizeof(i));
    ASSERT_TRUE(store->GetOrPack(RequestFor(source), pack.function()).ok());
  }
  const auto again = store->GetOrPack(RequestFor(kept), pack.function());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *held);
  EXPECT_EQ(pack.calls, 501);
}

TEST(PackedStore, FailureIsNotKept) {
  const auto store = NewPackedStore();
  CountingPack pack;
  const std::vector<unsigned char> source(10, 1);
  const auto thrown = store->GetOrPack(RequestFor(source, "conv"),
                                       [](std::byte*) { throw std::runtime_error("odd tile"); });
  ASSERT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.status().ToString(), "internal error: packing weights as conv: odd tile");
  const auto starved =
      store->GetOrPack(RequestFor(source), [](std::byte*) { throw std::bad_alloc(); });
  EXPECT_EQ(starved.status().code(), StatusCode::kOutOfMemory);
  EXPECT_TRUE(store->GetOrPack(RequestFor(source, "conv"), pack.function()).ok());
  EXPECT_EQ(pack.calls, 1);
}

TEST(PackedStore, TooLargeIsOutOfMemory) {
  const auto store = NewPackedStore();
  CountingPack pack;
  const std::vector<unsigned char> source(10, 1);
  PackRequest request = RequestFor(source);
  request.bytes = size_t{1} << 60;
  EXPECT_EQ(store->GetOrPack(request, pack.function()).status().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(pack.calls, 0);
}

TEST(PackedStore, ConcurrentRequestsPackOnceAndDoNotHoldUpOthers) {
  const auto store = NewPackedStore();
  const std::vector<unsigned char> slow(10, 1), quick(10, 2);
  std::atomic<int> calls{0};
  std::atomic<bool> started{false}, release{false};
  std::vector<PackedWeights> results(4);
  std::vector<std::thread> threads;
  for (PackedWeights& result : results) {
    threads.emplace_back([&] {
      auto packed = store->GetOrPack(RequestFor(slow), [&](std::byte*) {
        ++calls;
        started = true;
        while (!release) std::this_thread::yield();
      });
      if (packed.ok()) result = packed.value();
    });
  }
  while (!started) std::this_thread::yield();
  // Many, so that the store looks for what nobody holds.
  for (int i = 0; i < 500; ++i) {
    const PackRequest request = RequestFor(quick, std::to_string(i));
    EXPECT_TRUE(store->GetOrPack(request, [](std::byte*) {}).ok());
  }
  std::thread late([&] {
    const auto packed = store->GetOrPack(RequestFor(slow), [&](std::byte*) { ++calls; });
    EXPECT_TRUE(packed.ok());
  });
  // Whether the last one finds them or begins by itself, it has time to.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  release = true;
  late.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 1);
  for (const PackedWeights& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_NE(results[0], nullptr);
}

TEST(PackedStore, TheProcessHasOne) { EXPECT_EQ(&ProcessPackedStore(), &ProcessPackedStore()); }

}  // namespace
}  // namespace fuselite
