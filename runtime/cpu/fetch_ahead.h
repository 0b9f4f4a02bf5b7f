// What a thread does of use while it waits: it brings constants that it will read next into L2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fuselite {

// Prefetches what one thread reads later in the same run.
class FetchAhead {
 public:
  // The constants of stage `stage`; `find` gives them, where they are not those of the last call.
  template <class Find>
  void AimAt(size_t stage, Find find) {
    if (stage == stage_) return;
    stage_ = stage;
    left_ = find();
    left_ = left_.first(std::min(left_.size(), kBytes));
  }
  // Asks for the next few lines. False where all have been asked for.
  bool Next() {
    const std::span<const std::byte> now = left_.first(std::min(left_.size(), kAtOnce));
    for (size_t at = 0; at < now.size(); at += kLine) {
      __builtin_prefetch(now.data() + at, 0, 2);
    }
    left_ = left_.subspan(now.size());
    return !now.empty();
  }

 private:
  static constexpr size_t kLine = 64;
  // As much as memory gives in some 8 us, the small steps between two layers of a decoder: a
  // quarter of an L2 of 1 MiB, which holds their values beside it.
  static constexpr size_t kBytes = size_t{256} << 10;
  // Between two looks whether the wait is over: 30 ns.
  static constexpr size_t kAtOnce = 1024;

  size_t stage_ = SIZE_MAX;
  std::span<const std::byte> left_;
};

}  // namespace fuselite
