#include "fusion/graph/evaluate.h"

#include <algorithm>
#include <cstring>

#include "runtime/execution/run_whole.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::fusion {
namespace {

bool Misaligned(const TensorInfo& info) {
  const size_t element = static_cast<size_t>(BitWidth(info.type)) / 8;
  return element > 1 && reinterpret_cast<uintptr_t>(info.data) % element != 0;
}

std::shared_ptr<AlignedBuffer> CopyOf(const TensorInfo& info) {
  auto copy = std::make_shared<AlignedBuffer>(MemoryOfConstant(info.bytes()));
  if (copy->data()) std::memcpy(copy->data(), info.data, info.bytes());
  return copy;
}

Status RunAll(const Kernel& kernel, const void* const* inputs, void* const* outputs) {
  const AlignedBuffer scratch(std::max<size_t>(kernel.scratch_bytes(), 1));
  const AlignedBuffer shared(std::max<size_t>(kernel.shared_bytes(), 1));
  if (!scratch.data() || !shared.data()) return OutOfMemory("no memory to fold a constant");
  return RunWhole(kernel, {inputs, outputs, scratch.data(), shared.data()});
}

// Whether all kernels of the operator give the reference's bits, be they emitted, of vectors or
// scalar: those that only move values, and DEQUANTIZE, which rounds once.
bool HasOneResult(const kernels::OperatorDef& op) { return op.selects || op.name == "DEQUANTIZE"; }

Result<std::shared_ptr<const Kernel>> BuildFor(const kernels::OpDescription& op, Isa isa) {
  if (!HasOneResult(*op.op)) return kernels::BuildReference(op);
  kernels::PlanContext context;
  context.isa = isa;
  for (const kernels::Candidate& candidate : op.op->candidates) {
    auto kernel = candidate.Build(op, context);
    if (kernel.ok()) return kernel;
  }
  return kernels::BuildReference(op);
}

}  // namespace

Result<std::vector<Value>> Evaluate(const Graph& graph, NodeId node, Isa isa) {
  const kernels::OpDescription op = graph.Describe(node);
  std::vector<std::shared_ptr<AlignedBuffer>> copies;
  std::vector<const void*> inputs;
  for (const TensorInfo& info : op.inputs) {
    if (Misaligned(info)) {
      copies.push_back(CopyOf(info));
      if (!copies.back()->data()) return OutOfMemory("no memory to fold a constant");
      inputs.push_back(copies.back()->data());
    } else {
      inputs.push_back(info.data);
    }
  }
  std::vector<Value> values;
  std::vector<void*> outputs;
  for (ValueId v : graph.node(node).outputs) {
    Value value = graph.value(v);
    auto storage = std::make_shared<AlignedBuffer>(MemoryOfConstant(value.info.bytes()));
    if (!storage->data()) return OutOfMemory("no memory to fold a constant");
    outputs.push_back(storage->data());
    value.info.data = storage->data();
    value.storage = std::move(storage);
    values.push_back(std::move(value));
  }
  FUSELITE_ASSIGN_OR_RETURN(const std::shared_ptr<const Kernel> kernel, BuildFor(op, isa));
  FUSELITE_RETURN_IF_ERROR(RunAll(*kernel, inputs.data(), outputs.data()));
  return values;
}

void AlignConstants(Graph& graph) {
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    Value& value = graph.value(v);
    if (!value.info.constant() || !Misaligned(value.info)) continue;
    auto copy = CopyOf(value.info);
    if (!copy->data()) continue;
    value.info.data = copy->data();
    value.storage = std::move(copy);
  }
}

}  // namespace fuselite::fusion
