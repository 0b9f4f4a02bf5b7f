#include "jit/product/depth_walker.h"

#include <algorithm>

namespace fuselite::jit {

namespace {

// Where straight code ends and loops begin. These decide the time of a product and never its bits;
// conv and fully connected layers of benchmarks/ are what to measure when one is changed.
//
// Up to so many steps, and multiplications, in all the whole depth is straight code: a loop's start
// and end would cost more than the sums.
constexpr int64_t kStraightSteps = 36, kStraightMultiplies = 256;
// Steps that a loop takes at a time. Few accumulators leave room for twice as many where a run is
// long, which spares half of the loop's own instructions. With more, a step's products keep the
// units busy beside them, and fewer steps are less code to emit.
constexpr int64_t kUnroll = 8, kLongUnroll = 16, kShortUnroll = 4, kShortestUnroll = 2;
constexpr int64_t kLongRun = 128;
constexpr int kSomeAccumulators = 12, kManyAccumulators = 20;
// What L1 keeps from one run to the next.
constexpr int64_t kWeightsInL1 = 32 << 10;

// The code of a run of so many steps, in tenths of a step of the largest tiles. Those of fewer
// accumulators have less code in a step, and more steps in a loop and behind it (WalkRun).
int64_t TenthsOfCode(int64_t steps) {
  const auto most = [&](int64_t unroll) { return std::min(steps, 2 * unroll - 1); };
  const int64_t unroll = steps >= kLongRun ? kLongUnroll : kUnroll;
  return std::max({10 * most(kShortestUnroll), 7 * most(kShortUnroll), 4 * most(unroll)});
}

}  // namespace

bool RollsLoops(int64_t line_rows, int64_t weights_bytes) {
  return line_rows == 1 && weights_bytes >= kWeightsInL1;
}

Status CheckDepth(const DepthRuns& depth, int64_t values, int64_t value_bytes, int64_t extent) {
  constexpr int64_t kReach = int64_t{1} << 30;
  // In each of up to four functions: with AVX-512 a step of float tiles of 9 x 48 takes up to 1,064
  // bytes in all of them, of which 2 MiB hold 1,970.
  constexpr int64_t kMostTenths = 19'000;
  int64_t furthest = extent, tenths = 0;
  for (const auto& run : depth.runs) {
    furthest = std::max(furthest, run.offset + run.length * value_bytes);
    tenths += TenthsOfCode((run.length + values - 1) / values);
  }
  furthest += depth.outer * depth.outer_step;
  if (furthest > kReach) return Unsupported("does not take a tile of ", furthest, " bytes' extent");
  if (tenths > kMostTenths) {
    return Unsupported("does not take windows of ", depth.runs.size(),
                       " runs, whose code is too long");
  }
  return Status();
}

void DepthWalker::Prepare(int64_t row_step, const kernels::RowRuns& runs) {
  row_step_ = row_step;
  runs_ = runs;
  if (runs.rows != 0) return;
  a_.mov(r_.step, row_step);
  a_.lea(r_.step3, a_.ptr[r_.step + r_.step * 2]);
}

void DepthWalker::Start(int rows) {
  rows_ = rows;
  w_offset_ = a_offset_ = 0;
  a_.mov(r_.bases[0], r_.a);
  for (int b = 1; b < bases(); ++b) {
    a_.lea(r_.bases[b], a_.ptr[r_.bases[b - 1] + r_.step * 4]);
    a_.add(r_.bases[b], r_.step);
  }
}

Place DepthWalker::RowValue(int row, int64_t displacement) const {
  if (runs_.rows != 0) {
    return Place(r_.bases[0]) + (runs_.Offset(row, row_step_) + displacement);
  }
  const Place base = Place(r_.bases[row / kRowsPerBase]) + displacement;
  switch (row % kRowsPerBase) {
    case 1: return base.Plus(r_.step);
    case 2: return base.Plus(r_.step, 2);
    case 3: return base.Plus(r_.step3);
    case 4: return base.Plus(r_.step, 4);
    default: return base;
  }
}

void DepthWalker::Walk(int accumulators, int chains, const Step& step) {
  const int64_t steps = depth_.steps(values_);
  const bool is_short = steps <= kStraightSteps && steps * accumulators <= kStraightMultiplies;
  if (is_short || depth_.outer == 1) {
    for (int64_t i = 0; i < depth_.outer; ++i) {
      for (const auto& run : depth_.runs) {
        WalkRun(i * depth_.outer_step, run, accumulators, chains, step);
      }
    }
    return;
  }
  a_.mov(r_.outer, depth_.outer);
  Flush(0);
  Xbyak::Label next;
  a_.align(16);
  a_.L(next);
  for (const DepthRuns::Run& run : depth_.runs) WalkRun(0, run, accumulators, chains, step);
  Flush(depth_.outer_step);
  a_.dec(r_.outer);
  a_.jnz(next, Assembler::T_NEAR);
  a_offset_ = depth_.outer * depth_.outer_step;
}

int64_t DepthWalker::Unroll(int64_t steps, int accumulators) const {
  if (rolled_) return 1;
  if (accumulators >= kManyAccumulators) return kShortestUnroll;
  if (accumulators >= kSomeAccumulators) return kShortUnroll;
  return steps >= kLongRun ? kLongUnroll : kUnroll;
}

void DepthWalker::WalkRun(int64_t origin, const DepthRuns::Run& run, int accumulators, int chains,
                          const Step& step) {
  const int64_t start = origin + run.offset, steps = (run.length + values_ - 1) / values_;
  const auto values = [&](int64_t i) { return std::min(values_, run.length - i * values_); };
  const auto chain = [&](int64_t i) { return static_cast<int>(i % chains); };
  const int64_t unroll = std::max<int64_t>(chains, Unroll(steps, accumulators));
  if (steps < 2 * unroll) {
    for (int64_t i = 0; i < steps; ++i) {
      step(start + i * kStepBytes - a_offset_, values(i), chain(i));
    }
    return;
  }
  // Whole steps alone: the last one may be another code.
  const int64_t loops = run.length / values_ / unroll;
  Flush(start);
  a_.mov(r_.count, loops);
  Xbyak::Label next;
  a_.align(32);
  a_.L(next);
  for (int64_t i = 0; i < unroll; ++i) step(i * kStepBytes, values_, chain(i));
  Flush(start + unroll * kStepBytes);
  a_.dec(r_.count);
  a_.jnz(next, Assembler::T_NEAR);
  a_offset_ = start + loops * unroll * kStepBytes;
  for (int64_t i = loops * unroll; i < steps; ++i) {
    step((i - loops * unroll) * kStepBytes, values(i), chain(i));
  }
}

void DepthWalker::Flush(int64_t a_offset) {
  if (w_offset_ != 0) a_.add(r_.weights, static_cast<uint32_t>(w_offset_));
  w_offset_ = 0;
  const int64_t move = a_offset - a_offset_;
  if (move != 0) MoveBases(move);
  a_offset_ = a_offset;
}

void DepthWalker::MoveBases(int64_t bytes) {
  for (int b = 0; b < bases(); ++b) {
    a_.add(r_.bases[b], static_cast<uint32_t>(bytes));
  }
}

}  // namespace fuselite::jit
