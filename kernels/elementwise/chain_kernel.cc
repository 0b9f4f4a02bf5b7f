#include "kernels/elementwise/chain_kernel.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/elementwise/as_tail.h"
#include "kernels/elementwise/grid.h"
#include "kernels/elementwise/row_view.h"
#include "kernels/make_kernel.h"
#include "kernels/widened.h"

namespace fuselite::kernels {
namespace {

std::string Lower(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

class ChainKernel final : public Kernel {
 public:
  ChainKernel(const OpDescription& op, int flowing, const TailOperand& in, Tail tail, TailRest rest,
              std::shared_ptr<const ChainRows> rows)
      : rows_(std::move(rows)),
        tail_(std::move(tail)),
        rest_(std::move(rest)),
        flowing_(flowing),
        in_(in),
        in_type_(op.inputs[flowing].type),
        out_type_(op.outputs[0].type),
        out_pitch_(op.outputs[0].pitch()),
        grid_(op.outputs[0].shape, rows_->lanes()),
        work_(ElementWork(tail_)) {
    const int64_t batch = tail_.rows_per_batch;
    const bool in_linear = batch == INT64_MAX || in_.batch_stride == batch * in_.row_stride;
    const bool dense =
        in_linear && in_.row_stride == grid_.channels && out_pitch_ == grid_.channels;
    view_ = ChooseRowView(tail_, dense, grid_, rows_->lanes());
    if (view_.group > 1) grid_ = ElementwiseGrid(op.outputs[0].shape, view_.group);
    linear_ = in_linear && TailIsLinear(tail_);
    const bool whole = op.inputs[flowing].elements() == op.outputs[0].elements();
    in_place_ = whole && in_.row_stride == out_pitch_ && in_type_ == out_type_;
    name_ = internal::Join(op.op->builtin_code < 0 ? "elementwise" : Lower(op.op->name), ' ',
                           FloatsInMemory(in_type_, out_type_), ' ', rows_->target(),
                           TailApart(rest_.why));
    for (const TailStage& stage : tail_.stages) operands_ += stage.operand.input >= 0;
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return grid_.units(); }
  int64_t grain(int) const override { return GrainFor(work_ * grid_.unit_elements()); }
  int in_place_input() const override { return in_place_ ? flowing_ : -1; }
  size_t scratch_bytes() const override { return view_.group > 1 ? operands_ * group_bytes() : 0; }

  Status Check() const { return rows_->Check(Spec()); }
  Status Emit() {
    FUSELITE_ASSIGN_OR_RETURN(rows_, rows_->Emit(Spec(), Lengths(), name_));
    return Status();
  }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    if (view_.group > 1) RepeatOperands(args);
    for (int64_t unit = begin; unit < end; ++unit) RunUnit(args, grid_.At(unit));
    return Status();
  }

 private:
  size_t group_bytes() const { return view_.group * grid_.channels * sizeof(float); }
  static int64_t BytesOf(DataType type) { return BitWidth(type) / 8; }

  ChainRowsSpec Spec() const {
    return {.in_step = in_.row_stride * view_.group * BytesOf(in_type_),
            .out_step = out_pitch_ * view_.group * BytesOf(out_type_),
            .bf16_in = in_type_ == DataType::kBFloat16,
            .bf16_out = out_type_ == DataType::kBFloat16,
            .tail = InRowView(tail_, view_)};
  }
  // The lengths of whole units or rows, then of what is left.
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

  // Each operand along the channels, `group` times.
  void RepeatOperands(const KernelArgs& args) const {
    std::byte* to = args.scratch;
    for (const TailStage& stage : tail_.stages) {
      const TailOperand& y = stage.operand;
      if (y.input < 0) continue;
      const auto bytes = static_cast<size_t>(grid_.channels * ElementBytes(y));
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
    if (rest_.apply != nullptr) ApplyRest(args, unit);
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

  // `rows` as the view has them, of lengths[length].
  void Call(const KernelArgs& args, const ElementwiseGrid::Unit& unit, int64_t rows,
            size_t length) const {
    ChainRowsArgs call;  // operands that the tail does not have are left alone
    call.in = static_cast<const std::byte*>(args.inputs[flowing_]) +
              (InputRow(unit.row) + unit.channel) * BytesOf(in_type_);
    call.out = Output(args, unit);
    call.rows = rows;
    BindTailOperands(tail_, args.inputs, unit.row, unit.channel, &call.operands);
    if (view_.group > 1) {
      size_t slot = 0;
      for (const TailStage& stage : tail_.stages) {
        if (stage.operand.input < 0) continue;
        if (IsRepeated(stage.operand)) call.operands[slot] = args.scratch + slot * group_bytes();
        ++slot;
      }
    }
    rows_->Run(length, &call);
  }

  int64_t InputRow(int64_t row) const {
    return row / tail_.rows_per_batch * in_.batch_stride +
           row % tail_.rows_per_batch * in_.row_stride;
  }

  std::byte* Output(const KernelArgs& args, const ElementwiseGrid::Unit& unit) const {
    return static_cast<std::byte*>(args.outputs[0]) +
           (unit.row * out_pitch_ + unit.channel) * BytesOf(out_type_);
  }

  void ApplyRest(const KernelArgs& args, const ElementwiseGrid::Unit& unit) const {
    std::byte* const stored = Output(args, unit);
    rest_.Apply(args, {.stored = stored,
                       .pitch = out_pitch_,
                       .out = stored,
                       .out_pitch = out_pitch_,
                       .row = unit.row,
                       .rows = unit.rows,
                       .channel = unit.channel,
                       .channels = unit.channels});
  }

  std::shared_ptr<const ChainRows> rows_;
  Tail tail_;
  TailRest rest_;
  int flowing_;
  TailOperand in_;  // where its rows lie
  DataType in_type_, out_type_;
  int64_t out_pitch_;
  ElementwiseGrid grid_;
  const int64_t work_;  // an element's (ElementWork)
  RowView view_;
  bool linear_ = true, in_place_ = false;
  size_t operands_ = 0;
  std::string name_;
};

}  // namespace

Result<KernelPlan> PlanChainKernel(const OpDescription& op, int flowing, Tail tail, TailRest rest,
                                   std::shared_ptr<const ChainRows> rows) {
  const std::optional<TailOperand> in = PlaceRows(op.inputs[flowing], op.outputs[0].shape, &tail);
  if (!in) return Unsupported("does not take rows that repeat in another way than the operands");
  ChainKernel kernel(op, flowing, *in, std::move(tail), std::move(rest), std::move(rows));
  FUSELITE_RETURN_IF_ERROR(kernel.Check());
  return KernelPlan::Of(std::move(kernel), [](ChainKernel& emitted, const OpDescription&,
                                              const BuildContext&) { return emitted.Emit(); });
}

}  // namespace fuselite::kernels
