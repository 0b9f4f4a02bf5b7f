#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/runtime/child.h"

namespace fuselite {
namespace {

// Loads, runs a region, unloads; the helpers are then still there, and go to sleep or exit.
int LoadRunUnload(int threads) {
  void* const library = dlopen(UNLOAD_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 2;
  const auto run = reinterpret_cast<int (*)(int)>(dlsym(library, "RunRegion"));
  if (run == nullptr || run(threads) != threads) return 3;
  return dlclose(library) == 0 ? 0 : 4;
}

TEST(Unload, HelpersSurviveTheHostsDlclose) {
  EXPECT_EQ(InChild([] {
              for (int i = 0; i < 20; ++i) {
                if (const int failed = LoadRunUnload(2 + i % 3)) return failed;
                std::this_thread::sleep_for(std::chrono::milliseconds(i % 5));
              }
              return 0;
            }),
            "exit 0");
}

TEST(Unload, WithoutARegionTheLibraryGoes) {
  EXPECT_EQ(InChild([] {
              if (const int failed = LoadRunUnload(1)) return failed;
              return dlopen(UNLOAD_MODULE, RTLD_NOW | RTLD_NOLOAD) == nullptr ? 0 : 1;
            }),
            "exit 0");
}

}  // namespace
}  // namespace fuselite
