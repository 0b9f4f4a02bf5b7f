#include "tools/common/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fuselite::tools {
namespace {

using namespace std::chrono_literals;
constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress(std::string label, int64_t total)
    : label_(std::move(label)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      next_(begin_ + 1s) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::Update(int64_t done) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + 100ms;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  if (total_ <= 0) {
    std::fprintf(stderr, "\r%s  %.0f s\033[K", label_.c_str(), seconds);
    return;
  }
  const double share =
      std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
  const int filled = static_cast<int>(share * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fprintf(stderr, "\r%s [%s] %3.0f%%  %.0f s\033[K", label_.c_str(), bar.c_str(), share * 100,
               seconds);
}

}  // namespace fuselite::tools
