// DYNAMIC_UPDATE_SLICE: (operand, update, start): the operand, with the update in the place of its
// elements from `start` on. As the update may not leave the operand, `start` is moved as far as it
// takes. The output may lie in the operand's memory: then the update alone is written. Rows of the
// update may be pitched.
#include <algorithm>
#include <array>
#include <string>

#include "kernels/movement/movement.h"
#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kPiece = 1 << 16;  // bytes of a unit

Status InferUpdate(OpDescription& op) {
  const TensorInfo& operand = op.inputs[0];
  const TensorInfo& update = op.inputs[1];
  const TensorInfo& start = op.inputs[2];
  const int rank = operand.shape.rank();
  if (rank > 8) return InvalidArgument("rank ", rank, ", expected 8 at most");
  if (start.type != DataType::kInt32 && start.type != DataType::kInt64) {
    return Unsupported("does not take start indices of type ", DataTypeName(start.type));
  }
  if (update.type != operand.type) {
    return InvalidArgument("an update of ", DataTypeName(update.type), " for ",
                           DataTypeName(operand.type));
  }
  if (start.shape.rank() != 1 || start.shape[0] != operand.shape.rank()) {
    return InvalidArgument("start indices ", start.shape, " for rank ", operand.shape.rank());
  }
  bool fits = update.shape.rank() == operand.shape.rank();
  for (int d = 0; fits && d < operand.shape.rank(); ++d) {
    fits = update.shape[d] <= operand.shape[d];
  }
  if (!fits) return InvalidArgument("an update of ", update.shape, " for ", operand.shape);
  FUSELITE_RETURN_IF_ERROR(RequireSized(operand.type));
  if (BitWidth(operand.type) < 8 && operand.type != DataType::kInt4) {
    return Unsupported("does not take elements of type ", DataTypeName(operand.type));
  }
  return SetOutput(op, 0, operand.type, operand.shape);
}

// A unit writes a piece of the output: of the operand's bytes, unless the output lies there, those
// that the update does not replace in one piece (a quarter of a cache, where a prompt fills that),
// then those of the update. A phase for each would be one more wait, where a token's update in
// place takes less than waiting.
class UpdateKernel final : public Kernel {
 public:
  UpdateKernel(const OpDescription& op, int64_t element_bytes)
      : name_("dynamic_update_slice " + std::string(DataTypeName(op.inputs[0].type))),
        operand_(op.inputs[0].shape),
        update_(op.inputs[1].shape),
        start_type_(op.inputs[2].type),
        element_bytes_(element_bytes),
        update_pitch_(op.inputs[1].pitch()),
        bytes_(operand_.elements() * element_bytes),
        rows_(update_.elements() == 0 ? 0 : update_.elements() / Width()),
        in_one_piece_(rows_ > 0 && InOnePiece()) {}

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return (bytes_ + kPiece - 1) / kPiece; }
  int in_place_input() const override { return 0; }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    const int64_t first = begin * kPiece, last = std::min(bytes_, end * kPiece);
    const Starts start = Start(args.inputs[2]);
    if (args.inputs[0] != args.outputs[0]) CopyAround(args, start, first, last);
    if (rows_ == 0) return Status();
    const auto* update = static_cast<const std::byte*>(args.inputs[1]);
    auto* out = static_cast<std::byte*>(args.outputs[0]);
    if (first == 0 && last == bytes_) {
      const CopyPlan plan(Copy(start));
      plan.Run(update, out, 0, plan.units());
    } else {
      CopyRows(update, out, start, first, last);
    }
    return Status();
  }

 private:
  using Starts = std::array<int64_t, Shape::kMaxRank>;

  // Bytes [first, last) of the operand, less those that the update replaces in one piece.
  void CopyAround(const KernelArgs& args, const Starts& start, int64_t first, int64_t last) const {
    const auto* operand = static_cast<const std::byte*>(args.inputs[0]);
    auto* out = static_cast<std::byte*>(args.outputs[0]);
    const auto copy = [&](int64_t from, int64_t to) {
      if (from < to) std::memcpy(out + from, operand + from, to - from);
    };
    if (!in_one_piece_) return copy(first, last);
    const int64_t gap = Place(0, start) * element_bytes_;
    copy(first, std::min(last, gap));
    copy(std::max(first, gap + update_.elements() * element_bytes_), last);
  }

  // What bytes [first, last) of the output have of the update, whose rows come in the same order.
  void CopyRows(const std::byte* update, std::byte* out, const Starts& start, int64_t first,
                int64_t last) const {
    const int64_t width = Width() * element_bytes_;
    const auto place = [&](int64_t row) { return Place(row, start) * element_bytes_; };
    int64_t row = 0;  // the first that does not end before `first`
    for (int64_t end = rows_; row < end;) {
      const int64_t middle = (row + end) / 2;
      place(middle) + width <= first ? row = middle + 1 : end = middle;
    }
    for (; row < rows_; ++row) {
      const int64_t at = place(row), from = std::max(at, first), to = std::min(at + width, last);
      if (from >= to) return;
      std::memcpy(out + from, update + row * update_pitch_ * element_bytes_ + (from - at),
                  to - from);
    }
  }

  // Whether the update's elements follow each other in the operand, too.
  bool InOnePiece() const {
    int d = operand_.rank() - 1;
    while (d > 0 && update_[d] == operand_[d]) --d;
    return update_.elements(0, std::max(d, 0)) == 1;
  }

  int64_t Width() const { return update_.rank() ? update_.dim(-1) : 1; }

  Starts Start(const void* indices) const {
    Starts start{};
    for (int d = 0; d < operand_.rank(); ++d) {
      start[d] =
          std::clamp<int64_t>(LoadIndex(start_type_, indices, d), 0, operand_[d] - update_[d]);
    }
    return start;
  }

  // The whole update: narrow ones are many rows, which the engine of copies merges.
  StridedCopy Copy(const Starts& start) const {
    StridedCopy copy;
    copy.element_bytes = static_cast<int>(element_bytes_);
    int64_t from = element_bytes_, to = element_bytes_;
    for (int d = operand_.rank() - 1; d >= 0; --d) {
      copy.out_offset += start[d] * to;
      copy.Add(update_[d], from, to);
      from = d == operand_.rank() - 1 ? update_pitch_ * element_bytes_ : from * update_[d];
      to *= operand_[d];
    }
    return copy;
  }

  // Where the first element of a row of the update lies in the operand.
  int64_t Place(int64_t row, const Starts& start) const {
    const int last = operand_.rank() - 1;
    int64_t place = last >= 0 ? start[last] : 0;
    int64_t stride = last >= 0 ? operand_[last] : 1;
    for (int d = last - 1; d >= 0; --d) {
      place += (row % update_[d] + start[d]) * stride;
      row /= update_[d];
      stride *= operand_[d];
    }
    return place;
  }

  std::string name_;
  Shape operand_, update_;
  DataType start_type_;
  int64_t element_bytes_, update_pitch_, bytes_, rows_;
  bool in_one_piece_;
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext& context) {
  if (!op.tail.empty()) return Unsupported("DYNAMIC_UPDATE_SLICE takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDenseInputs(op, {0, 2}));
  if (!IsDense(op.outputs[0]))
    return Unsupported("does not take DYNAMIC_UPDATE_SLICE into pitched rows");
  if (IsPacked(op.outputs[0].type)) return BuildOnBytes(op, context, Build);
  FUSELITE_ASSIGN_OR_RETURN(const int bytes, ElementBytes(op.inputs[0].type));
  return std::unique_ptr<Kernel>(std::make_unique<UpdateKernel>(op, bytes));
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& DynamicUpdateSliceOperator() {
  static constexpr OperatorDef kDef = {
      .name = "DYNAMIC_UPDATE_SLICE",
      .builtin_code = tflite::kTfLiteBuiltinDynamicUpdateSlice,
      .options_type = 117,
      .max_version = 6,
      .min_inputs = 3,
      .max_inputs = 3,
      .limits = "rank <= 8; any type but string, uint4 and int2; int32 and int64 start indices",
      .infer = InferUpdate,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
