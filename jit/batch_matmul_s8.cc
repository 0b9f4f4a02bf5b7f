#include <algorithm>

#include "jit/product_s8.h"
#include "kernels/batch_matmul/batch_matmul.h"

namespace fuselite::jit {
namespace {

using kernels::Activation;
using kernels::BatchMatMulParams;
using kernels::BatchMatMulShape;
using kernels::BuildContext;
using kernels::OpDescription;
using kernels::QuantizedTail;
using kernels::SumScaling;

constexpr int64_t kRowsPerCorrection = 64;  // of a unit

struct MatricesS8 {
  BatchMatMulShape shape;
  int64_t left_rows = 0;  // of all matrices
  int64_t left_step = 0;  // bytes between rows as they are multiplied
  int64_t right_bytes = 0, right_count = 0;
  S8Weights right;                       // of the first matrix, without values
  int64_t out_pitch = 0, out_bytes = 0;  // between rows; of an element
};

// Phase 0 packs panels of the right matrices and converts the left ones; phase 1, where there is
// one, corrects rows; the last phase multiplies.
class BatchMatMulS8Kernel final : public Kernel {
 public:
  BatchMatMulS8Kernel(GemmS8 gemm, const MatricesS8& m, std::optional<ConvertedImage> image)
      : gemm_(std::move(gemm)), m_(m), image_(image), name_(gemm_.name()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return 2 + gemm_.corrects(); }
  int64_t units(int phase) const override {
    if (phase == 0) return PackUnits() + (image_ ? image_->rows() : 0);
    if (phase + 1 == phases()) return m_.shape.batches() * gemm_.units();
    return (m_.left_rows + kRowsPerCorrection - 1) / kRowsPerCorrection;
  }
  int64_t grain(int phase) const override { return phase + 1 == phases() ? gemm_.grain() : 1; }
  size_t scratch_bytes() const override { return gemm_.scratch_bytes(); }
  size_t shared_bytes() const override {
    return corrections_at() + (gemm_.corrects() ? m_.left_rows * sizeof(int32_t) : 0);
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    const auto* input = static_cast<const std::byte*>(args.inputs[0]);
    const std::byte* a = image_ ? args.shared : input;
    auto* corrections = reinterpret_cast<int32_t*>(args.shared + corrections_at());
    if (phase == 0) {
      for (int64_t unit = begin; unit < std::min(end, PackUnits()); ++unit) Pack(args, unit);
      const int64_t first = std::max(begin, PackUnits());
      if (first < end) {
        image_->CopyRows(input, args.shared, first - PackUnits(), end - PackUnits());
      }
    } else if (phase + 1 < phases()) {
      gemm_.CorrectRows(a, corrections, begin * kRowsPerCorrection,
                        std::min(m_.left_rows, end * kRowsPerCorrection));
    } else {
      Multiply(args, a, corrections, begin, end);
    }
    return Status();
  }

 private:
  int64_t PackUnits() const { return m_.right_count * gemm_.panels(); }
  size_t packed_at() const { return image_ ? AlignUp(image_->bytes()) : 0; }
  size_t packed_step() const { return AlignUp(gemm_.packed_bytes()); }
  size_t corrections_at() const { return packed_at() + m_.right_count * packed_step(); }

  void Pack(const KernelArgs& args, int64_t unit) const {
    const int64_t matrix = unit / gemm_.panels(), panel = unit % gemm_.panels();
    S8Weights right = m_.right;
    right.values = static_cast<const std::byte*>(args.inputs[1]) + matrix * m_.right_bytes;
    gemm_.Pack(right, args.shared + packed_at() + matrix * packed_step(), panel, panel + 1);
  }

  void Multiply(const KernelArgs& args, const std::byte* a, const int32_t* corrections,
                int64_t begin, int64_t end) const {
    const int64_t rows = m_.shape.rows;
    while (begin < end) {
      const int64_t batch = begin / gemm_.units(), first = begin % gemm_.units();
      const int64_t count = std::min(gemm_.units() - first, end - begin);
      const auto pair = m_.shape.PairOf(batch);
      gemm_.Run(
          {args, a + pair.x * rows * m_.left_step,
           args.shared + packed_at() + pair.y * packed_step(), corrections + pair.x * rows,
           static_cast<std::byte*>(args.outputs[0]) + batch * rows * m_.out_pitch * m_.out_bytes,
           batch * rows},
          first, first + count);
      begin += count;
    }
  }

  GemmS8 gemm_;
  MatricesS8 m_;
  std::optional<ConvertedImage> image_;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildBatchMatMulInt8(const OpDescription& op,
                                                     const BuildContext& context) {
  const TensorInfo &left = op.inputs[0], &right = op.inputs[1];
  if (left.type != DataType::kInt8 || right.type != DataType::kInt8) {
    return Unsupported("only int8 has an integer emitter, not ", DataTypeName(left.type), " with ",
                       DataTypeName(right.type));
  }
  const auto& params = op.params.as<BatchMatMulParams>();
  if (params.adj_x) return Unsupported("a transposed left operand has no emitter");
  MatricesS8 m;
  FUSELITE_ASSIGN_OR_RETURN(m.shape, kernels::ResolveBatchMatMul(op));
  const BatchMatMulShape& shape = m.shape;
  if (shape.depth == 0 || shape.output.elements() == 0) {
    return Unsupported("nothing is emitted for an empty product");
  }
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      kernels::MakeQuantizedTail(
          op, Activation::kNone, DataType::kNone,
          {.x = 0, .weights = 1, .bias = -1, .scaling = SumScaling::kFixedPointOfFloat},
          shape.columns));
  m.left_rows = left.elements() / shape.depth;
  m.right_count = right.elements() / (int64_t{shape.depth} * shape.columns);
  const kernels::BatchMatMulStrides strides = kernels::StridesOf(op);
  m.right_bytes = strides.y_matrix;
  m.right = {nullptr, strides.y_term, strides.y_column, nullptr};
  m.out_pitch = op.outputs[0].pitch();
  m.out_bytes = BitWidth(op.outputs[0].type) / 8;
  if (m.left_rows > INT32_MAX) return Unsupported(m.left_rows, " rows are too many");

  kernels::Window window;  // the rows of all matrices as the pixels of one line
  window.y.input = window.y.output = 1;
  window.x.input = window.x.output = static_cast<int32_t>(m.left_rows);
  const std::optional<ConvertedImage> image =
      ImageFor(left, window, 1, shape.depth, shape.depth, context.isa);
  m.left_step = image ? image->pixel_bytes() : left.pitch();

  GemmS8Problem problem;
  problem.name = "batch_matmul";
  problem.channels = shape.columns;
  problem.out_pitch = m.out_pitch;
  problem.zero_point = left.quantization.zero_point();
  problem.weights_zero_point = right.quantization.zero_point();
  problem.depth.runs = {{0, shape.depth}};
  problem.a_step = m.left_step;
  problem.line_rows = shape.rows;
  problem.image_step = shape.rows * m.left_step;  // CorrectRows goes through all matrices
  problem.flips = HasDotProduct(context.isa) && !image;
  problem.tail = std::move(tail);
  FUSELITE_ASSIGN_OR_RETURN(GemmS8 gemm, GemmS8::Build(std::move(problem), context));
  return std::unique_ptr<Kernel>(new BatchMatMulS8Kernel(std::move(gemm), m, image));
}

}  // namespace fuselite::jit
