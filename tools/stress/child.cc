#include "tools/stress/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>

namespace fuselite::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Exit statuses that no library chooses by itself.
constexpr int kSucceeded = 100, kFailed = 101;
constexpr size_t kMaxMessage = 4000;  // fits into a pipe that nobody reads yet

[[noreturn]] void BeChild(const std::function<Status()>& work, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would watch it any more
  if (const int null = open("/dev/null", O_WRONLY); null >= 0) dup2(null, STDOUT_FILENO);
  std::string error;
  try {
    const Status status = work();
    if (!status.ok()) error = status.message();
  } catch (const std::exception& exception) {
    error = std::string("an exception: ") + exception.what();
  }
  error.resize(std::min(error.size(), kMaxMessage));
  if (!error.empty() && write(report, error.data(), error.size()) < 0) error.clear();
  _exit(error.empty() ? kSucceeded : kFailed);
}

std::string ReadAll(int pipe) {
  std::string text(kMaxMessage, '\0');
  const ssize_t size = read(pipe, text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

// Waits until the child ends or the time is over; whether it ended.
bool WaitFor(pid_t child, double limit_seconds, int& status) {
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(limit_seconds));
  while (waitpid(child, &status, WNOHANG) != child) {
    if (Clock::now() > end) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSuccess: return "SUCCESS";
    case Verdict::kFailure: return "FAILURE";
    case Verdict::kHang: return "HANG";
    case Verdict::kCrash: break;
  }
  return "CRASH";
}

ChildResult RunInChild(const std::function<Status()>& work, double limit_seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return {Verdict::kFailure, std::string("no pipe: ") + std::strerror(errno), 0};
  }
  const Clock::time_point start = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    BeChild(work, ends[1]);
  }
  close(ends[1]);
  ChildResult result;
  int status = 0;
  if (child < 0) {
    result = {Verdict::kFailure, std::string("no process: ") + std::strerror(errno), 0};
  } else if (!WaitFor(child, limit_seconds, status)) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    result = {Verdict::kHang, "was killed at its limit", 0};
  } else if (WIFSIGNALED(status)) {
    result = {Verdict::kCrash, strsignal(WTERMSIG(status)), 0};
  } else if (WEXITSTATUS(status) == kFailed) {
    result = {Verdict::kFailure, ReadAll(ends[0]), 0};
  } else if (WEXITSTATUS(status) != kSucceeded) {
    result = {Verdict::kCrash, "exit status " + std::to_string(WEXITSTATUS(status)), 0};
  }
  close(ends[0]);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace fuselite::tools
