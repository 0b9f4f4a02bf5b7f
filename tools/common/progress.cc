#include "tools/common/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fuselite::tools {
namespace {

using namespace std::chrono_literals;
constexpr int kBarWidth = 30;

// FUSELITE_PROGRESS is for programs that run this one: always where they pass on what it draws.
bool Shown() {
  const char* asked = std::getenv("FUSELITE_PROGRESS");
  const std::string_view word = asked != nullptr ? asked : "";
  return word == "always" || (word != "never" && isatty(STDERR_FILENO) == 1);
}

}  // namespace

Progress::Progress(std::string label)
    : label_(std::move(label)), shown_(Shown()), begin_(Clock::now()), next_(begin_ + 1s) {}

void Progress::Finish() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

bool Progress::IsDue(double& seconds) {
  if (!shown_) return false;
  const auto now = Clock::now();
  if (now < next_) return false;
  next_ = now + 100ms;
  drawn_ = true;
  seconds = std::chrono::duration<double>(now - begin_).count();
  return true;
}

void Progress::Update() {
  double seconds;
  if (IsDue(seconds)) std::fprintf(stderr, "\r%s  %.0f s\033[K", label_.c_str(), seconds);
}

void Progress::Update(double share) {
  double seconds;
  if (!IsDue(seconds)) return;
  share = std::clamp(share, 0.0, 1.0);
  const int filled = static_cast<int>(share * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fprintf(stderr, "\r%s [%s] %3.0f%%  %.0f s\033[K", label_.c_str(), bar.c_str(), share * 100,
               seconds);
}

}  // namespace fuselite::tools
