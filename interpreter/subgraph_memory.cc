// Shapes and memory: preparing nodes in order, and placing what they need.
//
// A node whose output is dynamic ends a segment: what follows can only be prepared when it has run.
// Each segment has an arena of its own, so that preparing the next one moves nothing that is in
// use.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "interpreter/host_memory.h"
#include "interpreter/operator_calls.h"
#include "interpreter/subgraph.h"
#include "runtime/memory/arena.h"

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteTensor;

bool IsArena(const TfLiteTensor& tensor) {
  return tensor.allocation_type == tflite::kTfLiteArenaRw;
}

Result<size_t> BytesOf(const TfLiteTensor& tensor, std::span<const int> dims) {
  const auto shape = Shape::FromDims(dims);
  if (!shape) return InvalidArgument("a shape of rank ", dims.size(), " is out of range");
  if (!IsKnownDataType(tensor.type)) return Unsupported("element type ", int{tensor.type});
  TensorInfo info;
  info.type = static_cast<DataType>(tensor.type);
  info.shape = *shape;
  if (info.estimated_bytes() > kMostTensorBytes) {
    return OutOfMemory("no machine has the memory for ", shape->ToString());
  }
  return HostBytes(info);
}

}  // namespace

size_t HostBytes(const TensorInfo& info) {
  // The number of a variable, as LiteRT has it.
  if (info.type == DataType::kResource) return sizeof(int32_t);
  return info.bytes();
}

Status Subgraph::ResizeInput(int tensor_index, std::span<const int> dims) {
  TfLiteTensor& tensor = tensors_[tensor_index];
  if (std::ranges::equal(Elements(tensor.dims), dims)) return Status();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return InvalidArgument("dimension ", i, " of the new shape is ", dims[i], ", less than 0");
    }
  }
  if (tensor.allocation_type == tflite::kTfLiteMmapRo) {
    return InvalidArgument("a constant cannot be resized");
  }
  FUSELITE_ASSIGN_OR_RETURN(const size_t bytes, BytesOf(tensor, dims));
  if (delegates_are_static_) UndoDelegates();
  state_ = State::kUnprepared;
  Replace(tensor.dims, dims);
  tensor.bytes = bytes;
  // What it has is of the old size, and whoever writes before memory is allocated must be told.
  ForgetMemoryOf(tensor);
  return Status();
}

Status Subgraph::ResizeTensor(TfLiteTensor& tensor, std::span<const int> dims) {
  const bool dynamic = IsOnHeap(tensor);
  if (!dynamic && !IsArena(tensor) && tensor.allocation_type != tflite::kTfLiteArenaRwPersistent) {
    return InvalidArgument("a tensor in fixed memory cannot be resized");
  }
  FUSELITE_ASSIGN_OR_RETURN(const size_t bytes, BytesOf(tensor, dims));
  if (!std::ranges::equal(Elements(tensor.dims), dims)) {
    Replace(tensor.dims, dims);
    if (!dynamic) tensor.data.raw = nullptr;
  }
  if (dynamic && (bytes != tensor.bytes || tensor.data.raw == nullptr)) {
    return GrowHeap(tensor, bytes);
  }
  tensor.bytes = bytes;
  return Status();
}

Status Subgraph::ResizeStrings(TfLiteTensor& tensor, std::span<const int> dims, size_t bytes) {
  SetDynamic(tensor);
  FUSELITE_RETURN_IF_ERROR(ResizeTensor(tensor, dims));
  return GrowHeap(tensor, bytes);
}

Status Subgraph::GrowHeap(TfLiteTensor& tensor, size_t bytes) {
  // Summing up what is held costs a pass over the tensors, which would be felt by loops that resize
  // small ones; those cannot add up to much.
  constexpr size_t kCounted = size_t{64} << 10;
  // A tensor without memory states the bytes of its shape all the same.
  const size_t held = tensor.data.raw == nullptr ? 0 : tensor.bytes;
  if (bytes > held && bytes >= kCounted) {
    FUSELITE_RETURN_IF_ERROR(CheckMemory(static_cast<double>(bytes - held)));
  }
  void* memory = std::realloc(tensor.data.raw, std::max<size_t>(bytes, 1));
  if (memory == nullptr) return OutOfMemory("no memory for ", bytes, " bytes");
  tensor.data.raw = static_cast<char*>(memory);
  tensor.bytes = bytes;
  return Status();
}

void Subgraph::SetDynamic(TfLiteTensor& tensor) {
  if (tensor.allocation_type == tflite::kTfLiteDynamic) return;
  tensor.allocation_type = tflite::kTfLiteDynamic;
  tensor.data.raw = nullptr;
}

void Subgraph::SetPersistent(TfLiteTensor& tensor) {
  if (tensor.allocation_type == tflite::kTfLitePersistentRo) return;
  ReleaseHeap(tensor);
  tensor.allocation_type = tflite::kTfLitePersistentRo;
}

// The tensor loses its memory, and is in the arena again where it was dynamic. A variable's stays
// where AllocatePersistent() finds it.
void Subgraph::ForgetMemoryOf(TfLiteTensor& tensor) {
  switch (tensor.allocation_type) {
    case tflite::kTfLiteDynamic:
    case tflite::kTfLitePersistentRo:
    case tflite::kTfLiteArenaRw:
      ReleaseHeap(tensor);
      tensor.allocation_type = tflite::kTfLiteArenaRw;
      break;
    case tflite::kTfLiteArenaRwPersistent: tensor.data.raw = nullptr; break;
    default: break;
  }
}

void Subgraph::ForgetMemory() {
  for (TfLiteTensor& tensor : tensors_) ForgetMemoryOf(tensor);
  segments_.clear();
}

void Subgraph::ForgetMemoryFrom(size_t position) {
  // The first one begins at 0, and is never forgotten alone.
  while (segments_.back().begin >= position) segments_.pop_back();
  for (size_t i = position; i < plan_.size(); ++i) {
    for (int output : Elements(nodes_[plan_[i]]->node.outputs)) ForgetMemoryOf(tensors_[output]);
    for (int temporary : Elements(nodes_[plan_[i]]->node.temporaries)) {
      ForgetMemoryOf(tensors_[temporary]);
    }
  }
}

Status Subgraph::AllocateTensors() {
  FUSELITE_RETURN_IF_ERROR(RedoDelegates());
  if (state_ == State::kReady) return Status();
  ForgetMemory();
  multiply_adds_ = 0;
  FUSELITE_RETURN_IF_ERROR(PropagateShapes());
  FUSELITE_RETURN_IF_ERROR(PrepareFrom(0));
  state_ = State::kReady;
  ResetVariables();
  return Status();
}

bool Subgraph::HasNodesThatRemember() const {
  return std::ranges::any_of(plan_, [&](int index) { return nodes_[index]->remembers; });
}

bool Subgraph::KeepsStates() const {
  return HasNodesThatRemember() || std::ranges::any_of(tensors_, &TfLiteTensor::is_variable);
}

Status Subgraph::AllocateAnew() {
  if (HasNodesThatRemember()) state_ = State::kUnprepared;
  if (ready()) ResetVariables();
  return AllocateTensors();
}

// For delegates that ask for it: the nodes that they replaced still tell shapes.
Status Subgraph::PropagateShapes() {
  const bool asked = std::ranges::any_of(delegates_, [](const tflite::TfLiteDelegate* delegate) {
    return (delegate->flags & tflite::kTfLiteDelegateFlagsRequirePropagatedShapes) != 0;
  });
  if (!asked) return Status();
  for (int index : original_plan_) {
    FUSELITE_RETURN_IF_ERROR(PrepareNode(*nodes_[index]));
    if (HasDynamicOutput(*nodes_[index])) break;
  }
  return Status();
}

Status Subgraph::PrepareNode(Node& node) {
  if (!HasPrepare(node.registration)) {
    if (HasInvoke(node.registration)) return Status();
    return Unsupported(Where(node), ": has no functions that the interpreter can call");
  }
  ReserveTensors();
  return StatusOf(CallPrepare(node.registration, &context_, &node.node), node);
}

bool Subgraph::HasDynamicOutput(const Node& node) const {
  return std::ranges::any_of(Elements(node.node.outputs), [&](int output) {
    return tensors_[output].allocation_type == tflite::kTfLiteDynamic;
  });
}

Status Subgraph::PrepareFrom(size_t position) {
  Segment segment;
  segment.begin = position;
  multiply_adds_ = 0;
  for (const Segment& before : segments_) multiply_adds_ += before.multiply_adds;
  const double before = multiply_adds_;
  segment.dynamic_shapes = DynamicShapes(position);
  bool dynamic = false;
  while (position < plan_.size() && !dynamic) {
    Node& node = *nodes_[plan_[position]];
    FUSELITE_RETURN_IF_ERROR(PrepareNode(node));
    dynamic = HasDynamicOutput(node);
    ++position;
  }
  segment.end = position;
  segment.multiply_adds = multiply_adds_ - before;
  if (segment.begin == 0) has_dynamic_tensors_ = dynamic;
  FUSELITE_RETURN_IF_ERROR(PlanSegment(segment));
  segments_.push_back(std::move(segment));
  prepared_ = position;
  return Status();
}

// The shapes of everything dynamic that the plan's first `end` nodes write.
std::vector<int> Subgraph::DynamicShapes(size_t end) const {
  std::vector<int> shapes;
  for (size_t i = 0; i < end; ++i) {
    for (int output : Elements(nodes_[plan_[i]]->node.outputs)) {
      if (tensors_[output].allocation_type != tflite::kTfLiteDynamic) continue;
      const auto dims = Elements(tensors_[output].dims);
      shapes.push_back(static_cast<int>(dims.size()));
      shapes.insert(shapes.end(), dims.begin(), dims.end());
    }
  }
  return shapes;
}

// Before the node at `position` runs: prepares it where that waited for dynamic shapes, or where
// they are others than the last time.
Status Subgraph::EnsurePrepared(size_t position) {
  if (position < prepared_) return Status();
  const auto next = std::ranges::find_if(
      segments_, [&](const Segment& segment) { return segment.begin == position; });
  if (next != segments_.end() && next->dynamic_shapes == DynamicShapes(position)) {
    prepared_ = next->end;
    return Status();
  }
  ForgetMemoryFrom(position);
  return PrepareFrom(position);
}

Status Subgraph::PlanSegment(Segment& segment) {
  FUSELITE_RETURN_IF_ERROR(AllocatePersistent());
  const int last_step = std::max(static_cast<int>(segment.end) - 1, 0);
  // The last step at which each tensor is read; the caller and later segments read after all steps.
  std::vector<int> last_use(tensors_.size(), 0);
  for (size_t i = 0; i < plan_.size(); ++i) {
    const int step = std::min(static_cast<int>(i), last_step);
    for (int input : Elements(nodes_[plan_[i]]->node.inputs)) {
      if (input >= 0) last_use[input] = step;
    }
  }
  for (int input : model_.inputs) last_use[input] = last_step;
  for (int output : model_.outputs) last_use[output] = last_step;

  std::vector<ArenaValue> values;
  std::vector<int> placed;
  const auto place = [&](int index, int first, int last) {
    if (index < 0 || !IsArena(tensors_[index])) return;
    if (host_.preserve_all_tensors) last = last_step;
    values.push_back({tensors_[index].bytes, first, std::max(first, last)});
    placed.push_back(index);
  };
  if (segment.begin == 0) {
    for (int input : model_.inputs) place(input, 0, last_use[input]);
  }
  for (size_t i = segment.begin; i < segment.end; ++i) {
    const int step = static_cast<int>(i);
    const tflite::TfLiteNode& node = nodes_[plan_[i]]->node;
    for (int output : Elements(node.outputs)) place(output, step, last_use[output]);
    for (int temporary : Elements(node.temporaries)) place(temporary, step, step);
  }
  const ArenaPlan plan = PlanArena(values);
  FUSELITE_RETURN_IF_ERROR(CheckMemory(static_cast<double>(plan.bytes)));
  segment.arena = AlignedBuffer(plan.bytes);
  if (segment.arena.data() == nullptr) {
    return OutOfMemory("no memory for ", plan.bytes, " bytes of tensors");
  }
  for (size_t i = 0; i < placed.size(); ++i) {
    // Those without elements have an address, too: a null pointer means absent.
    tensors_[placed[i]].data.raw = segment.arena.as<char>() + plan.offsets[i];
  }
  return Status();
}

Status Subgraph::AllocatePersistent() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TfLiteTensor& tensor = tensors_[i];
    if (tensor.allocation_type != tflite::kTfLiteArenaRwPersistent) continue;
    if (persistent_[i].data() == nullptr || persistent_[i].size() != tensor.bytes) {
      FUSELITE_RETURN_IF_ERROR(CheckMemory(static_cast<double>(tensor.bytes)));
      persistent_[i] = AlignedBuffer(std::max<size_t>(tensor.bytes, 1));
      if (persistent_[i].data() == nullptr) {
        return OutOfMemory("no memory for ", tensor.bytes, " bytes of variables");
      }
      std::memset(persistent_[i].data(), 0, tensor.bytes);
    }
    tensor.data.raw = persistent_[i].as<char>();
  }
  return Status();
}

Status Subgraph::CheckMemory(double more) const {
  if (host_.budget.max_memory <= 0) return Status();
  double held = static_cast<double>(scratch_.size()) + host_.resources.bytes();
  for (const Segment& segment : segments_) held += static_cast<double>(segment.arena.size());
  for (const AlignedBuffer& buffer : persistent_) held += static_cast<double>(buffer.size());
  for (const TfLiteTensor& tensor : tensors_) {
    if (IsOnHeap(tensor) && tensor.data.raw != nullptr) held += static_cast<double>(tensor.bytes);
  }
  return host_.budget.CheckMemory(held + more);
}

Status Subgraph::CountWork(double multiply_adds) {
  multiply_adds_ += multiply_adds;
  return host_.budget.CheckMultiplyAdds(multiply_adds_);
}

// Variables begin at zero, int8 at what stands for zero. uint8 begins with bytes of 0, as in
// LiteRT.
void Subgraph::ResetVariables() {
  for (TfLiteTensor& tensor : tensors_) {
    if (!tensor.is_variable || tensor.data.raw == nullptr) continue;
    const int start = tensor.type == tflite::kTfLiteInt8 ? tensor.params.zero_point : 0;
    std::memset(tensor.data.raw, start, tensor.bytes);
  }
}

}  // namespace fuselite::interpreter
