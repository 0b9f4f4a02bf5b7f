#include "kernels/elementwise/typed/binary_rows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "kernels/elementwise/joined_rows.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/tail/apply.h"

namespace fuselite::kernels {
namespace {

template <class T>
T ApplyInteger(BinaryKind kind, T x, T y) {
  // It computes in 64 bits and unsigned: overflow is defined, and 16-bit products are not promoted
  // to int.
  const auto a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
  switch (kind) {
    case BinaryKind::kAdd: return static_cast<T>(a + b);
    case BinaryKind::kSub: return static_cast<T>(a - b);
    case BinaryKind::kMul: return static_cast<T>(a * b);
    case BinaryKind::kDiv:
      // The largest number is as near as the type comes to the smallest one's opposite.
      if (std::is_signed_v<T> && y == static_cast<T>(-1)) {
        return x == std::numeric_limits<T>::min() ? std::numeric_limits<T>::max()
                                                  : static_cast<T>(0 - a);
      }
      return static_cast<T>(x / y);
    case BinaryKind::kMaximum: return std::max(x, y);
    case BinaryKind::kMinimum: return std::min(x, y);
    case BinaryKind::kSquaredDifference: return static_cast<T>((a - b) * (a - b));
    default: return x;
  }
}

template <class T>
struct IntegerRow {
  BinaryKind kind;
  T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();

  IntegerRow(BinaryKind k, const OpDescription& op) : kind(k) {
    float min, max;
    if (!HasActivation(k)) return;
    const Activation activation = op.params.as<ArithmeticParams>().activation;
    if (activation == Activation::kNone || !ActivationRange(activation, &min, &max)) return;
    low = static_cast<T>(min);
    if (activation != Activation::kRelu) high = static_cast<T>(max);
  }

  // False where y has a zero by which x should be divided.
  bool operator()(const T* x, int x_stride, const T* y, int y_stride, T* out, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      const T divisor = y[i * y_stride];
      if (kind == BinaryKind::kDiv && divisor == 0) return false;
      out[i] = std::clamp(ApplyInteger(kind, x[i * x_stride], divisor), low, high);
    }
    return true;
  }
};

template <class T>
std::unique_ptr<Kernel> IntegerKernel(BinaryKind kind, const OpDescription& op) {
  const BroadcastPlan plan({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      std::string(BinaryName(kind)) + ' ' + std::string(DataTypeName(op.inputs[0].type)),
      {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
      [plan, row = IntegerRow<T>(kind, op)](const KernelArgs& args, int64_t begin, int64_t end) {
        bool ok = true;
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          ok &= row(static_cast<const T*>(args.inputs[0]) + piece.offsets[0], plan.stride(0),
                    static_cast<const T*>(args.inputs[1]) + piece.offsets[1], plan.stride(1),
                    static_cast<T*>(args.outputs[0]) + piece.offsets[2], piece.count);
        });
        return ok ? Status() : InvalidArgument("an integer is divided by 0");
      });
}

class BroadcastRunner {
 public:
  // `isa`: of the vectors, or kScalar. With vectors short rows are joined, where nothing but this
  // operator is computed.
  BroadcastRunner(BinaryKind kind, const OpDescription& op, ApplyTailFunction* apply, Tail clamp,
                  Isa isa)
      : plan_({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/!op.tail.empty()),
        apply_(apply),
        own_(std::move(clamp)),
        rest_(op.tail),
        output_type_(op.outputs[0].type) {
    // x - y where only y goes along the row and x repeats: the stage runs over y, x is its operand.
    flowing_ = plan_.stride(0) == 0 && plan_.stride(1) == 1 ? 1 : 0;
    const TailOperand operand{.input = 0,
                              .row_stride = plan_.row_stride(1 - flowing_),
                              .channel_stride = plan_.stride(1 - flowing_)};
    own_.stages.insert(own_.stages.begin(),
                       TailStage::Binary(flowing_ == 1 ? Reversed(kind) : kind, operand));
    if (!op.tail.empty() || isa == Isa::kScalar) return;
    joined_.emplace(op, isa);
    along_ = own_;
    along_.stages.front().operand = {.input = 0, .channel_stride = 1};
  }

  const BroadcastPlan& plan() const { return joined_ ? joined_->plan() : plan_; }
  size_t scratch_bytes() const {
    if (joined_) return joined_->scratch_bytes();
    return rest_.empty() ? 0 : plan_.unit_elements() * sizeof(float);
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    if (joined_) {
      return joined_->ForEach(args, begin, end, [&](const RowBlock& block) { Run(block); });
    }
    plan_.ForEachBlock(begin, end, [&](const BroadcastPlan::Block& block) { Run(args, block); });
  }

 private:
  // Rows that are no longer those of the plan have an operand that goes along them.
  void Run(const RowBlock& block) const {
    const bool second = flowing_ == 1;
    TailTile tile{.source = second ? block.y : block.x,
                  .source_pitch = second ? block.y_stride : block.x_stride,
                  .source_type = DataType::kFloat32,
                  .destination = block.out,
                  .destination_pitch = block.out_stride,
                  .destination_type = DataType::kFloat32,
                  .row = 0,
                  .rows = block.rows,
                  .channel = 0,
                  .channels = block.n};
    const void* operand = second ? block.x : block.y;
    const int64_t stride = second ? block.x_stride : block.y_stride;
    const int step = second ? block.x_step : block.y_step;
    const TailOperand& planned = own_.stages.front().operand;
    if (planned.row_stride == stride && planned.channel_stride == step) {
      return apply_(own_, &operand, tile);
    }
    tile.rows = 1;
    for (int64_t row = 0; row < block.rows; ++row) {
      apply_(along_, &operand, tile);
      operand = static_cast<const float*>(operand) + stride;
      tile.source = static_cast<const float*>(tile.source) + tile.source_pitch;
      tile.destination = static_cast<float*>(tile.destination) + tile.destination_pitch;
    }
  }

  void Run(const KernelArgs& args, const BroadcastPlan::Block& block) const {
    const auto* flowing =
        static_cast<const float*>(args.inputs[flowing_]) + block.offsets[flowing_];
    const void* const operand =
        static_cast<const float*>(args.inputs[1 - flowing_]) + block.offsets[1 - flowing_];
    auto* out =
        static_cast<std::byte*>(args.outputs[0]) + block.offsets[2] * (BitWidth(output_type_) / 8);
    const bool in_place = output_type_ == DataType::kFloat32;
    void* between = in_place ? static_cast<void*>(out) : args.scratch;
    TailTile tile{.source = flowing,
                  .source_pitch = plan_.row_stride(flowing_),
                  .source_type = DataType::kFloat32,
                  .destination = between,
                  .destination_pitch = in_place ? plan_.row_stride(2) : block.count,
                  .destination_type = DataType::kFloat32,
                  .row = 0,
                  .rows = block.rows,
                  .channel = 0,
                  .channels = block.count};
    apply_(own_, &operand, tile);
    if (rest_.empty()) return;
    tile.source = between;
    tile.source_pitch = tile.destination_pitch;
    tile.destination = out;
    tile.destination_pitch = plan_.row_stride(2);
    tile.destination_type = output_type_;
    tile.row = block.row;
    tile.channel = block.column;
    apply_(rest_, args.inputs, tile);
  }

  BroadcastPlan plan_;
  std::optional<JoinedRows> joined_;
  ApplyTailFunction* apply_;
  Tail own_, rest_;
  Tail along_;  // own_, of an operand that goes along one row
  DataType output_type_;
  int flowing_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildIntegerBinary(BinaryKind kind, const OpDescription& op) {
  switch (op.inputs[0].type) {
    case DataType::kInt8: return IntegerKernel<int8_t>(kind, op);
    case DataType::kUInt8: return IntegerKernel<uint8_t>(kind, op);
    case DataType::kInt16: return IntegerKernel<int16_t>(kind, op);
    case DataType::kInt32: return IntegerKernel<int32_t>(kind, op);
    case DataType::kInt64: return IntegerKernel<int64_t>(kind, op);
    case DataType::kUInt32: return IntegerKernel<uint32_t>(kind, op);
    default: return Unsupported(BinaryName(kind), " of ", DataTypeName(op.inputs[0].type));
  }
}

Result<std::unique_ptr<Kernel>> BuildBroadcastBinary(BinaryKind kind, const OpDescription& op,
                                                     const BuildContext& context, Tail clamp,
                                                     TailCandidate candidate) {
  const bool vectors = candidate == TailCandidate::kHighway;
  ApplyTailFunction* apply = vectors ? ApplyTail(context.isa) : &ApplyTailReference;
  if (vectors && apply == &ApplyTailReference) return NoVectorTarget(context.isa);
  BroadcastRunner runner(kind, op, apply, std::move(clamp), vectors ? context.isa : Isa::kScalar);
  const int64_t unit = runner.plan().unit_elements();
  const Work work{.units = runner.plan().units(),
                  .grain = GrainFor(unit),
                  .scratch_bytes = runner.scratch_bytes()};
  return MakeKernel(std::string(BinaryName(kind)) + " broadcast float32 " +
                        (vectors ? SimdName(context.isa) : "reference"),
                    work, std::move(runner));
}

}  // namespace fuselite::kernels
