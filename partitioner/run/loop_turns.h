// Several turns of a loop in one call of its body.
//
// Between two turns a host runs the condition's graph and copies the loop's values, which takes as
// long as a body of one row. So the kernel that computes a whole body goes on by itself: it
// computes the condition and lets the next turn read what the last one wrote, until the condition
// fails. The host then sees a loop of one turn.
//
// The interface does not tell in which order a body gives its results, which is in which value of
// the next turn they arrive. That is learnt from the host's own first turns: a result that differs
// from what arrived is not what was handed on. What several results are left for is taken only
// while these are equal.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "partitioner/claim/loops.h"
#include "partitioner/run/program.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/function_ref.h"

namespace fuselite::partitioner {

class LoopTurns {
 public:
  // For a body and a condition with tensors of the shapes that they have now. `condition` runs the
  // loop's; it outlives this, as shapes that were seen before come again.
  LoopTurns(std::shared_ptr<const Loop> loop, Program* condition)
      : loop_(std::move(loop)), condition_(condition) {}
  // What runs the loop's condition.
  static std::unique_ptr<Program> ConditionOf(const Loop& loop);

  // A call of the body, whose execution is bound to the host's tensors: computes one turn or more,
  // and leaves the results of the last one there. `run` runs the segment, which is always the same
  // one, and computes all of `partition`. Errors are those of `run`, and those of the condition.
  Status Run(const tflite::TfLiteContext* body, const Partition& partition, Segment& segment,
             const fusion::CompileOptions& options, FunctionRef<Status(Segment& segment)> run);

 private:
  // What the next turn may be given.
  struct Source {
    enum class Kind { kResult, kConstant, kGiven };
    Kind kind;
    int tensor = -1;
    int output = -1;             // of a result: its place in the segment's list
    const void* data = nullptr;  // where the host has it; a result: see results_
    AlignedBuffer before{};      // its bytes in the last turn that was computed, while that matters
  };
  struct Candidate {
    size_t source;
    // Whether the next turn can read it where it is: it has the shape that it needs there, and the
    // host's memory for another value need not be written.
    bool movable;
  };
  // What a turn is given.
  struct Place {
    int tensor = -1;
    size_t bytes = 0;
    int input = -1;                     // its place in the segment's list; -1: no node reads it
    std::vector<Candidate> candidates;  // for what comes there next; results come first
    const void* now = nullptr;
    const void* next = nullptr;  // null where it is not known
  };
  // What the condition reads: one of these places.
  struct Tested {
    int tensor = -1;
    size_t bytes = 0;
    std::vector<size_t> places;
  };

  Status SetUp(const tflite::TfLiteContext* body, const Partition& partition,
               const Segment& segment, const fusion::CompileOptions& options);
  Status SetUpTest(const fusion::CompileOptions& options);
  void AddSources(const tflite::TfLiteContext* body, const Partition& partition,
                  const Segment& segment);
  void AddPlace(const tflite::TfLiteContext* body, int tensor, int input);
  // Reads where the host has the values; false where it is not the loop that calls.
  bool Arrive(const tflite::TfLiteContext* body);
  // Whether every value is one of those that the loop begins with.
  bool MayBeFirstTurn(const tflite::TfLiteContext* body) const;
  void Learn();
  void Remember();
  // Where the source's value is behind this turn.
  const void* DataOf(const Source& source) const;
  // Where the turn that the places are set for writes result `i`.
  void* TargetOf(size_t i) const;
  // One turn, whose results are written to written_.
  Status RunTurn(Segment& segment, FunctionRef<Status(Segment& segment)> run);
  const void* NextOf(const Place& place) const;
  // Finds the values of the next turn; false where that takes the host.
  bool Choose();
  // Computes the condition for them.
  Result<bool> Test();

  const std::shared_ptr<const Loop> loop_;
  bool set_up_ = false, possible_ = false, remembers_ = false;
  std::vector<Source> sources_;
  std::vector<Place> places_;
  std::vector<Tested> tested_;
  // What the loop knows of a result of the segment's.
  struct Target {
    void* host = nullptr;  // the host's memory
    AlignedBuffer own;     // where turns write that may not write there
    void* written = nullptr;
    // The input that it may be written over, as a list of which a turn writes one element; -1:
    // none.
    int over = -1;
  };
  std::vector<Target> targets_;
  Program* const condition_;
  Segment* test_ = nullptr;
  uint8_t more_ = 0;  // a bool that the body may hand on as a caller wrote it: any byte
};

}  // namespace fuselite::partitioner
