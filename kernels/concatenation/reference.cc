#include <algorithm>
#include <cmath>

#include "kernels/concatenation/concatenation.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/shape_rules.h"
#include "kernels/simd.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {
namespace {

// So many bytes go through a table together, be they of one outer index or of many.
constexpr int64_t kTogether = 4096;

// One input of a requantizing concatenation: `run` bytes of each outer index.
struct Source {
  int64_t run;
  int64_t start;  // within the output's outer index
  Tail tail;      // a table, or nothing where the input is quantized as the output
};

Tail Requantizing(const Quantization& in, const Quantization& out) {
  Tail tail;
  if (in.scale() == out.scale() && in.zero_point() == out.zero_point()) return tail;
  TailStage& stage = tail.stages.emplace_back();
  stage.kind = TailStage::Kind::kLookup;
  const float inverse = 1.0f / out.scale();
  const float scale = in.scale() * inverse;
  const float bias = static_cast<float>(-in.zero_point()) * scale;
  std::vector<uint8_t> table(256);
  for (int x = 0; x < 256; ++x) {
    const float real = std::round(static_cast<float>(x) * scale + bias);
    // The clamp in float keeps the conversion defined for scales that are far apart.
    const auto value = static_cast<int32_t>(std::clamp(real, -1e6f, 1e6f)) + out.zero_point();
    table[x] = static_cast<uint8_t>(std::clamp(value, 0, 255));
  }
  stage.table = std::move(table);
  return tail;
}

// Takes `from` through the tail's table, `rows` runs that follow each other, to runs a distance of
// `step` apart. `scratch` has kTogether bytes.
void RequantizeRows(const Source& source, ApplyTailFunction* apply, const CopyLoops& loops,
                    const std::byte* from, int64_t rows, int64_t step, std::byte* to,
                    std::byte* scratch) {
  const int64_t run = source.run;
  const bool direct = run >= kTogether;
  const int64_t at_once = direct ? 1 : kTogether / run;
  for (int64_t row = 0; row < rows; row += at_once) {
    const int64_t count = std::min(at_once, rows - row);
    apply(source.tail, nullptr,
          {.source = from + row * run,
           .source_pitch = run,
           .source_type = DataType::kUInt8,
           .destination = direct ? to + row * step : scratch,
           .destination_pitch = run,
           .destination_type = DataType::kUInt8,
           .row = 0,
           .rows = count,
           .channel = 0,
           .channels = run});
    if (!direct) loops.rows(scratch, to + row * step, {count, run, step}, run);
  }
}

Result<std::unique_ptr<Kernel>> BuildRequantizing(const OpDescription& op, std::string name,
                                                  ApplyTailFunction* apply,
                                                  const CopyLoops& loops) {
  const TensorInfo& out = op.outputs[0];
  if (!op.tail.empty()) return Unsupported("CONCATENATION takes no fused tail");
  FUSELITE_ASSIGN_OR_RETURN(
      const int axis, ResolveAxis(op.params.as<ConcatenationParams>().axis, out.shape.rank()));
  const int64_t inner = out.shape.elements(axis + 1, out.shape.rank());
  const int64_t whole = out.shape[axis] * inner;
  std::vector<Source> sources;
  int64_t start = 0;
  for (const TensorInfo& in : op.inputs) {
    if (in.pitch() != in.shape.dim(-1) || out.pitch() != out.shape.dim(-1)) {
      return Unsupported("a requantizing concatenation takes dense operands");
    }
    const int64_t run = in.shape[axis] * inner;
    sources.push_back({run, start, Requantizing(in.quantization, out.quantization)});
    start += run;
  }
  return MakeKernel(
      std::move(name),
      {.units = out.shape.elements(0, axis),
       .grain = GrainFor(whole),
       .scratch_bytes = static_cast<size_t>(kTogether)},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* to = static_cast<std::byte*>(args.outputs[0]) + begin * whole;
        for (size_t i = 0; i < sources.size(); ++i) {
          const Source& source = sources[i];
          const auto* from = static_cast<const std::byte*>(args.inputs[i]) + begin * source.run;
          if (source.run == 0) continue;
          if (source.tail.empty()) {
            loops.rows(from, to + source.start, {end - begin, source.run, whole}, source.run);
          } else {
            RequantizeRows(source, apply, loops, from, end - begin, whole, to + source.start,
                           args.scratch);
          }
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConcatenationReference(const OpDescription& op,
                                                            const BuildContext& context) {
  if (IsPacked(op.outputs[0].type)) return BuildOnBytes(op, context, BuildConcatenationReference);
  const Result<Movement> movement = PlanConcatenation(op);
  if (movement.ok()) return MakeMovementKernel(op, *movement);
  return BuildRequantizing(op, "concatenation uint8 reference", &ApplyTailReference,
                           ScalarCopyLoops());
}

Result<std::unique_ptr<Kernel>> BuildConcatenationHighway(const OpDescription& op,
                                                          const BuildContext& context) {
  if (IsPacked(op.outputs[0].type)) return BuildOnBytes(op, context, BuildConcatenationHighway);
  const Result<Movement> movement = PlanConcatenation(op);
  if (movement.ok()) return MakeVectorMovementKernel(op, *movement, context.isa);
  ApplyTailFunction* const apply = ApplyTail(context.isa);
  if (apply == &ApplyTailReference) return NoVectorTarget(context.isa);
  return BuildRequantizing(op, std::string("concatenation uint8 ") + SimdName(context.isa), apply,
                           CopyLoopsFor(context.isa));
}

}  // namespace fuselite::kernels
