// A target under libFuzzer. The first failed expectation is printed and ends the process, which
// libFuzzer then reports as a finding. With FUSELITE_REACHED=FILE the blocks that the inputs ran
// through are written to FILE at the end, for scripts/fuzz-coverage.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "tests/fuzz/target.h"

// What clang's -fsanitize=fuzzer puts into the program: a counter and an address for each block.
struct Block {
  uintptr_t address;
  uintptr_t is_entry;
};
extern "C" {
extern uint8_t __start___sancov_cntrs[], __stop___sancov_cntrs[];
extern const Block __start___sancov_pcs[];
extern const char __executable_start[];
}

namespace {

// libFuzzer clears the counters before each input, so that they are gathered behind each.
class Reached {
 public:
  Reached() {
    if (path_ != nullptr) seen_.resize(__stop___sancov_cntrs - __start___sancov_cntrs);
  }
  ~Reached() {
    if (path_ == nullptr) return;
    std::ofstream file(path_);
    for (size_t i = 0; i < seen_.size(); ++i) {
      const auto base = reinterpret_cast<uintptr_t>(__executable_start);
      file << int{seen_[i]} << " 0x" << std::hex << __start___sancov_pcs[i].address - base
           << std::dec << "\n";
    }
  }
  void Gather() {
    for (size_t i = 0; i < seen_.size(); ++i) seen_[i] |= __start___sancov_cntrs[i] != 0;
  }

 private:
  const char* path_ = std::getenv("FUSELITE_REACHED");
  std::vector<uint8_t> seen_;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  int count = 1;
  char name[] = "fuzz";
  char* arguments[] = {name, nullptr};
  ::testing::InitGoogleTest(&count, arguments);
  ::testing::FLAGS_gtest_break_on_failure = true;
  // GoogleTest breaks by SIGTRAP, of which libFuzzer knows nothing; of SIGABRT it keeps the input.
  std::signal(SIGTRAP, [](int) { std::abort(); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Reached reached;
  fuselite::fuzz::FuzzOne({data, size});
  reached.Gather();
  return 0;
}
