#include "jit/code/code_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fuselite::jit {
namespace {

using ::testing::HasSubstr;

// mov eax, value; ret
CodeBytes Returning(uint8_t value) { return {{0xb8, value, 0, 0, 0, 0xc3}, {0}}; }

int Call(const SharedCode& code) { return code->entry<int()>(0)(); }

TEST(CodeCacheTest, RunsAndSharesCode) {
  CodeCache cache;
  int emitted = 0;
  const auto emit = [&]() -> Result<CodeBytes> {
    ++emitted;
    return Returning(42);
  };
  auto first = cache.GetOrEmit("a", "a", emit);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  auto second = cache.GetOrEmit("a", "a", emit);
  EXPECT_EQ(Call(*first), 42);
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(emitted, 1);
  auto other = cache.GetOrEmit("b", "b", [] { return Result<CodeBytes>(Returning(7)); });
  EXPECT_EQ(Call(*other), 7);
}

SharedCode Get(CodeCache& cache, uint8_t value) {
  const std::string key(1, static_cast<char>('a' + value));
  auto code = cache.GetOrEmit(key, key, [&] { return Result<CodeBytes>(Returning(value)); });
  EXPECT_TRUE(code.ok()) << code.status().ToString();
  return *code;
}

TEST(CodeBatchTest, MakesCodeExecutableAtItsEnd) {
  ASSERT_TRUE(CheckExecutableMemory().ok());
  CodeCache cache;
  std::vector<SharedCode> codes;
  {
    CodeBatch batch;
    for (uint8_t i = 0; i < 20; ++i) codes.push_back(Get(cache, i));
    codes.erase(codes.begin() + 5, codes.begin() + 8);  // is gone before the end
    ASSERT_TRUE(batch.Close().ok());
    for (const SharedCode& code : codes) EXPECT_EQ(Call(code), code->bytes()[1]);
    codes.push_back(Get(cache, 21));
  }
  EXPECT_EQ(Call(codes.back()), 21);
}

TEST(CodeBatchTest, GivesOthersCodeThatRuns) {
  ASSERT_TRUE(CheckExecutableMemory().ok());
  CodeCache cache;
  CodeBatch batch;
  const SharedCode first = Get(cache, 1), second = Get(cache, 2);
  std::thread([&] { EXPECT_EQ(Call(Get(cache, 1)), 1); }).join();
  {
    CodeBatch inner;
    const SharedCode third = Get(cache, 3);
    EXPECT_EQ(Call(Get(cache, 2)), 2);
    ASSERT_TRUE(inner.Close().ok());
    EXPECT_EQ(Call(third), 3);
  }
  const SharedCode fourth = Get(cache, 4);
  ASSERT_TRUE(batch.Close().ok());
  for (const SharedCode& code : {first, second, fourth}) EXPECT_EQ(Call(code), code->bytes()[1]);
}

TEST(CodeCacheTest, LivesAsLongAsItIsUsed) {
  CodeCache cache;
  int emitted = 0;
  const auto emit = [&]() -> Result<CodeBytes> {
    ++emitted;
    return Returning(1);
  };
  { auto code = cache.GetOrEmit("a", "a", emit); }
  { auto code = cache.GetOrEmit("a", "a", emit); }
  EXPECT_EQ(emitted, 2);
}

TEST(CodeCacheTest, ForgetsFailures) {
  CodeCache cache;
  auto refused = cache.GetOrEmit("a", "a", []() -> Result<CodeBytes> { return Unsupported("no"); });
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  auto thrown = cache.GetOrEmit(
      "a", "blob", []() -> Result<CodeBytes> { throw std::runtime_error("label is not found"); });
  EXPECT_EQ(thrown.status().code(), StatusCode::kInternal);
  EXPECT_EQ(thrown.status().message(), "emitting blob: label is not found");
  auto starved =
      cache.GetOrEmit("a", "blob", []() -> Result<CodeBytes> { throw std::bad_alloc(); });
  EXPECT_EQ(starved.status().code(), StatusCode::kOutOfMemory);
  auto good = cache.GetOrEmit("a", "a", [] { return Result<CodeBytes>(Returning(3)); });
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(Call(*good), 3);
}

TEST(CodeCacheTest, RefusesWhereTheSystemDoes) {
  CodeCache cache([](std::span<const uint8_t>, size_t*) -> Result<uint8_t*> {
    return Unsupported("this system refuses executable memory");
  });
  auto code = cache.GetOrEmit("a", "a", [] { return Result<CodeBytes>(Returning(3)); });
  EXPECT_EQ(code.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(code.status().message(), HasSubstr("executable memory"));
}

// The permissions of the mapping that holds `address`: "r-xp".
std::string PermissionsAt(const void* address) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    size_t begin = 0, end = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%zx-%zx %4s", &begin, &end, permissions) != 3) continue;
    const auto value = reinterpret_cast<size_t>(address);
    if (begin <= value && value < end) return permissions;
  }
  return "";
}

TEST(CodeCacheTest, NothingIsWritableAndExecutable) {
  CodeCache cache;
  auto code = cache.GetOrEmit("a", "a", [] { return Result<CodeBytes>(Returning(3)); });
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(PermissionsAt((*code)->bytes().data()), "r-xp");
  std::ifstream maps("/proc/self/maps");
  const std::string all((std::istreambuf_iterator<char>(maps)), {});
  EXPECT_THAT(all, ::testing::Not(HasSubstr("rwx")));
}

// Code of one mapping: what is released leaves what lies beside it as it is.
TEST(CodeCacheTest, KeepsNeighboursOfWhatIsReleased) {
  CodeCache cache;
  std::vector<SharedCode> codes;
  for (uint8_t i = 0; i < 9; ++i) {
    auto code = cache.GetOrEmit(std::to_string(i), "neighbour",
                                [i] { return Result<CodeBytes>(Returning(i)); });
    ASSERT_TRUE(code.ok()) << code.status().ToString();
    codes.push_back(*code);
  }
  const void* released = codes[4]->bytes().data();
  for (size_t i = 0; i < codes.size(); i += 2) codes[i] = nullptr;
  EXPECT_NE(PermissionsAt(released), "r-xp");
  for (size_t i = 1; i < codes.size(); i += 2) EXPECT_EQ(Call(codes[i]), static_cast<int>(i));
}

// More than what is left of a mapping, and than a mapping has.
TEST(CodeCacheTest, PlacesLargeCode) {
  CodeCache cache;
  std::vector<SharedCode> codes;
  for (const size_t bytes : {size_t{700} << 10, size_t{700} << 10, size_t{3} << 20}) {
    CodeBytes code = Returning(static_cast<uint8_t>(codes.size()));
    code.bytes.resize(bytes, 0xcc);
    auto placed =
        cache.GetOrEmit(std::to_string(codes.size()), "large", [&] { return Result(code); });
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
    codes.push_back(*placed);
  }
  for (size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(Call(codes[i]), static_cast<int>(i));
}

TEST(CodeCacheTest, EmitsOnceForManyThreads) {
  CodeCache cache;
  std::atomic<int> emitted = 0;
  std::vector<SharedCode> codes(8);
  std::vector<std::thread> threads;
  for (SharedCode& code : codes) {
    threads.emplace_back([&] {
      auto result = cache.GetOrEmit("a", "a", [&] {
        ++emitted;
        return Result<CodeBytes>(Returning(5));
      });
      if (result.ok()) code = *result;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const SharedCode& code : codes) {
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(Call(code), 5);
  }
  EXPECT_EQ(emitted, 1);
}

TEST(CodeCacheTest, DumpsAndNamesBlobs) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fuselite-dump-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  setenv("FUSELITE_JIT_DUMP", folder.c_str(), 1);
  setenv("FUSELITE_JIT_PROFILE", "perfmap", 1);
  CodeCache cache;
  auto code = cache.GetOrEmit("key", "conv f32", [] { return Result<CodeBytes>(Returning(3)); });
  unsetenv("FUSELITE_JIT_DUMP");
  unsetenv("FUSELITE_JIT_PROFILE");
  ASSERT_TRUE(code.ok());
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    ++files;
    EXPECT_THAT(file.path().filename().string(), ::testing::StartsWith("conv_f32."));
    EXPECT_EQ(file.file_size(), 6u);
  }
  EXPECT_EQ(files, 1);
  const std::string map = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::ifstream lines(map);
  const std::string text((std::istreambuf_iterator<char>(lines)), {});
  EXPECT_THAT(text, HasSubstr("fuselite: conv f32"));
  std::filesystem::remove_all(folder);
  std::filesystem::remove(map);
}

}  // namespace
}  // namespace fuselite::jit
