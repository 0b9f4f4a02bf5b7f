// Running a piece of a test in a forked child, where it may hang, change limits or die.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace fuselite {

// What became of a child that ran `body`, which returns its exit code: "exit 0", "signal 14" (it
// took longer than `seconds`), ...
template <class Body>
std::string InChild(Body body, unsigned seconds = 20) {
  const pid_t child = fork();
  if (child < 0) return "fork failed";
  if (child == 0) {
    alarm(seconds);
    _exit(body());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "wait failed";
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit " + std::to_string(WEXITSTATUS(status));
}

}  // namespace fuselite
