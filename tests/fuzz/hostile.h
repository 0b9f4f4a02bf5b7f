// Models that mean harm are refused with one line that says why, within a second of computing and
// 64 MiB of memory, by the interpreter alone and with the delegate.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

#include "interpreter/file/writer.h"
#include "interpreter/interpreter.h"
#include "partitioner/delegate.h"
#include "runtime/support/sanitizers.h"
#include "tests/runtime/child.h"

namespace fuselite::fuzz {

using Bytes = std::vector<std::byte>;

constexpr rlim_t kMemory = rlim_t{64} << 20;
constexpr rlim_t kSeconds = 1;

// Sanitizers map terabytes and take ten times as long.
constexpr bool kLimited = !kAddressSanitizer && !kThreadSanitizer;

inline bool Limit() {
  if (!kLimited) return true;
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  const rlim_t space = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kMemory;
  const rlimit memory{space, space}, seconds{kSeconds, kSeconds};
  return setrlimit(RLIMIT_AS, &memory) == 0 && setrlimit(RLIMIT_CPU, &seconds) == 0;
}

inline Status Run(const Bytes& file, bool delegated) {
  FUSELITE_ASSIGN_OR_RETURN(const auto model, interpreter::LoadModelFromMemory(file, nullptr));
  interpreter::InterpreterOptions options;
  options.budget.max_memory = static_cast<double>(kMemory) / 2;
  partitioner::Options own;
  own.num_threads = 1;
  own.budget = options.budget;
  partitioner::Delegate delegate(own);
  FUSELITE_ASSIGN_OR_RETURN(const auto interpreter,
                            interpreter::Interpreter::Create(model, options));
  if (delegated) FUSELITE_RETURN_IF_ERROR(interpreter->ApplyDelegate(delegate.c_struct()));
  FUSELITE_RETURN_IF_ERROR(interpreter->AllocateTensors());
  for (size_t i = 0; i < interpreter->inputs().size(); ++i) {
    const auto input = interpreter->input(static_cast<int>(i));
    if (input.data != nullptr) std::memset(input.data, 0, input.bytes);
  }
  return interpreter->Invoke();
}

// What the file is told in a child of so little time and memory; how the child died where it did.
inline std::string Outcome(const Bytes& file, bool delegated) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const std::string end = InChild([&] {
    if (!Limit()) return 2;
    std::string text = "an exception";
    try {
      text = Run(file, delegated).ToString();
    } catch (...) {
    }
    return write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 3;
  });
  close(ends[1]);
  std::string text(1 << 16, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(read(ends[0], text.data(), text.size()), 0)));
  close(ends[0]);
  return end == "exit 0" ? text : end;
}

// The line says `error`, among other things.
inline void ExpectRefused(const Bytes& file, const char* error) {
  for (const bool delegated : {false, true}) {
    const std::string text = Outcome(file, delegated);
    EXPECT_THAT(text, ::testing::HasSubstr(error)) << (delegated ? "delegated" : "alone");
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_LT(text.size(), 400u) << text;
  }
}

inline const kernels::OperatorDef& Op(std::string_view name) {
  return *kernels::FindOperator(name);
}

}  // namespace fuselite::fuzz
