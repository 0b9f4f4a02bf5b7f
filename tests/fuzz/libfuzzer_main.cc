// A target under libFuzzer. The first failed expectation is printed and ends the process, which
// libFuzzer then reports as a finding.
#include <gtest/gtest.h>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  int count = 1;
  char name[] = "fuzz";
  char* arguments[] = {name, nullptr};
  ::testing::InitGoogleTest(&count, arguments);
  ::testing::FLAGS_gtest_break_on_failure = true;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuselite::fuzz::FuzzOne({data, size});
  return 0;
}
