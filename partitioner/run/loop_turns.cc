#include "partitioner/run/loop_turns.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "partitioner/import/import.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

// Then the host has its turn: it may want to end the run.
constexpr int kTurnsAtOnce = 256;

bool IsConstant(const TfLiteTensor& tensor) { return tensor.allocation_type == kTfLiteMmapRo; }

bool SameKind(const TfLiteTensor& a, const TfLiteTensor& b) {
  return a.type == b.type && a.bytes == b.bytes;
}

bool SameShape(const TfLiteTensor& a, const TfLiteTensor& b) {
  return std::ranges::equal(Elements(a.dims), Elements(b.dims));
}

bool SameBytes(const void* a, const void* b, size_t bytes) {
  return bytes == 0 || (a != nullptr && b != nullptr && std::memcmp(a, b, bytes) == 0);
}

// The input in whose place the code writes `output`, where nothing else reads that input; -1: none.
int InputInPlace(const Executable& code, int output) {
  const auto is = [&](int id, Placement placement, int index) {
    if (id < 0) return false;
    const Value& value = code.values()[static_cast<size_t>(id)];
    return value.placement == placement && value.index == index;
  };
  const Step* maker = nullptr;
  for (const Step& step : code.steps()) {
    const bool writes = std::ranges::any_of(
        step.outputs, [&](int id) { return is(id, Placement::kOutput, output); });
    if (!writes) continue;
    // A kernel writes its first output in an input's place; one that others write parts of is none.
    if (maker != nullptr || step.outputs.size() > 1) return -1;
    maker = &step;
  }
  const int place = maker != nullptr ? maker->kernel->in_place_input() : -1;
  if (place < 0 || maker->inputs[place] < 0) return -1;
  const Value& over = code.values()[static_cast<size_t>(maker->inputs[place])];
  const size_t bytes = code.output_bytes(output);
  if (over.placement != Placement::kInput || over.bytes != bytes ||
      code.input_bytes(over.index) != bytes) {
    return -1;
  }
  int64_t readers = 0;
  for (const Step& step : code.steps()) {
    readers += std::ranges::count_if(step.inputs,
                                     [&](int id) { return is(id, Placement::kInput, over.index); });
  }
  return readers == 1 ? over.index : -1;
}

}  // namespace

std::unique_ptr<Program> LoopTurns::ConditionOf(const Loop& loop) {
  return std::make_unique<Program>(loop.test, std::make_shared<GraphVariables>());
}

Status LoopTurns::SetUpTest(const fusion::CompileOptions& options) {
  FUSELITE_ASSIGN_OR_RETURN(test_, condition_->SegmentAt(0, loop_->condition, {}, options));
  const BuiltGraph& built = test_->built;
  if (test_->end != condition_->size() || !test_->constants.empty() || !built.variables.empty() ||
      built.outputs.size() != 1 || built.outputs[0].info.type != DataType::kBool ||
      built.outputs[0].bytes != sizeof more_) {
    return Unsupported("the condition is not one value of a fixed graph");
  }
  test_->execution->BindOutput(0, &more_);
  return Status();
}

void LoopTurns::AddSources(const TfLiteContext* body, const Partition& partition,
                           const Segment& segment) {
  std::set<int> made;
  for (const SharedNode& node : partition.nodes) {
    made.insert(node->outputs.begin(), node->outputs.end());
  }
  for (size_t i = 0; i < segment.built.outputs.size(); ++i) {
    const BoundTensor& output = segment.built.outputs[i];
    sources_.push_back({Source::Kind::kResult, output.tensor, static_cast<int>(i)});
    Target& target = targets_.emplace_back();
    target.own = AlignedBuffer(output.bytes);
    target.over = InputInPlace(*segment.executable, static_cast<int>(i));
  }
  for (const ConstantOutput& constant : segment.constants) {
    sources_.push_back({Source::Kind::kConstant, constant.tensor, -1, constant.value.info.data});
  }
  for (int i = 0; i < static_cast<int>(body->tensors_size); ++i) {
    const TfLiteTensor& tensor = body->tensors[i];
    if (tensor.data.data == nullptr || made.contains(i)) continue;
    const auto kind = IsConstant(tensor) ? Source::Kind::kConstant : Source::Kind::kGiven;
    sources_.push_back({kind, i, -1, tensor.data.data});
  }
}

void LoopTurns::AddPlace(const TfLiteContext* body, int tensor, int input) {
  if (std::ranges::count(places_, tensor, &Place::tensor) > 0) return;
  const TfLiteTensor& given = body->tensors[tensor];
  Place place{tensor, given.bytes, input, {}};
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    const TfLiteTensor& from = body->tensors[source.tensor];
    if (!SameKind(from, given)) continue;
    const bool elsewhere = source.kind == Source::Kind::kGiven && source.tensor != tensor;
    place.candidates.push_back({i, !elsewhere && SameShape(from, given)});
  }
  places_.push_back(std::move(place));
}

Status LoopTurns::SetUp(const TfLiteContext* body, const Partition& partition,
                        const Segment& segment, const fusion::CompileOptions& options) {
  FUSELITE_RETURN_IF_ERROR(SetUpTest(options));
  AddSources(body, partition, segment);
  for (size_t i = 0; i < segment.built.inputs.size(); ++i) {
    AddPlace(body, segment.built.inputs[i].tensor, static_cast<int>(i));
  }
  // What no node reads is handed on all the same, perhaps from one value to another.
  for (const Source& source : sources_) {
    if (source.kind == Source::Kind::kGiven) AddPlace(body, source.tensor, -1);
  }
  for (const BoundTensor& input : test_->built.inputs) {
    const TfLiteTensor& tensor = loop_->condition->tensors[input.tensor];
    Tested tested{input.tensor, tensor.bytes, {}};
    for (size_t i = 0; i < places_.size(); ++i) {
      if (SameKind(body->tensors[places_[i].tensor], tensor)) tested.places.push_back(i);
    }
    tested_.push_back(std::move(tested));
  }
  const bool memory = std::ranges::equal(
      targets_, segment.built.outputs, {}, [](const Target& target) { return target.own.size(); },
      &BoundTensor::bytes);
  return memory ? Status() : OutOfMemory("no memory for the values of a loop");
}

bool LoopTurns::Arrive(const TfLiteContext* body) {
  for (Place& place : places_) {
    const TfLiteTensor& tensor = body->tensors[place.tensor];
    if (tensor.bytes != place.bytes) return false;
    place.now = tensor.data.data;
  }
  for (Source& source : sources_) {
    void* const data = body->tensors[source.tensor].data.data;
    if (source.kind == Source::Kind::kResult) targets_[source.output].host = data;
    if (source.kind == Source::Kind::kGiven) source.data = data;
  }
  for (Tested& tested : tested_) {
    const TfLiteTensor& tensor = loop_->condition->tensors[tested.tensor];
    if (tensor.bytes != tested.bytes) return false;
    std::vector<size_t> fitting;
    std::ranges::copy_if(tested.places, std::back_inserter(fitting), [&](size_t i) {
      return SameBytes(places_[i].now, tensor.data.data, tested.bytes);
    });
    if (fitting.empty()) return false;
    if (fitting.size() < tested.places.size()) tested.places = std::move(fitting);
  }
  return true;
}

bool LoopTurns::MayBeFirstTurn(const TfLiteContext* body) const {
  return std::ranges::all_of(places_, [&](const Place& place) {
    return place.input < 0 || std::ranges::any_of(loop_->arguments, [&](int argument) {
             const TfLiteTensor& tensor = loop_->caller->tensors[argument];
             return SameKind(tensor, body->tensors[place.tensor]) &&
                    SameBytes(tensor.data.data, place.now, place.bytes);
           });
  });
}

void LoopTurns::Learn() {
  for (Place& place : places_) {
    if (place.candidates.size() < 2) continue;
    std::erase_if(place.candidates, [&](const Candidate& candidate) {
      return !SameBytes(sources_[candidate.source].before.data(), place.now, place.bytes);
    });
  }
}

void LoopTurns::Remember() {
  remembers_ = true;
  for (const Place& place : places_) {
    if (place.candidates.size() < 2) continue;
    for (const Candidate& candidate : place.candidates) {
      Source& source = sources_[candidate.source];
      if (source.before.size() < place.bytes) source.before = AlignedBuffer(place.bytes);
      const void* const data = DataOf(source);
      remembers_ &= place.bytes == 0 || (source.before.data() != nullptr && data != nullptr);
      if (remembers_ && place.bytes > 0) std::memcpy(source.before.data(), data, place.bytes);
    }
  }
}

const void* LoopTurns::DataOf(const Source& source) const {
  return source.kind == Source::Kind::kResult ? targets_[source.output].written : source.data;
}

// Over what the last turn wrote, where nothing but that input reads it; else by turns.
void* LoopTurns::TargetOf(size_t i) const {
  const Target& target = targets_[i];
  const auto reads = [&](const Place& place) { return place.now == target.written; };
  const auto writes_over = [&](const Place& place) {
    return place.input == target.over && reads(place);
  };
  if (target.over >= 0 && std::ranges::any_of(places_, writes_over) &&
      std::ranges::count_if(places_, reads) == 1) {
    return target.written;
  }
  return target.written == target.host ? target.own.data() : target.host;
}

const void* LoopTurns::NextOf(const Place& place) const {
  const void* next = nullptr;
  for (const Candidate& candidate : place.candidates) {
    if (!candidate.movable) return nullptr;
    const void* const data = DataOf(sources_[candidate.source]);
    if (next != nullptr && !SameBytes(next, data, place.bytes)) return nullptr;
    if (next == nullptr) next = data;
  }
  return next;
}

bool LoopTurns::Choose() {
  return std::ranges::all_of(places_, [&](Place& place) {
    place.next = NextOf(place);
    return place.next != nullptr;
  });
}

// Places of one kind that had the same bytes in each turn have the same candidates, and so the same
// next value: the first of them is as good as the others.
Result<bool> LoopTurns::Test() {
  for (size_t i = 0; i < tested_.size(); ++i) {
    test_->execution->BindInput(static_cast<int>(i), places_[tested_[i].places[0]].next);
  }
  FUSELITE_RETURN_IF_ERROR(test_->execution->Run());
  return more_ != 0;
}

Status LoopTurns::RunTurn(Segment& segment, FunctionRef<Status(Segment& segment)> run) {
  for (Place& place : places_) {
    place.now = place.next;
    if (place.input >= 0) segment.execution->BindInput(place.input, place.now);
  }
  for (size_t i = 0; i < targets_.size(); ++i) {
    targets_[i].written = TargetOf(i);
    segment.execution->BindOutput(static_cast<int>(i), targets_[i].written);
  }
  return run(segment);
}

Status LoopTurns::Run(const TfLiteContext* body, const Partition& partition, Segment& segment,
                      const fusion::CompileOptions& options,
                      FunctionRef<Status(Segment& segment)> run) {
  if (!std::exchange(set_up_, true)) possible_ = SetUp(body, partition, segment, options).ok();
  const bool remembered = std::exchange(remembers_, false);
  if (!possible_ || !Arrive(body)) return run(segment);
  if (remembered && !MayBeFirstTurn(body)) Learn();
  for (Target& target : targets_) target.written = target.host;
  FUSELITE_RETURN_IF_ERROR(run(segment));
  for (int turn = 1; turn < kTurnsAtOnce && Choose(); ++turn) {
    FUSELITE_ASSIGN_OR_RETURN(const bool more, Test());
    if (!more) break;
    FUSELITE_RETURN_IF_ERROR(RunTurn(segment, run));
  }
  Remember();
  for (const Target& target : targets_) {
    if (target.written == target.host) continue;
    std::copy_n(target.own.as<std::byte>(), target.own.size(),
                static_cast<std::byte*>(target.host));
  }
  return Status();
}

}  // namespace fuselite::partitioner
