#include "kernels/elementwise/binary_rows.h"

#include <algorithm>
#include <limits>
#include <type_traits>

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
      if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(0 - a);
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
  BroadcastRunner(BinaryKind kind, const OpDescription& op, ApplyTailFunction* apply, Tail clamp)
      : plan_({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/!op.tail.empty()),
        apply_(apply),
        own_(std::move(clamp)),
        rest_(op.tail),
        output_type_(op.outputs[0].type) {
    // x - y where only y goes along the row and x repeats: the stage runs over y, x is its operand.
    flowing_ = plan_.stride(0) == 0 && plan_.stride(1) == 1 ? 1 : 0;
    const TailOperand operand{.input = 0, .channel_stride = plan_.stride(1 - flowing_)};
    own_.stages.insert(own_.stages.begin(),
                       TailStage::Binary(flowing_ == 1 ? Reversed(kind) : kind, operand));
  }

  const BroadcastPlan& plan() const { return plan_; }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    plan_.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) { Run(args, piece); });
  }

 private:
  void Run(const KernelArgs& args, const BroadcastPlan::Piece& piece) const {
    const auto* flowing =
        static_cast<const float*>(args.inputs[flowing_]) + piece.offsets[flowing_];
    const void* const operand =
        static_cast<const float*>(args.inputs[1 - flowing_]) + piece.offsets[1 - flowing_];
    auto* out =
        static_cast<std::byte*>(args.outputs[0]) + piece.offsets[2] * (BitWidth(output_type_) / 8);
    const bool in_place = output_type_ == DataType::kFloat32;
    void* between = in_place ? static_cast<void*>(out) : args.scratch;
    TailTile tile{.source = flowing,
                  .source_pitch = piece.count,
                  .source_type = DataType::kFloat32,
                  .destination = between,
                  .destination_pitch = piece.count,
                  .destination_type = DataType::kFloat32,
                  .row = 0,
                  .rows = 1,
                  .channel = 0,
                  .channels = piece.count};
    apply_(own_, &operand, tile);
    if (rest_.empty()) return;
    tile.source = between;
    tile.destination = out;
    tile.destination_type = output_type_;
    tile.row = piece.row;
    tile.channel = piece.column;
    apply_(rest_, args.inputs, tile);
  }

  BroadcastPlan plan_;
  ApplyTailFunction* apply_;
  Tail own_, rest_;
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
  BroadcastRunner runner(kind, op, apply, std::move(clamp));
  const int64_t unit = runner.plan().unit_elements();
  const Work work{.units = runner.plan().units(),
                  .grain = GrainFor(unit),
                  .scratch_bytes = op.tail.empty() ? 0 : unit * sizeof(float)};
  return MakeKernel(std::string(BinaryName(kind)) + " broadcast float32 " +
                        (vectors ? SimdName(context.isa) : "reference"),
                    work, std::move(runner));
}

}  // namespace fuselite::kernels
