#include "kernels/lstm/fast_lstm.h"

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kMaxSharedBytes = int64_t{1} << 30;
// Recurrent weights of so many bytes are worth a barrier at each step: reading them from L2 takes a
// core some 3 microseconds, and a barrier 0.2 to 0.6.
constexpr int64_t kWorthSharing = 256 << 10;
// Rows of a batch go through a step together where they read weights of so many bytes, each of them
// and in all: four rows by 144 KiB take 0.71 of the time, two of them 1.05, and 64 by 6 KiB 1.1.
constexpr int64_t kWorthReuse = 64 << 10, kWorthTogether = 512 << 10;
// Recurrent weights of so many bytes, as a part has them, are read in turns (Backwards()): 2.4 MiB
// beside 2 MiB of L2 take 0.68 of the time, 1 MiB, which that holds, up to 1.03.
constexpr int64_t kTurned = 1280 << 10;
// Cells of a part are a multiple of this, and so at least.
constexpr int64_t kPartCells = 32;
// Steps that have a phase each, of which a run keeps two cells for each thread and a call.
constexpr int64_t kMostSharedSteps = 4096;

}  // namespace

FastLstm::FastLstm(const OpDescription& op, size_t sum_bytes)
    : s_(op),
      row_((kLstmGates - s_.first_gate()) * s_.cells),
      sum_bytes_(static_cast<int64_t>(sum_bytes)),
      state_bytes_(BitWidth(op.inputs[kLstmOutputState].type) / 8) {}

Status FastLstm::DivideCells(const PlanContext& context, int64_t weight_bytes) {
  if (s_.steps * s_.batch > kMaxSharedBytes / sum_bytes_ / row_) {
    return Unsupported("the sums of all steps take more than ", kMaxSharedBytes, " bytes");
  }
  // What peepholes, normalizations and projections do needs all cells of a step.
  const bool plain = !s_.peephole && !s_.layer_norm && !s_.projection;
  const int64_t bytes = row_ * s_.outputs * weight_bytes;
  shares_steps_ =
      plain && bytes >= kWorthSharing && context.threads > 1 && s_.steps <= kMostSharedSteps;
  const int64_t share = shares_steps_ ? s_.batch : CeilDiv(s_.batch, context.threads);
  const bool together = bytes >= kWorthReuse && bytes * share >= kWorthTogether;
  if (plain && together) rows_together_ = std::min(kBlockRows, share);
  const int64_t gates = row_ / s_.cells;
  const int64_t parts = shares_steps_ ? std::max(1, context.threads) : 1;
  const int64_t cells = CeilDiv(CeilDiv(s_.cells, parts), kPartCells) * kPartCells;
  turns_ = std::min(cells, s_.cells) * gates * s_.outputs * weight_bytes >= kTurned;
  parts_.clear();
  for (int64_t first = 0; first < s_.cells; first += cells) {
    const int64_t count = std::min(cells, s_.cells - first);
    parts_.push_back(
        {.first = first, .cells = count, .sums_at = gates * first, .sums = gates * count});
  }
  return Status();
}

std::vector<TensorInfo> FastLstm::GateWeights(const OpDescription& op, int first,
                                              const Part& part) const {
  std::vector<TensorInfo> weights;
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    TensorInfo& rows = weights.emplace_back(op.inputs[first + gate]);
    const size_t row_bytes = rows.bytes() / static_cast<size_t>(s_.cells);
    rows.data = static_cast<const std::byte*>(rows.data) + part.first * row_bytes;
    rows.shape.set(0, static_cast<int32_t>(part.cells));
  }
  return weights;
}

int64_t FastLstm::InputBlocks() const { return CeilDiv(s_.steps * s_.batch, kBlockRows); }

int64_t FastLstm::BatchBlocks() const { return CeilDiv(s_.batch, rows_together_); }

int FastLstm::phases() const { return shares_steps_ ? static_cast<int>(s_.steps) + 2 : 2; }

int64_t FastLstm::units(int phase) const {
  if (s_.steps * s_.batch == 0) return 0;
  const auto parts = static_cast<int64_t>(parts_.size());
  if (phase == 0) return InputBlocks() * parts;
  if (!shares_steps_) return BatchBlocks();
  return phase <= s_.steps ? parts : 1;
}

int64_t FastLstm::grain(int phase) const {
  // A multiply-add is worth an eighth of what GrainFor counts: a vector does 8 or 16 at once.
  if (phase == 0) return GrainFor(kBlockRows * parts_.front().sums * s_.inputs / 8);
  return shares_steps_ ? 1 : GrainFor(rows_together_ * s_.steps * row_ * (s_.outputs + 16) / 8);
}

size_t FastLstm::shared_bytes() const {
  return static_cast<size_t>(s_.steps * s_.batch * row_ * sum_bytes_) + kVectorRoom;
}

void FastLstm::RunTogether(const KernelArgs& args, int64_t b, int64_t rows) const {
  for (int64_t step = 0; step < s_.steps; ++step) RunStep(args, step, 0, b, rows);
  KeepState(args, b, rows);
}

void FastLstm::KeepState(const KernelArgs& args, int64_t b, int64_t rows) const {
  const int64_t bytes = s_.outputs * state_bytes_;
  const auto* const y = static_cast<const std::byte*>(args.outputs[0]);
  // Variables are bound as inputs and written in place.
  auto* const state = static_cast<std::byte*>(const_cast<void*>(args.inputs[kLstmOutputState]));
  for (int64_t last = b + rows; b < last; ++b) {
    std::memcpy(state + b * bytes, y + s_.Row(s_.steps - 1, b) * bytes, bytes);
  }
}

Status FastLstm::Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const {
  const auto parts = static_cast<int64_t>(parts_.size());
  const auto rows_from = [this](int64_t b) { return std::min(rows_together_, s_.batch - b); };
  for (int64_t unit = begin; unit < end; ++unit) {
    if (phase == 0) {
      const int64_t first = unit / parts * kBlockRows;
      const int64_t rows = std::min(kBlockRows, s_.steps * s_.batch - first);
      MultiplyInputs(args, static_cast<size_t>(unit % parts), first, rows);
    } else if (!shares_steps_) {
      const int64_t b = unit * rows_together_;
      rows_together_ == 1 ? RunSteps(args, b) : RunTogether(args, b, rows_from(b));
    } else if (phase <= s_.steps) {
      for (int64_t b = 0; b < s_.batch; b += rows_together_) {
        RunStep(args, phase - 1, static_cast<size_t>(unit), b, rows_from(b));
      }
    } else {
      KeepState(args, 0, s_.batch);
    }
  }
  return Status();
}

}  // namespace fuselite::kernels
