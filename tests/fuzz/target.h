// What a fuzz target is: one file that defines FuzzOne(). The ordinary build replays inputs through
// it (replay_test.cc), clang's builds link it with libFuzzer (libfuzzer_main.cc).
#pragma once

#include <cstdint>
#include <span>

namespace fuselite::fuzz {

// One input. A finding is a crash or a failed expectation of GoogleTest.
void FuzzOne(std::span<const uint8_t> bytes);

}  // namespace fuselite::fuzz
