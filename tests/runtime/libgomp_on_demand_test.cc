// What the shared libraries have in place of libgomp.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "runtime/threads/parallel_team.h"

namespace fuselite::internal {
namespace {

bool LibgompIsLoaded() {
  void* const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

std::vector<int> IndexesOf(void (*run)(int, FunctionRef<void(int, int)>), int threads) {
  std::mutex mutex;
  std::vector<int> indexes;
  run(threads, [&](int index, int count) {
    EXPECT_EQ(count, threads);
    const std::lock_guard lock(mutex);
    indexes.push_back(index);
  });
  return indexes;
}

TEST(LibgompOnDemandTest, TheFirstTeamLoadsIt) {
  ASSERT_FALSE(LibgompIsLoaded());
  for (const int threads : {3, 1, 2}) {
    std::vector<int> all(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) all[static_cast<size_t>(i)] = i;
    EXPECT_THAT(IndexesOf(RunOpenMpTeam, threads), ::testing::UnorderedElementsAreArray(all));
  }
  EXPECT_TRUE(LibgompIsLoaded());
}

// Which stand in where there is none.
TEST(LibgompOnDemandTest, PlainThreadsDoTheSame) {
  EXPECT_THAT(IndexesOf(RunPlainTeam, 1), ::testing::ElementsAre(0));
  EXPECT_THAT(IndexesOf(RunPlainTeam, 4), ::testing::UnorderedElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace fuselite::internal
