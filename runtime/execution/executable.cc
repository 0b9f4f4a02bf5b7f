#include "runtime/execution/executable.h"

#include <algorithm>
#include <utility>

#include "runtime/execution/executable_stages.h"
#include "runtime/memory/arena.h"
#include "runtime/support/is_index.h"

namespace fuselite {
namespace {

// Sizes of values and of their sum stay far from overflow below these.
constexpr size_t kMaxValueBytes = size_t{1} << 40;
constexpr size_t kMaxValues = size_t{1} << 20;

// Values of nets are multiples of large powers of two, so that behind each other they would begin
// at the same place in a page: a load would wait for each store of another value with the same low
// 12 bits. Three cache lines between them part pixels of any power of two from 256 bytes on. Values
// smaller than some pages do without.
constexpr size_t kStagger = 192, kSmallestStaggered = 16 << 10;

size_t StaggeredBytes(size_t bytes) {
  return bytes < kSmallestStaggered ? bytes : AlignUp(bytes) + kStagger;
}

// The steps that touch a value.
struct Lifetime {
  int first = -1, last = -1;
  void Touch(int step) {
    if (first < 0) first = step;
    last = step;
  }
};

// Whether `repeats` runs of the steps are so little work that no thread is woken for them.
bool TooSmallToShare(std::span<const Step> steps, int repeats) {
  double cost = 0;
  for (const Step& step : steps) {
    if (step.cost < 0) return false;
    cost += step.cost;
  }
  return cost * repeats < ExecutableBuilder::kMinParallelCost;
}

int AtMostThreads(int64_t useful) { return static_cast<int>(std::min<int64_t>(useful, 1 << 16)); }

int UsefulThreads(std::span<const Step> steps, std::span<const Stage> stages) {
  if (TooSmallToShare(steps, 1)) return 1;
  int64_t most = 1;
  for (const Stage& stage : stages) most = std::max(most, stage.units / stage.grain);
  return AtMostThreads(most);
}

}  // namespace

std::shared_ptr<const Executable> Executable::Repeat(std::shared_ptr<const Executable> part,
                                                     int count) {
  auto repeated = std::make_shared<Executable>();
  const auto add = [&](Placement placement, int index, size_t bytes) {
    repeated->values_.push_back(
        {.placement = placement, .bytes = bytes * static_cast<size_t>(count), .index = index});
  };
  for (int i = 0; i < part->inputs(); ++i) add(Placement::kInput, i, part->input_bytes(i));
  for (int i = 0; i < part->outputs(); ++i) add(Placement::kOutput, i, part->output_bytes(i));
  std::ranges::copy(part->counts_, repeated->counts_);
  repeated->scratch_bytes_ = part->arena_bytes() + part->scratch_bytes();
  const int64_t useful = int64_t{count} * part->useful_threads();
  repeated->useful_threads_ = TooSmallToShare(part->steps(), count) ? 1 : AtMostThreads(useful);
  repeated->part_ = std::move(part);
  repeated->repeats_ = count;
  return repeated;
}

size_t Executable::BytesOf(Placement placement, int index) const {
  size_t bytes = 0;
  for (const Value& value : values_) {
    if (value.placement != placement || value.index != index) continue;
    bytes = std::max(bytes, value.offset + value.bytes);
  }
  return bytes;
}

int ExecutableBuilder::Add(Placement placement, size_t bytes, int index) {
  const int id = static_cast<int>(drafts_.size());
  Draft draft;
  draft.value.placement = placement;
  draft.value.bytes = bytes;
  draft.value.index = index;
  draft.root = id;
  if (bytes > kMaxValueBytes && error_.empty()) {
    error_ = internal::Join("value ", id, " has ", bytes, " bytes, more than any machine");
  }
  drafts_.push_back(draft);
  return id;
}

int ExecutableBuilder::AddInput(size_t bytes) {
  return Add(Placement::kInput, bytes, counts_[0]++);
}

int ExecutableBuilder::AddOutput(size_t bytes) {
  return Add(Placement::kOutput, bytes, counts_[1]++);
}

int ExecutableBuilder::AddVariable(size_t bytes) {
  return Add(Placement::kVariable, bytes, counts_[2]++);
}

int ExecutableBuilder::AddTemporary(size_t bytes) { return Add(Placement::kArena, bytes); }

int ExecutableBuilder::AddConstant(const void* data, size_t bytes,
                                   std::shared_ptr<const void> keep) {
  const int id = Add(Placement::kConstant, bytes);
  drafts_.back().value.data = data;
  kept_.push_back(std::move(keep));
  return id;
}

int ExecutableBuilder::AddAlias(int of, size_t offset, size_t bytes) {
  const int id = Add(Placement::kArena, bytes);
  const bool known = IsIndex(of, id);
  if (!known || offset > drafts_[static_cast<size_t>(of)].value.bytes ||
      bytes > drafts_[static_cast<size_t>(of)].value.bytes - offset) {
    if (error_.empty()) {
      error_ = internal::Join("value ", id, " is bytes [", offset, ", ", offset + bytes,
                              ") of value ", of, ", which does not have them");
    }
    return id;
  }
  Draft& draft = drafts_.back();
  const Draft& base = drafts_[static_cast<size_t>(of)];
  draft.value.placement = base.value.placement;
  draft.value.index = base.value.index;
  draft.root = base.root;
  draft.root_offset = base.root_offset + offset;
  if (base.value.data != nullptr) {
    draft.value.data = static_cast<const std::byte*>(base.value.data) + offset;
  }
  return id;
}

void ExecutableBuilder::AddStep(Step step) { steps_.push_back(std::move(step)); }

Status ExecutableBuilder::CheckOperand(const Step& step, int id) const {
  if (id >= -1 && id < static_cast<int>(drafts_.size())) return {};
  return Internal("step ", step.name, " names value ", id, " of ", drafts_.size());
}

Status ExecutableBuilder::CheckStep(const Step& step, std::vector<bool>& written) const {
  if (step.kernel == nullptr) return Internal("step ", step.name, " has no kernel");
  for (int id : step.inputs) {
    FUSELITE_RETURN_IF_ERROR(CheckOperand(step, id));
    if (id < 0) continue;
    const Draft& draft = drafts_[static_cast<size_t>(id)];
    const Placement placement = draft.value.placement;
    const bool needs_writer = placement == Placement::kArena || placement == Placement::kOutput;
    if (needs_writer && draft.value.bytes > 0 && !written[static_cast<size_t>(draft.root)]) {
      return Internal("step ", step.name, " reads value ", id, " before anything is written there");
    }
  }
  for (int id : step.outputs) {
    FUSELITE_RETURN_IF_ERROR(CheckOperand(step, id));
    if (id < 0) continue;
    const Draft& draft = drafts_[static_cast<size_t>(id)];
    if (draft.value.placement == Placement::kInput ||
        draft.value.placement == Placement::kConstant) {
      return Internal("step ", step.name, " writes value ", id, ", which is read only");
    }
    written[static_cast<size_t>(draft.root)] = true;
  }
  return {};
}

Status ExecutableBuilder::Check() const {
  if (!error_.empty()) return Internal(error_);
  if (drafts_.size() > kMaxValues) return Internal(drafts_.size(), " values are too many");
  std::vector<bool> written(drafts_.size());
  for (const Step& step : steps_) FUSELITE_RETURN_IF_ERROR(CheckStep(step, written));
  for (size_t i = 0; i < drafts_.size(); ++i) {
    const Draft& draft = drafts_[i];
    const bool is_output =
        draft.value.placement == Placement::kOutput && draft.root == static_cast<int>(i);
    if (is_output && draft.value.bytes > 0 && !written[i]) {
      return Internal("no step writes output ", draft.value.index);
    }
    if (draft.value.placement == Placement::kConstant && draft.value.bytes > 0 &&
        draft.value.data == nullptr) {
      return Internal("constant ", i, " has no data");
    }
  }
  return {};
}

void ExecutableBuilder::PlanMemory(Executable& executable) const {
  std::vector<Lifetime> lifetimes(drafts_.size());
  std::vector<size_t> shared(steps_.size());
  for (size_t s = 0; s < steps_.size(); ++s) {
    const auto touch = [&](int id) {
      if (id < 0) return;
      lifetimes[static_cast<size_t>(drafts_[static_cast<size_t>(id)].root)].Touch(
          static_cast<int>(s));
    };
    std::ranges::for_each(steps_[s].inputs, touch);
    std::ranges::for_each(steps_[s].outputs, touch);
    shared[s] = steps_[s].kernel->shared_bytes();
    executable.scratch_bytes_ =
        std::max(executable.scratch_bytes_, AlignUp(steps_[s].kernel->scratch_bytes()));
  }
  // One entry per value and one per step's shared scratch; what needs no memory has no bytes.
  std::vector<ArenaValue> arena(drafts_.size() + steps_.size());
  for (size_t i = 0; i < drafts_.size(); ++i) {
    // Where values share memory, the root alone has a lifetime.
    const bool placed = drafts_[i].value.placement == Placement::kArena && lifetimes[i].first >= 0;
    if (!placed) continue;
    arena[i] = {StaggeredBytes(drafts_[i].value.bytes), lifetimes[i].first, lifetimes[i].last};
  }
  for (size_t s = 0; s < steps_.size(); ++s) {
    arena[drafts_.size() + s] = {shared[s], static_cast<int>(s), static_cast<int>(s)};
  }
  const ArenaPlan plan = PlanArena(arena);
  executable.arena_bytes_ = plan.bytes;
  for (const Draft& draft : drafts_) {
    Value value = draft.value;
    value.offset = draft.root_offset;
    value.offset += plan.offsets[static_cast<size_t>(draft.root)];  // 0 of what is not placed
    executable.values_.push_back(value);
  }
  executable.shared_offsets_.assign(plan.offsets.begin() + static_cast<ptrdiff_t>(drafts_.size()),
                                    plan.offsets.end());
}

Result<std::shared_ptr<const Executable>> ExecutableBuilder::Build() && {
  FUSELITE_RETURN_IF_ERROR(Check());
  auto executable = std::make_shared<Executable>();
  PlanMemory(*executable);
  executable->stages_ =
      internal::PlanStages(executable->values_, steps_, executable->shared_offsets_);
  executable->useful_threads_ = UsefulThreads(steps_, executable->stages_);
  executable->steps_ = std::move(steps_);
  executable->kept_ = std::move(kept_);
  std::copy(std::begin(counts_), std::end(counts_), std::begin(executable->counts_));
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace fuselite
