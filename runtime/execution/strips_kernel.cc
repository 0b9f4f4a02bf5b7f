#include "runtime/execution/strips_kernel.h"

#include <algorithm>
#include <utility>

#include "runtime/execution/run_whole.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite {

StripsKernel::Operand StripsKernel::OperandOf(const Executable& part, int id) {
  if (id < 0) return {};
  const Value& value = part.values()[static_cast<size_t>(id)];
  return {value.placement, static_cast<size_t>(value.index), value.offset, value.data};
}

StripsKernel::Sequence StripsKernel::SequenceOf(Strips strips) {
  Sequence sequence;
  const Executable& part = *strips.part;
  int s = 0;
  for (const Step& step : part.steps()) {
    Call call{.step = &step, .shared_offset = part.shared_offset(s++)};
    call.inputs = sequence.operands.size();
    for (int id : step.inputs) sequence.operands.push_back(OperandOf(part, id));
    call.outputs = sequence.operands.size();
    for (int id : step.outputs) sequence.operands.push_back(OperandOf(part, id));
    sequence.calls.push_back(call);
  }
  sequence.slots_bytes = AlignUp(sequence.operands.size() * sizeof(void*));
  sequence.arena_bytes = AlignUp(part.arena_bytes());
  sequence.strips = std::move(strips);
  return sequence;
}

StripsKernel::StripsKernel(std::vector<Strips> strips, std::vector<size_t> input_rows,
                           std::vector<size_t> output_rows)
    : input_rows_(std::move(input_rows)), output_rows_(std::move(output_rows)) {
  name_ = internal::Join("strips of ", strips.front().rows, " rows");
  for (Strips& some : strips) {
    units_ += some.count;
    const Sequence& made = sequences_.emplace_back(SequenceOf(std::move(some)));
    scratch_bytes_ = std::max(
        scratch_bytes_, made.slots_bytes + made.arena_bytes + made.strips.part->scratch_bytes());
  }
}

Status StripsKernel::Run(const KernelArgs& args, int /*phase*/, int64_t begin, int64_t end) const {
  int64_t row = 0, unit = 0;
  for (const Sequence& sequence : sequences_) {
    const Strips& strips = sequence.strips;
    for (int64_t i = std::max(begin, unit); i < std::min(end, unit + strips.count); ++i) {
      FUSELITE_RETURN_IF_ERROR(RunStrip(sequence, args, row + (i - unit) * strips.rows));
    }
    row += strips.count * strips.rows;
    unit += strips.count;
  }
  return Status();
}

Status StripsKernel::RunStrip(const Sequence& sequence, const KernelArgs& args, int64_t row) const {
  auto** const slots = reinterpret_cast<void**>(args.scratch);
  std::byte* const arena = args.scratch + sequence.slots_bytes;
  for (size_t i = 0; i < sequence.operands.size(); ++i) {
    const Operand& operand = sequence.operands[i];
    switch (operand.placement) {
      case Placement::kInput:
        slots[i] = static_cast<std::byte*>(const_cast<void*>(args.inputs[operand.index])) +
                   static_cast<size_t>(row) * input_rows_[operand.index] + operand.offset;
        break;
      case Placement::kOutput:
        slots[i] = static_cast<std::byte*>(args.outputs[operand.index]) +
                   static_cast<size_t>(row) * output_rows_[operand.index] + operand.offset;
        break;
      case Placement::kArena: slots[i] = arena + operand.offset; break;
      default: slots[i] = const_cast<void*>(operand.data); break;
    }
  }
  for (const Call& call : sequence.calls) {
    const KernelArgs own{slots + call.inputs, slots + call.outputs, arena + sequence.arena_bytes,
                         arena + call.shared_offset, args.run};
    Status status = RunWhole(*call.step->kernel, own);
    if (!status.ok()) return status.In(call.step->name);
  }
  return Status();
}

}  // namespace fuselite
