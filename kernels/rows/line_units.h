// The units of kernels that compute lines of outputs, block of channels by block of channels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {

// Lines are shared evenly by few threads where there are many; else each line's channels are, too.
class LineUnits {
 public:
  // A range of blocks of one line.
  struct Unit {
    int64_t line, first_block, last_block;
  };

  LineUnits() = default;
  LineUnits(int64_t lines, int64_t blocks, int threads) : lines_(lines), blocks_(blocks) {
    const int64_t shares = Wanted(threads, lines) > 1 ? kShares : 1;
    unit_blocks_ = CeilDiv(blocks, shares);
    shares_ = CeilDiv(blocks, unit_blocks_);
  }

  // The parts of each of `lines` lines that would suffice for the threads.
  static int64_t Wanted(int threads, int64_t lines) {
    return threads > 1 && lines > 0 ? CeilDiv(kLinesOfThread * threads, lines) : 1;
  }

  int64_t count() const { return lines_ * shares_; }
  // The units of a line.
  int64_t shares() const { return shares_; }
  // The whole lines that begin with `unit` and end before `end`: one call computes all their
  // blocks.
  int64_t WholeLines(int64_t unit, int64_t end) const {
    return unit % shares_ == 0 ? (end - unit) / shares_ : 0;
  }
  Unit WholeAt(int64_t unit) const { return {unit / shares_, 0, blocks_}; }
  Unit At(int64_t unit) const {
    const int64_t first = unit % shares_ * unit_blocks_;
    return {unit / shares_, first, std::min(blocks_, first + unit_blocks_)};
  }
  // The units that a thread takes at least: about 2 microseconds, ten times a hot wait between
  // steps. `per_block`: multiply-adds of a block in a line. `in_time`: those of 2 microseconds.
  int64_t Grain(double per_block, double in_time) const {
    const double unit = per_block * static_cast<double>(unit_blocks_);
    return std::max<int64_t>(1, static_cast<int64_t>(in_time / unit));
  }

 private:
  // Fewer lines for a thread leave one of them idle for more than an eighth of the time.
  static constexpr int64_t kLinesOfThread = 8, kShares = 4;

  int64_t lines_ = 0, blocks_ = 0;
  int64_t unit_blocks_ = 1, shares_ = 1;
};

}  // namespace fuselite::kernels
