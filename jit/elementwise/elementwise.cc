#include "jit/elementwise/elementwise.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <numeric>

#include "jit/elementwise/elementwise_emitter.h"
#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/grid.h"
#include "kernels/make_kernel.h"
#include "kernels/product/tail_rest.h"
#include "kernels/tail/apply.h"

namespace fuselite::jit {
namespace {

using kernels::BuildContext;
using kernels::ElementwiseGrid;
using kernels::KernelPlan;
using kernels::OpDescription;
using kernels::PlanContext;
using kernels::Tail;
using kernels::TailOperand;
using kernels::TailStage;

constexpr int64_t kFloat = sizeof(float);

// How an operand lies beside rows of `channels` values that follow each other.
enum class Pattern { kScalar, kFull, kPerChannel, kOther };

Pattern PatternOf(const TailOperand& y, bool linear, int64_t channels) {
  if (!linear) return Pattern::kOther;
  if (y.row_stride == 0) return y.channel_stride == 0 ? Pattern::kScalar : Pattern::kPerChannel;
  const bool dense = y.row_stride == channels && (y.channel_stride == 1 || channels == 1);
  return dense ? Pattern::kFull : Pattern::kOther;
}

// How the values of a unit are seen by the emitted function, as rows of `length`:
// one long row, where every operand is a scalar or lies like the values; `group` rows as one, where
// others go along the channels, of which there are too few for vectors: they are repeated in
// scratch; or the rows as they are.
struct View {
  bool flat = false;
  int64_t group = 1;
};

View ChooseView(const Tail& tail, bool dense, const ElementwiseGrid& grid, int lanes) {
  if (!dense || grid.pieces > 1) return {};
  View view{.flat = true};
  for (const TailStage& stage : tail.stages) {
    if (stage.operand.input < 0) continue;
    const bool linear = TailIsLinear({.stages = {stage}, .rows_per_batch = tail.rows_per_batch});
    switch (PatternOf(stage.operand, linear, grid.channels)) {
      case Pattern::kOther: return {};
      case Pattern::kPerChannel: view.flat = false; break;
      default: break;
    }
  }
  if (view.flat) return view;
  // Rows that fill their vectors to nine tenths are left as they are. A group fills them all, and
  // has four at least.
  const int64_t c = grid.channels, vectors = (c + lanes - 1) / lanes;
  if (10 * c >= 9 * vectors * lanes) return view;
  view.group = lanes / std::gcd<int64_t>(lanes, c);
  while (view.group * c < 4 * lanes) view.group *= 2;
  if (view.group * 4 > grid.rows) view.group = 1;  // repeating operands costs as much as four rows
  return view;
}

// The tail as emitted code sees it.
Tail InView(Tail tail, const View& view) {
  for (TailStage& stage : tail.stages) {
    TailOperand& y = stage.operand;
    if (y.input < 0 || (!view.flat && view.group == 1)) continue;
    if (y.row_stride != 0) y.channel_stride = 1;               // full, be it of one channel
    y.row_stride = view.flat ? 0 : y.row_stride * view.group;  // flat: there is one row
  }
  return tail;
}

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(const OpDescription& op, int flowing, DividedTail tail, Isa isa)
      : isa_(isa),
        tail_(std::move(tail.emitted)),
        rest_(std::move(tail.rest)),
        flowing_(flowing),
        in_pitch_(op.inputs[flowing].pitch()),
        out_pitch_(op.outputs[0].pitch()),
        grid_(op.outputs[0].shape, isa_.lanes()) {
    const bool dense = in_pitch_ == grid_.channels && out_pitch_ == grid_.channels;
    view_ = ChooseView(tail_, dense, grid_, isa_.lanes());
    if (view_.group > 1) grid_ = ElementwiseGrid(op.outputs[0].shape, view_.group);
    linear_ = TailIsLinear(tail_);
    name_ = internal::Join(op.op->builtin_code < 0 ? "elementwise" : Lower(op.op->name), " f32 ",
                           isa_.name(), " jit") +
            kernels::TailApart(tail.why_rest);
    if (!rest_.empty()) apply_rest_ = kernels::ApplyTail(isa);
    for (const TailStage& stage : tail_.stages) operands_ += stage.operand.input >= 0;
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return grid_.units(); }
  int64_t grain(int) const override { return kernels::GrainFor(grid_.unit_elements()); }
  int in_place_input() const override { return in_pitch_ == out_pitch_ ? flowing_ : -1; }
  size_t scratch_bytes() const override { return view_.group > 1 ? operands_ * group_bytes() : 0; }

  ElementwiseSpec Spec() const {
    return {.isa = isa_.features,
            .in_step = in_pitch_ * view_.group * kFloat,
            .out_step = out_pitch_ * view_.group * kFloat,
            .tail = InView(tail_, view_)};
  }
  // What the entries compute: whole units or rows, then what is left.
  std::vector<int64_t> Lengths() const {
    const int64_t c = grid_.channels;
    std::vector<int64_t> lengths;
    if (grid_.pieces > 1) {
      lengths = {ElementwiseGrid::kUnitElements, c % ElementwiseGrid::kUnitElements};
    } else if (view_.flat) {
      lengths = {std::min(grid_.rows, grid_.rows_per_unit) * c,
                 grid_.rows % grid_.rows_per_unit * c};
    } else {
      lengths = {view_.group * c, grid_.rows % view_.group * c};
    }
    if (lengths[1] == 0 || lengths[1] == lengths[0]) lengths.pop_back();
    return lengths;
  }
  void SetCode(SharedCode code) { code_ = std::move(code); }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    if (view_.group > 1) RepeatOperands(args);
    for (int64_t unit = begin; unit < end; ++unit) RunUnit(args, grid_.At(unit));
    return Status();
  }

 private:
  static std::string Lower(std::string_view name) {
    std::string lower(name);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
  }
  size_t group_bytes() const { return view_.group * grid_.channels * kFloat; }

  // Each operand along the channels, `group` times.
  void RepeatOperands(const KernelArgs& args) const {
    std::byte* to = args.scratch;
    for (const TailStage& stage : tail_.stages) {
      const TailOperand& y = stage.operand;
      if (y.input < 0) continue;
      const size_t bytes = grid_.channels * kFloat;
      for (int64_t i = 0; IsRepeated(y) && i < view_.group; ++i) {
        std::memcpy(to + i * bytes, args.inputs[y.input], bytes);
      }
      to += group_bytes();
    }
  }
  static bool IsRepeated(const TailOperand& y) {
    return y.row_stride == 0 && y.channel_stride != 0;
  }

  void RunUnit(const KernelArgs& args, const ElementwiseGrid::Unit& unit) const {
    if (grid_.pieces > 1) {
      Call(args, unit, 1, unit.channels == ElementwiseGrid::kUnitElements ? 0 : 1);
    } else if (view_.flat) {
      Call(args, unit, 1, unit.rows == std::min(grid_.rows, grid_.rows_per_unit) ? 0 : 1);
    } else if (view_.group > 1) {
      const int64_t groups = unit.rows / view_.group;
      ElementwiseGrid::Unit rest = unit;
      rest.row += groups * view_.group;
      rest.rows -= groups * view_.group;
      if (groups > 0) Call(args, unit, groups, 0);
      if (rest.rows > 0) Call(args, rest, 1, 1);
    } else {
      RunRows(args, unit);
    }
    if (apply_rest_ != nullptr) ApplyRest(args, unit);
  }

  // Operands may jump from one batch to the next.
  void RunRows(const KernelArgs& args, ElementwiseGrid::Unit unit) const {
    const int64_t end = unit.row + unit.rows;
    for (; unit.row < end; unit.row += unit.rows) {
      unit.rows = end - unit.row;
      if (!linear_) {
        unit.rows = std::min(unit.rows, tail_.rows_per_batch - unit.row % tail_.rows_per_batch);
      }
      Call(args, unit, unit.rows, 0);
    }
  }

  void Call(const KernelArgs& args, const ElementwiseGrid::Unit& unit, int64_t rows,
            size_t entry) const {
    ElementwiseArgs call{.in = static_cast<const std::byte*>(args.inputs[flowing_]) +
                               (unit.row * in_pitch_ + unit.channel) * kFloat,
                         .out = Output(args, unit),
                         .rows = rows,
                         .operands = {}};
    BindTailOperands(tail_, args.inputs, unit.row, unit.channel, &call.operands);
    if (view_.group > 1) {
      size_t slot = 0;
      for (const TailStage& stage : tail_.stages) {
        if (stage.operand.input < 0) continue;
        if (IsRepeated(stage.operand)) call.operands[slot] = args.scratch + slot * group_bytes();
        ++slot;
      }
    }
    code_->entry<ElementwiseFunction>(entry)(&call);
  }

  std::byte* Output(const KernelArgs& args, const ElementwiseGrid::Unit& unit) const {
    return static_cast<std::byte*>(args.outputs[0]) +
           (unit.row * out_pitch_ + unit.channel) * kFloat;
  }

  void ApplyRest(const KernelArgs& args, const ElementwiseGrid::Unit& unit) const {
    std::byte* const stored = Output(args, unit);
    apply_rest_(rest_, args.inputs,
                {.source = stored,
                 .source_pitch = out_pitch_,
                 .source_type = DataType::kFloat32,
                 .destination = stored,
                 .destination_pitch = out_pitch_,
                 .destination_type = DataType::kFloat32,
                 .row = unit.row,
                 .rows = unit.rows,
                 .channel = unit.channel,
                 .channels = unit.channels});
  }

  VectorIsa isa_;
  Tail tail_, rest_;
  kernels::ApplyTailFunction* apply_rest_ = nullptr;
  int flowing_;
  int64_t in_pitch_, out_pitch_;
  ElementwiseGrid grid_;
  View view_;
  bool linear_ = true;
  size_t operands_ = 0;
  std::string name_;
  SharedCode code_;
};

// The operator and its tail as one chain on input `flowing`.
Result<DividedTail> FuseChain(const OpDescription& op, int* flowing) {
  std::optional<kernels::StagesOnInput> own = kernels::AsStagesOnInput(op);
  if (!own) return Unsupported("both inputs broadcast, which has no emitter");
  OpDescription chain = op;
  chain.tail = std::move(own->stages);
  for (const TailStage& stage : op.tail.stages) {
    if (!kernels::AppendStage(stage, op.tail.rows_per_batch, &chain.tail)) {
      return Unsupported("operands that repeat in two ways have no emitter");
    }
  }
  *flowing = own->flowing;
  FUSELITE_ASSIGN_OR_RETURN(DividedTail fused,
                            DivideFloatTail(chain, kernels::Activation::kNone, 1));
  if (fused.emitted.empty() && !fused.rest.empty()) {
    return TailEmitter::Check(fused.rest.stages.front());
  }
  return fused;
}

}  // namespace

Result<KernelPlan> PlanElementwise(const OpDescription& op, const PlanContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  for (const DataType type : {op.inputs[0].type, op.outputs[0].type}) {
    if (type != DataType::kFloat32) {
      return Unsupported("only float32 is emitted, not ", DataTypeName(type));
    }
  }
  if (op.outputs[0].elements() == 0) return Unsupported("nothing is emitted for an empty output");
  int flowing = 0;
  FUSELITE_ASSIGN_OR_RETURN(DividedTail tail, FuseChain(op, &flowing));
  ElementwiseKernel kernel(op, flowing, std::move(tail), context.isa);
  FUSELITE_RETURN_IF_ERROR(CheckElementwise(kernel.Spec()));
  return KernelPlan::Of(
      std::move(kernel),
      [](ElementwiseKernel& emitted, const OpDescription&, const BuildContext&) -> Status {
        FUSELITE_ASSIGN_OR_RETURN(
            SharedCode code,
            EmitElementwise(emitted.Spec(), emitted.Lengths(), std::string(emitted.name())));
        emitted.SetCode(std::move(code));
        return Status();
      });
}

}  // namespace fuselite::jit
