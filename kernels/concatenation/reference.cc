#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/concatenation/concatenation.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/simd.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {
namespace {

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

Result<std::unique_ptr<Kernel>> BuildRequantizing(const OpDescription& op, std::string name,
                                                  ApplyTailFunction* apply) {
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
      std::move(name), {.units = out.shape.elements(0, axis), .grain = GrainFor(whole)},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* to = static_cast<std::byte*>(args.outputs[0]) + begin * whole;
        for (size_t i = 0; i < sources.size(); ++i) {
          const auto& [run, start, tail] = sources[i];
          const auto* from = static_cast<const std::byte*>(args.inputs[i]) + begin * run;
          if (tail.empty()) {
            for (int64_t u = 0; u < end - begin; ++u) {
              std::memcpy(to + start + u * whole, from + u * run, run);
            }
            continue;
          }
          apply(tail, args.inputs,
                {.source = from,
                 .source_pitch = run,
                 .source_type = DataType::kUInt8,
                 .destination = to + start,
                 .destination_pitch = whole,
                 .destination_type = DataType::kUInt8,
                 .row = 0,
                 .rows = end - begin,
                 .channel = 0,
                 .channels = run});
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConcatenationReference(const OpDescription& op,
                                                            const BuildContext& context) {
  if (IsPacked(op.outputs[0].type)) return BuildOnBytes(op, context, BuildConcatenationReference);
  const Result<Movement> movement = PlanConcatenation(op);
  if (movement.ok()) return MakeMovementKernel(op, *movement);
  return BuildRequantizing(op, "concatenation uint8 reference", &ApplyTailReference);
}

Result<std::unique_ptr<Kernel>> BuildConcatenationHighway(const OpDescription& op,
                                                          const BuildContext& context) {
  if (IsPacked(op.outputs[0].type)) return BuildOnBytes(op, context, BuildConcatenationHighway);
  const Result<Movement> movement = PlanConcatenation(op);
  if (movement.ok()) return MakeVectorMovementKernel(op, *movement, context.isa);
  ApplyTailFunction* const apply = ApplyTail(context.isa);
  if (apply == &ApplyTailReference) return NoVectorTarget(context.isa);
  return BuildRequantizing(op, std::string("concatenation uint8 ") + SimdName(context.isa), apply);
}

}  // namespace fuselite::kernels
