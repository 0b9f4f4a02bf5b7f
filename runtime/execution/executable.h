// A compiled partition: values, steps, and where each value lives. Immutable and shared; what runs
// is an Execution of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/execution/kernel.h"
#include "runtime/support/status.h"

namespace fuselite {

// Which memory a value's bytes are in.
enum class Placement : uint8_t {
  kInput,     // bound by the caller, read only
  kOutput,    // bound by the caller, written before it is read
  kVariable,  // bound by the caller, keeps its contents between runs
  kArena,     // the execution's own, undefined when a run begins
  kConstant,  // fixed when the executable was built
};

struct Value {
  Placement placement = Placement::kArena;
  size_t bytes = 0;
  int index = 0;      // of the input, output or variable
  size_t offset = 0;  // from the start of what it is placed in: of an input, of the arena, ...
  const void* data = nullptr;  // of a constant
};

struct Step {
  std::string name;  // unique enough to be found in a model: "conv_12"
  std::string ops;   // what was fused into it, for `explain`: "CONV_2D + ADD + RELU"
  std::shared_ptr<const Kernel> kernel;
  std::vector<int> inputs, outputs;  // value ids; -1: an absent optional operand
  double cost = -1;                  // in the time of a float multiply-add; -1: unknown
};

// What threads share at once: one phase that is split among them, or several small ones in a row
// that one thread does.
struct Stage {
  struct Part {
    int step = 0, phase = 0;
    int64_t units = 0;
  };
  std::vector<Part> parts;
  int64_t units = 1;  // to be shared: the phase's, or 1 for a row
  int64_t grain = 1;
  bool waits = false;  // for all stages before it: it needs their results, or reuses their memory

  // Whether one thread runs all parts, whole.
  bool is_row() const { return parts.size() > 1 || units != parts[0].units; }
};

class Executable {
 public:
  std::span<const Value> values() const { return values_; }
  std::span<const Step> steps() const { return steps_; }
  std::span<const Stage> stages() const { return stages_; }
  int inputs() const { return counts_[0]; }
  int outputs() const { return counts_[1]; }
  int variables() const { return counts_[2]; }

  size_t arena_bytes() const { return arena_bytes_; }      // shared scratch of kernels included
  size_t scratch_bytes() const { return scratch_bytes_; }  // for each thread
  size_t shared_offset(int step) const { return shared_offsets_[static_cast<size_t>(step)]; }
  // The most threads that find work at the same time; 1 where the whole is too small to share.
  int useful_threads() const { return useful_threads_; }

  // What runs `part` `count` times, each run with the next part of every input and output, which
  // are `count` times as large. Threads take runs, each with memory of its own, and share those
  // that are left when there are fewer than threads.
  // Preconditions: count > 0; `part` has no variables, and is not of this kind itself.
  static std::shared_ptr<const Executable> Repeat(std::shared_ptr<const Executable> part,
                                                  int count);
  // Null, and 1, for any other.
  const std::shared_ptr<const Executable>& part() const { return part_; }
  int repeats() const { return repeats_; }
  // The bytes of input (output) `index`.
  size_t input_bytes(int index) const { return BytesOf(Placement::kInput, index); }
  size_t output_bytes(int index) const { return BytesOf(Placement::kOutput, index); }

 private:
  size_t BytesOf(Placement placement, int index) const;

  friend class ExecutableBuilder;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  std::vector<Stage> stages_;
  std::vector<size_t> shared_offsets_;  // of each step, in the arena
  std::vector<std::shared_ptr<const void>> kept_;
  int counts_[3] = {0, 0, 0};
  size_t arena_bytes_ = 0, scratch_bytes_ = 0;
  int useful_threads_ = 1;
  std::shared_ptr<const Executable> part_;
  int repeats_ = 1;
};

// Collects values and steps, then checks everything and plans memory and waiting. Steps run in the
// order in which they are added. Value ids count from 0 in the order of adding.
//
// What callers bind for different inputs, outputs and variables must not overlap.
class ExecutableBuilder {
 public:
  int AddInput(size_t bytes);
  // A step must write it: an output that equals an input or a constant needs a step that copies.
  int AddOutput(size_t bytes);
  int AddVariable(size_t bytes);
  int AddTemporary(size_t bytes);
  // `data` must stay valid as long as the executable; `keep`, if any, is held for that long.
  int AddConstant(const void* data, size_t bytes, std::shared_ptr<const void> keep = nullptr);
  // Bytes [offset, offset + bytes) of another value: a slice of it, a part of a concatenation, a
  // reshaped view.
  int AddAlias(int of, size_t offset, size_t bytes);

  // A step may write into what it reads only where the kernel says that it computes in place.
  void AddStep(Step step);

  // Below this total cost no helper thread is woken: it is about a microsecond of work, as much as
  // waking costs. Beyond it, runs find out what they gain (runtime/threads/thread_choice.h).
  static constexpr double kMinParallelCost = 50e3;

  // kInternal for a plan that cannot run: an id out of range, a temporary or output read before it
  // is written, an output never written, a write to an input or a constant.
  Result<std::shared_ptr<const Executable>> Build() &&;

 private:
  struct Draft {
    Value value;
    int root = 0;            // the value whose memory it shares; itself if it is no alias
    size_t root_offset = 0;  // in the root
  };
  int Add(Placement placement, size_t bytes, int index = 0);
  Status CheckStep(const Step& step, std::vector<bool>& written) const;
  Status CheckOperand(const Step& step, int id) const;
  Status Check() const;
  void PlanMemory(Executable& executable) const;

  std::vector<Draft> drafts_;
  std::vector<Step> steps_;
  std::vector<std::shared_ptr<const void>> kept_;
  int counts_[3] = {0, 0, 0};
  std::string error_;  // the first mistake in an Add
};

}  // namespace fuselite
