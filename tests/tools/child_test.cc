#include "tools/stress/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <new>

namespace fuselite::tools {
namespace {

using ::testing::HasSubstr;

TEST(ChildTest, TellsHowItsWorkEnded) {
  EXPECT_EQ(RunInChild([] { return Status(); }, 10).verdict, Verdict::kSuccess);
  const ChildResult failure = RunInChild([] { return Internal("so it is"); }, 10);
  EXPECT_EQ(failure.verdict, Verdict::kFailure);
  EXPECT_EQ(failure.detail, "so it is");
  const ChildResult thrown = RunInChild([]() -> Status { throw std::bad_alloc(); }, 10);
  EXPECT_EQ(thrown.verdict, Verdict::kFailure);
  EXPECT_THAT(thrown.detail, HasSubstr("bad_alloc"));
}

TEST(ChildTest, TellsCrashesBySignalAndByExit) {
  const auto by_signal = [] {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler of its own
    raise(SIGSEGV);
    return Status();
  };
  const ChildResult crash = RunInChild(by_signal, 10);
  EXPECT_EQ(crash.verdict, Verdict::kCrash);
  EXPECT_EQ(crash.detail, "Segmentation fault");
  const ChildResult left = RunInChild([]() -> Status { _exit(0); }, 10);
  EXPECT_EQ(left.verdict, Verdict::kCrash) << "work that ends the process has not succeeded";
  EXPECT_EQ(left.detail, "exit status 0");
}

TEST(ChildTest, KillsWhatHangsWithAllThatItStarted) {
  int alive[2];
  ASSERT_EQ(pipe(alive), 0);
  const auto hang = [&]() -> Status {
    close(alive[0]);
    fork();  // both hold the pipe
    for (;;) pause();
  };
  const ChildResult result = RunInChild(hang, 0.2);
  close(alive[1]);
  EXPECT_EQ(result.verdict, Verdict::kHang);
  EXPECT_GE(result.seconds, 0.2);
  char byte;
  EXPECT_EQ(read(alive[0], &byte, 1), 0) << "the pipe's other end is closed: nobody is left";
  close(alive[0]);
}

}  // namespace
}  // namespace fuselite::tools
