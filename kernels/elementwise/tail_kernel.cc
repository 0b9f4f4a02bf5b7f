#include <utility>

#include "kernels/check_tail.h"
#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/grid.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "kernels/simd.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {
namespace {

struct Operand {
  int index;
  DataType type;
  int64_t pitch;
  Operand(int i, const TensorInfo& info) : index(i), type(info.type), pitch(info.pitch()) {}
  int64_t Offset(int64_t row, int64_t channel) const {
    return (row * pitch + channel) * (BitWidth(type) / 8);
  }
};

// Stages in one list where their operands agree about what a batch is, else in two.
std::vector<Tail> Passes(Tail first, const Tail& rest) {
  Tail all = first;
  for (const TailStage& stage : rest.stages) {
    if (!AppendStage(stage, rest.rows_per_batch, &all)) return {std::move(first), rest};
  }
  return {std::move(all)};
}

class Runner {
 public:
  Runner(ApplyTailFunction* apply, std::vector<Tail> passes, Operand in, Operand out,
         ElementwiseGrid grid)
      : apply_(apply), passes_(std::move(passes)), in_(in), out_(out), grid_(grid) {}

  // Values between two passes lie in the output where they are of its type.
  bool NeedsScratch() const { return passes_.size() > 1 && out_.type != DataType::kFloat32; }

  int64_t element_work() const {
    int64_t work = 0;
    for (const Tail& pass : passes_) work += ElementWork(pass);
    return work;
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      const ElementwiseGrid::Unit part = grid_.At(unit);
      TailTile tile{};
      tile.row = part.row;
      tile.rows = part.rows;
      tile.channel = part.channel;
      tile.channels = part.channels;
      tile.source = static_cast<const std::byte*>(args.inputs[in_.index]) +
                    in_.Offset(tile.row, tile.channel);
      tile.source_pitch = in_.pitch;
      tile.source_type = in_.type;
      tile.destination =
          static_cast<std::byte*>(args.outputs[0]) + out_.Offset(tile.row, tile.channel);
      tile.destination_pitch = out_.pitch;
      tile.destination_type = out_.type;
      Apply(args, tile);
    }
  }

 private:
  void Apply(const KernelArgs& args, const TailTile& tile) const {
    if (passes_.size() == 1) return apply_(passes_[0], args.inputs, tile);
    TailTile first = tile, second = tile;
    if (NeedsScratch()) {
      first.destination = args.scratch;
      first.destination_pitch = tile.channels;
      first.destination_type = DataType::kFloat32;
    }
    second.source = first.destination;
    second.source_pitch = first.destination_pitch;
    second.source_type = first.destination_type;
    apply_(passes_[0], args.inputs, first);
    apply_(passes_[1], args.inputs, second);
  }

  ApplyTailFunction* apply_;
  std::vector<Tail> passes_;
  Operand in_, out_;
  ElementwiseGrid grid_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTailKernel(std::string_view name, const OpDescription& op,
                                                const BuildContext& context, Tail first,
                                                int flowing_input, TailCandidate candidate) {
  const bool vectors = candidate == TailCandidate::kHighway;
  if (vectors && ApplyTail(context.isa) == &ApplyTailReference) return NoVectorTarget(context.isa);
  const TensorInfo& in = op.inputs[flowing_input];
  const ElementwiseGrid grid(op.outputs[0].shape);
  Runner runner(vectors ? ApplyTail(context.isa) : &ApplyTailReference,
                Passes(std::move(first), op.tail), Operand(flowing_input, in),
                Operand(0, op.outputs[0]), grid);
  const int64_t unit = grid.unit_elements();
  const bool in_place = in.type == op.outputs[0].type && in.pitch() == op.outputs[0].pitch();
  const Work work{.units = grid.units(),
                  .grain = GrainFor(runner.element_work() * unit),
                  .scratch_bytes = runner.NeedsScratch() ? unit * sizeof(float) : 0,
                  .in_place_input = in_place ? flowing_input : -1};
  std::string full_name = std::string(name) + ' ' + std::string(DataTypeName(in.type)) + ' ' +
                          (vectors ? SimdName(context.isa) : "reference");
  return MakeKernel(std::move(full_name), work, std::move(runner));
}

Status SetElementwiseOutput(OpDescription& op, DataType type, const Shape& shape) {
  if (op.tail.empty()) return SetOutput(op, 0, type, shape);
  if (op.outputs[0].absent()) op.outputs[0].type = type;
  op.outputs[0].shape = shape;
  return CheckTail(op, type);
}

}  // namespace fuselite::kernels
