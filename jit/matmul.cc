#include "jit/matmul.h"

#include "jit/aligned_constant.h"
#include "jit/gemm.h"
#include "kernels/batch_matmul/batch_matmul.h"
#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::jit {
namespace {

using kernels::Activation;
using kernels::BatchMatMulParams;
using kernels::BatchMatMulShape;
using kernels::BuildContext;
using kernels::FullyConnectedParams;
using kernels::FullyConnectedShape;
using kernels::OpDescription;

constexpr int64_t kFloat = sizeof(float);

// Products of matrices. Input 0 is on the left, input 1 on the right, input 2 may be a bias.
struct Matrices {
  BatchMatMulShape shape;    // one batch: batch_rank 0
  int64_t left_bytes = 0;    // between matrices of input 0
  int64_t right_values = 0;  // between matrices of input 1
  int64_t right_count = 1;   // matrices of input 1
  WeightsView right;         // steps; values and bias where they are constant
  int64_t out_bytes = 0;     // between matrices of the output
};

// Right-hand matrices that are constant come packed; others are packed by the units of phase 0,
// one panel each.
class MatrixKernel final : public Kernel {
 public:
  MatrixKernel(Gemm gemm, const Matrices& matrices, bool has_bias, PackedWeights packed, bool packs)
      : gemm_(std::move(gemm)),
        m_(matrices),
        has_bias_(has_bias),
        packed_(std::move(packed)),
        packs_(packs),
        name_(gemm_.name()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return packs_ ? 2 : 1; }
  int64_t units(int phase) const override {
    return Packs(phase) ? m_.right_count * gemm_.panels() : m_.shape.batches() * gemm_.units();
  }
  int64_t grain(int phase) const override { return Packs(phase) ? 1 : gemm_.grain(); }
  size_t shared_bytes() const override {
    return packs_ ? gemm_.packed_bytes() * m_.right_count : 0;
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    if (Packs(phase)) {
      for (int64_t unit = begin; unit < end; ++unit) PackPanel(args, unit);
      return Status();
    }
    while (begin < end) {
      const int64_t batch = begin / gemm_.units();
      const int64_t first = begin % gemm_.units();
      const int64_t count = std::min(gemm_.units() - first, end - begin);
      RunBatch(args, batch, first, first + count);
      begin += count;
    }
    return Status();
  }

 private:
  bool Packs(int phase) const { return packs_ && phase == 0; }

  void PackPanel(const KernelArgs& args, int64_t unit) const {
    const int64_t matrix = unit / gemm_.panels(), panel = unit % gemm_.panels();
    WeightsView view = m_.right;
    view.values = static_cast<const float*>(args.inputs[1]) + matrix * m_.right_values;
    view.bias = has_bias_ ? static_cast<const float*>(args.inputs[2]) : nullptr;
    auto* to = reinterpret_cast<float*>(args.shared + matrix * gemm_.packed_bytes());
    gemm_.Pack(view, to, panel, panel + 1);
  }

  void RunBatch(const KernelArgs& args, int64_t batch, int64_t begin, int64_t end) const {
    const auto pair = m_.shape.PairOf(batch);
    const std::byte* packed = packs_ ? args.shared : packed_->data();
    gemm_.Run(args.inputs, static_cast<const std::byte*>(args.inputs[0]) + pair.x * m_.left_bytes,
              packed + pair.y * gemm_.packed_bytes(),
              static_cast<std::byte*>(args.outputs[0]) + batch * m_.out_bytes,
              batch * m_.shape.rows, begin, end);
  }

  Gemm gemm_;
  Matrices m_;
  bool has_bias_;
  PackedWeights packed_;
  bool packs_;
  std::string name_;
};

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext& context,
                                      Matrices matrices, int64_t left_pitch, FusedTail tail,
                                      const char* name) {
  const BatchMatMulShape& shape = matrices.shape;
  GemmProblem problem;
  problem.depth.runs = {{0, shape.depth}};
  problem.a_step = left_pitch * kFloat;
  problem.out_step = op.outputs[0].pitch() * kFloat;
  problem.line_rows = shape.rows;
  problem.channels = shape.columns;
  problem.tail = std::move(tail);
  problem.name = name;
  matrices.out_bytes = shape.rows * problem.out_step;
  FUSELITE_ASSIGN_OR_RETURN(Gemm gemm, Gemm::Build(std::move(problem), context));

  const bool biased = op.op->max_inputs > 2 && op.has_input(2);
  const bool constant = op.inputs[1].constant() && (!biased || op.inputs[2].constant());
  PackedWeights packed;
  if (constant) {
    AlignedConstant weights(op.inputs[1]), bias(biased ? op.inputs[2] : TensorInfo());
    WeightsView view = matrices.right;
    view.bias = bias.as<float>();
    const auto pack = [&](std::byte* to) {
      for (int64_t i = 0; i < matrices.right_count; ++i) {
        view.values = weights.as<float>() + i * matrices.right_values;
        gemm.Pack(view, reinterpret_cast<float*>(to + i * gemm.packed_bytes()), 0, gemm.panels());
      }
    };
    const PackRequest request{weights.source(),
                              weights.bytes(),
                              bias.source(),
                              bias.bytes(),
                              gemm.layout() + (view.n_step == 1 ? " columns" : " rows"),
                              gemm.packed_bytes() * matrices.right_count};
    FUSELITE_ASSIGN_OR_RETURN(packed, context.Pack(request, pack));
  } else if (shape.rows < kRowsWorthPacking) {
    return Unsupported(shape.rows, " rows do not repay packing weights at each run");
  }
  return std::unique_ptr<Kernel>(
      new MatrixKernel(std::move(gemm), matrices, biased, std::move(packed), !constant));
}

Status CheckFloat(const OpDescription& op) {
  for (const DataType type : {op.inputs[0].type, op.inputs[1].type, op.outputs[0].type}) {
    if (type != DataType::kFloat32) {
      return Unsupported("only float32 is emitted, not ", DataTypeName(type));
    }
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildFullyConnected(const OpDescription& op,
                                                    const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckFloat(op));
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, kernels::ResolveFullyConnected(op));
  FUSELITE_ASSIGN_OR_RETURN(FusedTail tail,
                            FuseTail(op, op.params.as<FullyConnectedParams>().activation, 1));
  if (!TailIsLinear(tail.emitted)) {
    return Unsupported("a tail whose operands repeat per batch has no emitter");
  }
  const int64_t pitch = op.inputs[1].row_pitch ? op.inputs[1].row_pitch : shape.depth;
  Matrices matrices;
  matrices.shape.rows = static_cast<int32_t>(shape.rows);
  matrices.shape.depth = shape.depth;
  matrices.shape.columns = shape.units;
  matrices.right = {nullptr, 1, pitch, nullptr};
  const int64_t left_pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  return Build(op, context, matrices, left_pitch, std::move(tail), "fully_connected");
}

Result<std::unique_ptr<Kernel>> BuildBatchMatMul(const OpDescription& op,
                                                 const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckFloat(op));
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, kernels::ResolveBatchMatMul(op));
  const auto& params = op.params.as<BatchMatMulParams>();
  if (params.adj_x) return Unsupported("a transposed left operand has no emitter");
  if (shape.depth == 0 || shape.output.elements() == 0) {
    return Unsupported("nothing is emitted for an empty product");
  }
  FUSELITE_ASSIGN_OR_RETURN(FusedTail tail, FuseTail(op, Activation::kNone, shape.rows));
  const TensorInfo &left = op.inputs[0], &right = op.inputs[1];
  Matrices matrices;
  matrices.shape = shape;
  matrices.left_bytes = left.shape.dim(-2) * left.pitch() * kFloat;
  matrices.right_values = right.shape.dim(-2) * right.pitch();
  matrices.right_count = right.elements() / (int64_t{shape.depth} * shape.columns);
  if (params.adj_y) {
    matrices.right = {nullptr, 1, right.pitch(), nullptr};
  } else {
    matrices.right = {nullptr, right.pitch(), 1, nullptr};
  }
  return Build(op, context, matrices, left.pitch(), std::move(tail), "batch_matmul");
}

}  // namespace fuselite::jit
