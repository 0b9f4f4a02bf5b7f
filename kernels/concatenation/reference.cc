#include <algorithm>
#include <cmath>

#include "kernels/concatenation/concatenation.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

// One input of a requantizing concatenation: `run` bytes of each outer index.
struct Source {
  int64_t run;
  int64_t start;  // within the output's outer index
  std::array<uint8_t, 256> table;
};

std::array<uint8_t, 256> RequantizingTable(const Quantization& in, const Quantization& out) {
  std::array<uint8_t, 256> table;
  const bool same = in.scale() == out.scale() && in.zero_point() == out.zero_point();
  const float inverse = 1.0f / out.scale();
  const float scale = in.scale() * inverse;
  const float bias = static_cast<float>(-in.zero_point()) * scale;
  for (int x = 0; x < 256; ++x) {
    const float real = std::round(static_cast<float>(x) * scale + bias);
    // The clamp in float keeps the conversion defined for scales that are far apart.
    const auto value = static_cast<int32_t>(std::clamp(real, -1e6f, 1e6f)) + out.zero_point();
    table[x] = static_cast<uint8_t>(same ? x : std::clamp(value, 0, 255));
  }
  return table;
}

Result<std::unique_ptr<Kernel>> BuildRequantizing(const OpDescription& op) {
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
    sources.push_back({run, start, RequantizingTable(in.quantization, out.quantization)});
    start += run;
  }
  return MakeKernel("concatenation uint8 requantizing",
                    {.units = out.shape.elements(0, axis), .grain = GrainFor(whole)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      auto* to = static_cast<uint8_t*>(args.outputs[0]);
                      for (size_t i = 0; i < sources.size(); ++i) {
                        const Source& source = sources[i];
                        const auto* from = static_cast<const uint8_t*>(args.inputs[i]);
                        for (int64_t u = begin; u < end; ++u) {
                          for (int64_t j = 0; j < source.run; ++j) {
                            to[u * whole + source.start + j] =
                                source.table[from[u * source.run + j]];
                          }
                        }
                      }
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildConcatenationReference(const OpDescription& op,
                                                            const BuildContext&) {
  const Result<Movement> movement = PlanConcatenation(op);
  return movement.ok() ? MakeMovementKernel(op, *movement) : BuildRequantizing(op);
}

}  // namespace fuselite::kernels
