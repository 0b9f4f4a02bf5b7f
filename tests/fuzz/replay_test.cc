// A target in the ordinary build: the inputs that once were findings (tests/fuzz/corpus/TARGET),
// and some that are made of random bytes. FUSELITE_SEEDS=1000:9000 makes others than the first
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/target.h"

namespace fuselite::fuzz {
namespace {

TEST(Replay, Corpus) {
  const std::filesystem::path folder = FUSELITE_CORPUS;
  if (!std::filesystem::is_directory(folder)) return;  // nothing was found yet
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    FuzzOne({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    ASSERT_FALSE(HasFailure());
  }
}

TEST(Replay, RandomBytes) {
  int first = 1, last = FUSELITE_REPLAYS;
  if (const char* const seeds = std::getenv("FUSELITE_SEEDS")) {
    ASSERT_EQ(std::sscanf(seeds, "%d:%d", &first, &last), 2) << seeds;
  }
  for (int seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(random() % 200);
    std::ranges::generate(bytes, [&] { return static_cast<uint8_t>(random()); });
    FuzzOne(bytes);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace fuselite::fuzz
