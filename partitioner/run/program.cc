#include "partitioner/run/program.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/operator.h"
#include "partitioner/import/host_call.h"
#include "partitioner/run/loop_rows.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

using Clock = std::chrono::steady_clock;

// For so many different shapes a segment is kept: a loop over the words of a sentence, batches of a
// server. Older ones are made anew.
constexpr size_t kKeptShapes = 128;
// A segment that is not running gives back memory beyond this. Sums over 20 beginnings of rows,
// each of a shape of its own that takes less, take 29 us so, and 34 where all is given back.
constexpr size_t kKeptMemory = 16 << 10;
// Constants of fewer bytes are hashed each time.
constexpr size_t kLeastRemembered = 1024;

void ReleaseMemory(const Segment& segment) {
  if (segment.execution == nullptr) return;
  const Executable& executable = *segment.executable;
  if (executable.arena_bytes() + executable.scratch_bytes() <= kKeptMemory) return;
  segment.execution->ReleaseMemory();
}

// Stands for the bytes of a value without elements.
std::byte no_bytes[1];

}  // namespace

Program::Program(Partition partition, std::shared_ptr<const GraphVariables> variables, bool loops)
    : partition_(std::move(partition)),
      variables_(std::move(variables)),
      loops_(loops),
      inputs_(PlacesOf(partition_.inputs)),
      outputs_(PlacesOf(partition_.outputs)) {
  TensorIndices makers;
  for (int i = 0; i < size(); ++i) {
    for (int tensor : partition_.nodes[i]->inputs) {
      if (tensor >= 0) last_readers_.Set(tensor, i);
    }
    for (int tensor : partition_.nodes[i]->outputs) {
      if (tensor >= 0) makers.Set(tensor, i);
    }
  }
  for (const SharedNode& node : partition_.nodes) {
    if (node->host_call == nullptr) {
      all_host_calls_ = false;
      continue;
    }
    for (const std::vector<int>* tensors : {&node->inputs, &node->outputs}) {
      for (int tensor : *tensors) {
        if (makers.contains(tensor) && !IsOutput(tensor)) between_.insert(tensor);
      }
    }
  }
}

Status Program::At(const Partition& partition, int node, const Status& status) {
  const ImportedNode& imported = *partition.nodes[node];
  return status.In(std::string(imported.op->name) + " (node " + std::to_string(imported.host_node) +
                   ")");
}

LiveKey Program::KeyOf(int tensor, const tflite::TfLiteContext* context,
                       const LiveValues& live) const {
  LiveKey key;
  key.tensor = tensor;
  const tflite::TfLiteTensor& host = context->tensors[tensor];
  if (const auto value = live.find(tensor); value != live.end()) {
    const TensorInfo& info = value->second.info;
    key.type = info.type;
    key.shape = info.shape;
    if (info.constant()) key.known.assign(static_cast<const char*>(info.data), info.bytes());
  } else if (host.allocation_type == tflite::kTfLiteMmapRo) {
    key.constant = host.data.data;
  } else if (inputs_.contains(tensor)) {
    // A variable of the host.
    key.shape = Shape::FromDims(tflite::Elements(host.dims)).value_or(Shape());
  }
  return key;
}

std::vector<LiveKey> Program::KeyAt(int begin, const tflite::TfLiteContext* context,
                                    const LiveValues& live) const {
  std::vector<LiveKey> keys;
  for (int tensor = 0; tensor < last_readers_.end(); ++tensor) {
    if (last_readers_[tensor] < begin) continue;
    LiveKey key = KeyOf(tensor, context, live);
    // Otherwise it is made behind `begin`.
    const bool given = live.contains(tensor) || key.constant != nullptr || inputs_.contains(tensor);
    if (given) keys.push_back(std::move(key));
  }
  return keys;
}

// Each run asks this for each segment: nothing is copied.
bool Program::Holds(std::span<const LiveKey> keys, const tflite::TfLiteContext* context,
                    const LiveValues& live) const {
  return std::ranges::all_of(keys, [&](const LiveKey& key) {
    const auto value = live.find(key.tensor);
    if (value == live.end()) return KeyOf(key.tensor, context, live) == key;
    const TensorInfo& info = value->second.info;
    if (info.type != key.type || info.shape != key.shape) return false;
    const std::string_view known(static_cast<const char*>(info.data),
                                 info.constant() ? info.bytes() : 0);
    return known == key.known;
  });
}

void Program::FillTable(const LiveValues& live, TensorTable& table) const {
  for (const auto& [tensor, info] : variables_->handles()) table.SetVariable(tensor, info);
  for (const auto& [tensor, value] : live) {
    if (!table.IsVariable(tensor)) table.Set(tensor, value.info, value.storage);
  }
}

Segment* Program::Keep(std::unique_ptr<Segment> segment) {
  auto& kept = segments_[segment->begin];
  kept.push_front(std::move(segment));
  if (kept.size() > kKeptShapes) kept.pop_back();
  if (!kept.front()->waits) ++made_;
  return kept.front().get();
}

Result<Segment*> Program::SegmentAt(int begin, const tflite::TfLiteContext* context,
                                    const LiveValues& live, const fusion::CompileOptions& options) {
  auto& kept = segments_[begin];
  const auto fits = [&](const std::unique_ptr<Segment>& segment) {
    return segment->values.empty() && Holds(segment->key, context, live);
  };
  if (!kept.empty() && fits(kept.front())) return kept.front().get();
  // From the one on that has not run for longest: a loop's next turn comes after all others.
  const auto known = std::ranges::find_if(kept.rbegin(), kept.rend(), fits);
  if (known != kept.rend()) {
    if (!(*known)->waits) ReleaseMemory(*kept.front());
    kept.splice(kept.begin(), kept, std::prev(known.base()));
    return kept.front().get();
  }
  if (!kept.empty()) ReleaseMemory(*kept.front());  // what is made now takes it
  auto segment = std::make_unique<Segment>();
  segment->key = KeyAt(begin, context, live);
  segment->begin = begin;
  FUSELITE_RETURN_IF_ERROR(Compile(*segment, context, live, options));
  return Keep(std::move(segment));
}

Status Program::Compile(Segment& segment, const tflite::TfLiteContext* context,
                        const LiveValues& live, const fusion::CompileOptions& options) {
  const Clock::time_point start = Clock::now();
  if (made_ == 0) AddConstants(context);
  // The first segment comes first.
  std::optional<ReadyGraph> ready = std::exchange(ready_, std::nullopt);
  if (ready) {
    segment.built = std::move(ready->built);
  } else {
    TensorTable table(context);
    FillTable(live, table);
    int failed = -1;
    Result<BuiltGraph> built = BuildGraph(partition_, segment.begin, context, table, &failed);
    if (!built.ok()) return At(partition_, failed, built.status());
    segment.built = *std::move(built);
  }
  segment.end = segment.built.end;
  segment.waits = segment.end == segment.begin;
  if (segment.waits) {
    DescribeBranches(segment, context, live);
    return Status();
  }
  FUSELITE_ASSIGN_OR_RETURN(segment.constants, TakeConstantOutputs(segment.built, options.budget));
  if (loops_ && options.fusion) FUSELITE_RETURN_IF_ERROR(TakeLoopRows(segment, options));
  FUSELITE_RETURN_IF_ERROR(Finish(segment, options, ready ? ready->planner.get() : nullptr));
  segment.compile_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return Status();
}

void Program::AddConstants(const tflite::TfLiteContext* context) {
  for (const SharedNode& node : partition_.nodes) {
    for (int tensor : node->inputs) {
      if (tensor < 0) continue;
      const tflite::TfLiteTensor& host = context->tensors[tensor];
      if (host.allocation_type != tflite::kTfLiteMmapRo || host.bytes < kLeastRemembered) continue;
      hashes_.Add(host.data.data, host.bytes);
    }
  }
}

Status Program::Finish(Segment& segment, fusion::CompileOptions options, fusion::Planner* planner) {
  options.hashes = &hashes_;
  FUSELITE_ASSIGN_OR_RETURN(
      segment.executable,
      fusion::Compile(std::move(segment.built.graph), options, segment.report.get(), planner));
  segment.execution = std::make_unique<Execution>(segment.executable, &spare_);
  return segment.execution->Prepare(options.threads);
}

Status Program::Run(const tflite::TfLiteContext* context, LiveValues& live,
                    const fusion::CompileOptions& options, const Host& host) {
  path_.clear();
  for (int begin = 0; begin < size();) {
    FUSELITE_ASSIGN_OR_RETURN(Segment * segment, SegmentAt(begin, context, live, options));
    if (segment->waits && partition_.nodes[begin]->host_call != nullptr) {
      const Status status = host.call(*partition_.nodes[begin], live);
      if (!status.ok()) return At(partition_, begin, status);
      ++begin;
      continue;
    }
    if (segment->waits) {
      const bool branches = !partition_.nodes[begin]->branches.empty();
      FUSELITE_ASSIGN_OR_RETURN(segment, branches ? MakeBranch(*segment, context, live, options)
                                                  : MakeWaiting(*segment, context, live, options));
    }
    path_.push_back(segment);
    FUSELITE_RETURN_IF_ERROR(RunSegment(*segment, live, host));
    begin = segment->end;
  }
  return Status();
}

Status Program::RunHostCalls(tflite::TfLiteContext* context) const {
  for (int i = 0; i < size(); ++i) {
    const Status status = partition_.nodes[i]->host_call->Invoke(context);
    if (!status.ok()) return At(partition_, i, status);
  }
  return Status();
}

void Program::AddResults(const Segment& segment, LiveValues& live) {
  for (const BoundTensor& output : segment.built.outputs) {
    live[output.tensor] = {output.info, nullptr, nullptr};
  }
  for (const ConstantOutput& constant : segment.constants) {
    live[constant.tensor] = {constant.value.info, constant.value.storage, nullptr};
  }
}

Status Program::RunSegment(Segment& segment, LiveValues& live, const Host& host) {
  for (size_t i = 0; i < segment.built.inputs.size(); ++i) {
    segment.execution->BindInput(static_cast<int>(i), live.at(segment.built.inputs[i].tensor).data);
  }
  FUSELITE_RETURN_IF_ERROR(host.bind_variables(segment));
  for (size_t i = 0; i < segment.built.outputs.size(); ++i) {
    const BoundTensor& output = segment.built.outputs[i];
    FUSELITE_ASSIGN_OR_RETURN(void* const data, Place(output.tensor, output.info, host));
    live[output.tensor] = {output.info, nullptr, data};
    segment.execution->BindOutput(static_cast<int>(i), data);
  }
  for (const ConstantOutput& constant : segment.constants) {
    const TensorInfo& info = constant.value.info;
    FUSELITE_ASSIGN_OR_RETURN(void* const data, Place(constant.tensor, info, host));
    std::memcpy(data, info.data, info.bytes());
    live[constant.tensor] = {info, constant.value.storage, data};
  }
  return host.run(segment);
}

Result<void*> Program::Place(int tensor, const TensorInfo& info, const Host& host) {
  if (IsPlaced(tensor)) return host.place(tensor, info);
  const size_t bytes = info.bytes();
  AlignedBuffer& memory = memory_[tensor];
  if (bytes == 0) return no_bytes;
  if (memory.size() < bytes) memory = AlignedBuffer(bytes);
  if (memory.data() == nullptr) return OutOfMemory("no memory for ", bytes, " bytes of a value");
  return memory.data();
}

}  // namespace fuselite::partitioner
