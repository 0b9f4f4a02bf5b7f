#include "runtime/execution/executable_stages.h"

#include <algorithm>

namespace fuselite::internal {
namespace {

// A phase of fewer grains is one thread's: two threads would wait for each other longer than either
// works. The 8-bit steps of ViT's layer normalization have 1.7, 2.3 us each, and share them (0.96
// of the model's time); from half as many on, `ad01` takes 1.4 of its time.
constexpr double kLeastGrains = 1.5;
// Unless it reads so much that one thread would wait longer for the half that the others have
// written: 20 KB from another core take 1 us and more. Such a phase of a few units and more is
// shared in parts of so many.
constexpr size_t kLeastRead = 16 << 10;
constexpr int64_t kFewUnits = 4;

struct Access {
  Placement placement;
  int index;
  size_t begin, end;
  bool writes;
};

bool Conflict(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.placement == b.placement && a.index == b.index &&
         a.begin < b.end && b.begin < a.end;
}

bool Conflict(const std::vector<Access>& some, const std::vector<Access>& others) {
  return std::ranges::any_of(some, [&](const Access& a) {
    return std::ranges::any_of(others, [&](const Access& b) { return Conflict(a, b); });
  });
}

std::vector<Access> AccessesOf(std::span<const Value> values, const Step& step,
                               size_t shared_offset) {
  std::vector<Access> accesses;
  const auto add = [&](int id, bool writes) {
    if (id < 0) return;
    const Value& value = values[static_cast<size_t>(id)];
    if (value.placement == Placement::kConstant) return;
    // State is written through the inputs that name it.
    accesses.push_back({value.placement, value.index, value.offset, value.offset + value.bytes,
                        writes || value.placement == Placement::kVariable});
  };
  for (int id : step.inputs) add(id, false);
  for (int id : step.outputs) add(id, true);
  if (const size_t bytes = step.kernel->shared_bytes()) {
    accesses.push_back({Placement::kArena, 0, shared_offset, shared_offset + bytes, true});
  }
  return accesses;
}

// What the step reads of what was computed.
size_t BytesRead(std::span<const Value> values, const Step& step) {
  size_t bytes = 0;
  for (int id : step.inputs) {
    if (id < 0) continue;
    const Value& value = values[static_cast<size_t>(id)];
    if (value.placement != Placement::kConstant) bytes += value.bytes;
  }
  return bytes;
}

// The units worth a claim of their own. More than the phase has: it is one thread's.
int64_t GrainOf(const Kernel& kernel, int phase, size_t bytes_read) {
  const int64_t units = kernel.units(phase);
  const int64_t grain = std::max<int64_t>(kernel.grain(phase), 1);
  if (static_cast<double>(units) >= kLeastGrains * static_cast<double>(grain)) return grain;
  return bytes_read >= kLeastRead && units >= kFewUnits ? units / kFewUnits : units + 1;
}

void Append(std::vector<Access>& to, const std::vector<Access>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::vector<Stage> PlanStages(std::span<const Value> values, std::span<const Step> steps,
                              std::span<const size_t> shared_offsets) {
  std::vector<Stage> stages;
  std::vector<Access> since_wait;  // of the stages since the last wait, without the open row
  std::vector<Access> row;         // of the row of small phases that still grows
  const auto wait_if_needed = [&](Stage& stage, const std::vector<Access>& accesses) {
    if (!Conflict(since_wait, accesses)) return;
    stage.waits = true;
    since_wait.clear();
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const Kernel& kernel = *steps[s].kernel;
    const std::vector<Access> accesses = AccessesOf(values, steps[s], shared_offsets[s]);
    const size_t bytes_read = BytesRead(values, steps[s]);
    bool later_phase = false;  // of this step: it waits for the ones before in any case
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      const int64_t units = kernel.units(phase);
      if (units <= 0) continue;
      const int64_t grain = GrainOf(kernel, phase, bytes_read);
      const Stage::Part part{static_cast<int>(s), phase, units};
      const bool small = grain > units;
      const bool continues_row = small && !row.empty();
      if (!continues_row) {
        Append(since_wait, row);
        row.clear();
        stages.push_back({{}, small ? 1 : units, grain, later_phase});
        if (later_phase) since_wait.clear();
      }
      Stage& stage = stages.back();
      wait_if_needed(stage, accesses);
      stage.parts.push_back(part);
      Append(small ? row : since_wait, accesses);
      later_phase = true;
    }
  }
  return stages;
}

}  // namespace fuselite::internal
