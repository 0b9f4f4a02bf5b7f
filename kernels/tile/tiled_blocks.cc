#include "kernels/tile/tiled_blocks.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"
#include "kernels/simd.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// The most of a block that is copied from its first place, or of blocks of runs that are written
// together: they and their sources fit into L1.
constexpr int64_t kMostRepeated = int64_t{16} << 10;
// What is worth a unit of its own.
constexpr int64_t kUnitBytes = int64_t{64} << 10;
// Shorter runs take longer to write one by one than to copy behind each other once they are
// written, from L2 too (a Zen 4, runs of 3 bytes: 1.2 GB/s for 31). Where they alone repeat, they
// are moved by the loops of other copies.
constexpr int64_t kLeastRun = 16;
constexpr int64_t kMostOfShortRuns = int64_t{512} << 10;

// `size` blocks of the next level behind each other, all of them `times` times.
struct Level {
  int64_t size, times;
  int64_t in_bytes, out_bytes;  // of one block of the next level

  int64_t once() const { return size * out_bytes; }
};

// The dimensions, outermost first, those that are not repeated joined with the one before them. The
// innermost level is that of runs: its one block is a run of the input.
std::vector<Level> LevelsOf(const OpDescription& op) {
  const Shape &in = op.inputs[0].shape, &out = op.outputs[0].shape;
  int64_t in_bytes = BitWidth(op.outputs[0].type) / 8, out_bytes = in_bytes, size = 1;
  std::vector<Level> levels;
  const auto add = [&](int64_t times) {
    levels.insert(levels.begin(), {size, times, in_bytes, out_bytes});
    in_bytes *= size;
    out_bytes *= size * times;
    size = 1;
  };
  for (int d = in.rank() - 1; d >= 0; --d) {
    size *= in[d];
    if (out[d] != in[d]) add(out[d] / in[d]);
  }
  if (size > 1) add(1);
  Level& runs = levels.back();
  runs = {1, runs.times, runs.in_bytes * runs.size, runs.out_bytes * runs.size};
  // Runs always have a level that they are blocks of.
  if (levels.size() == 1) levels.insert(levels.begin(), {1, 1, in_bytes, out_bytes});
  return levels;
}

class TiledBlocks {
 public:
  TiledBlocks(std::vector<Level> levels, const CopyLoops& loops)
      : loops_(loops),
        levels_(std::move(levels)),
        most_copied_(levels_.back().in_bytes < kLeastRun ? kMostOfShortRuns : kMostRepeated) {
    const auto divides = [&] {
      const Level& level = levels_[outer_];
      return outer_ + 2 < levels_.size() && !Copied(level) && level.out_bytes > kUnitBytes;
    };
    for (; divides(); ++outer_) units_ *= levels_[outer_].size * levels_[outer_].times;
    const Level& level = levels_[outer_];
    if (!Copied(level)) {
      step_ = std::max<int64_t>(1, kUnitBytes / level.out_bytes);
      pieces_ = CeilDiv(level.size, step_);
      units_ *= level.times * pieces_;
    }
  }

  Work work() const {
    const Level& level = levels_[outer_];
    const int64_t bytes = Copied(level) ? level.once() * level.times : step_ * level.out_bytes;
    return {.units = units_, .grain = GrainFor(bytes / 4)};
  }

  // A unit is a block of the outermost levels, or a piece of the blocks in it.
  void Run(const KernelArgs& args, int64_t begin, int64_t end) const {
    const Level& level = levels_[outer_];
    const int64_t pieces = Copied(level) ? 1 : level.times * pieces_;
    for (int64_t unit = begin; unit < end; ++unit) {
      const auto* in = static_cast<const std::byte*>(args.inputs[0]);
      auto* const out =
          static_cast<std::byte*>(args.outputs[0]) + unit / pieces * level.once() * level.times;
      int64_t rest = unit / pieces;
      for (size_t i = outer_; i-- > 0; rest /= levels_[i].size * levels_[i].times) {
        in += rest % levels_[i].size * levels_[i].in_bytes;
      }
      if (Copied(level)) {
        Write(outer_, in, out);
        continue;
      }
      const int64_t time = unit % pieces / pieces_, first = unit % pieces_ * step_;
      WriteBlocks(outer_, in + first * level.in_bytes,
                  out + time * level.once() + first * level.out_bytes,
                  std::min(step_, level.size - first));
    }
  }

 private:
  // Whether a level's blocks are written once, and copied the other times.
  bool Copied(const Level& level) const { return level.once() <= most_copied_; }

  // All of a level. That of runs is written with the one before it.
  void Write(size_t at, const std::byte* in, std::byte* out) const {
    const Level& level = levels_[at];
    const int64_t once = level.once();
    if (Copied(level)) {
      WriteBlocks(at, in, out, level.size);
      if (level.times > 1) loops_.rows(out, out + once, {level.times - 1, 0, once}, once);
      return;
    }
    for (int64_t time = 0; time < level.times; ++time, out += once) {
      WriteBlocks(at, in, out, level.size);
    }
  }

  // The first `count` blocks of a level, or those that follow where `in` and `out` point.
  void WriteBlocks(size_t at, const std::byte* in, std::byte* out, int64_t count) const {
    const Level& level = levels_[at];
    if (at + 2 == levels_.size()) return WriteRuns(in, out, count);
    for (int64_t i = 0; i < count; ++i, in += level.in_bytes, out += level.out_bytes) {
      Write(at + 1, in, out);
    }
  }

  // Each run `times` times: lines of the cache in their order.
  void WriteRuns(const std::byte* in, std::byte* out, int64_t count) const {
    const Level& runs = levels_.back();
    const int64_t run = runs.in_bytes, all = run * runs.times;
    if (run >= kLineBytes) {
      for (; count > 0; --count, in += run, out += all) {
        loops_.rows(in, out, {runs.times, 0, run}, run);
      }
      return;
    }
    const int64_t most = std::max<int64_t>(1, kMostRepeated / all);
    for (; count > 0; count -= most, in += most * run, out += most * all) {
      for (int64_t time = 0; time < runs.times; ++time) {
        loops_.rows(in, out + time * run, {std::min(most, count), run, all}, run);
      }
    }
  }

  CopyLoops loops_;
  std::vector<Level> levels_;
  int64_t most_copied_;
  size_t outer_ = 0;  // levels before it are divided into units wholly
  // Blocks of a unit, and units each time, on level `outer_` where its blocks are not copied.
  int64_t step_ = 1, pieces_ = 1;
  int64_t units_ = 1;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTiledBlocks(const OpDescription& op,
                                                 const BuildContext& context) {
  const TensorInfo &in = op.inputs[0], &out = op.outputs[0];
  if (!op.tail.empty()) return Unsupported("TILE takes no fused tail");
  if (IsPacked(out.type) || !IsDense(in) || !IsDense(out)) {
    return Unsupported("rows are not whole bytes that follow each other");
  }
  if (out.elements() == in.elements() || out.elements() == 0) {
    return Unsupported("nothing is repeated");
  }
  if (!HasVectorCopyLoops(context.isa)) return NoVectorTarget(context.isa);
  std::vector<Level> levels = LevelsOf(op);
  const bool blocks_repeat = std::any_of(levels.begin(), std::prev(levels.end()),
                                         [](const Level& level) { return level.times > 1; });
  if (levels.back().in_bytes < kLeastRun && !blocks_repeat) return Unsupported("runs are short");
  TiledBlocks blocks(std::move(levels), CopyLoopsFor(context.isa));
  const Work work = blocks.work();
  return MakeKernel(
      "tile " + std::string(DataTypeName(out.type)) + " blocks " + SimdName(context.isa), work,
      [blocks = std::move(blocks)](const KernelArgs& args, int64_t begin, int64_t end) {
        blocks.Run(args, begin, end);
      });
}

}  // namespace fuselite::kernels
