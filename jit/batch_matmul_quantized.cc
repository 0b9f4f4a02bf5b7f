#include <algorithm>

#include "jit/batch_gemm_s8.h"
#include "jit/product_hybrid.h"
#include "jit/product_s8.h"
#include "jit/quantized_image.h"

namespace fuselite::jit {
namespace {

using kernels::Activation;
using kernels::BatchMatMulParams;
using kernels::BatchMatMulShape;
using kernels::BuildContext;
using kernels::OpDescription;
using kernels::SumScaling;

constexpr int64_t kRowsPerCorrection = 64;  // of a unit

// Phase 0 packs panels of the right matrices and converts the left ones; phase 1, where there is
// one, corrects rows; the last phase multiplies.
class BatchMatMulInt8Kernel final : public Kernel {
 public:
  BatchMatMulInt8Kernel(BatchGemmS8 batch, std::optional<ConvertedImage> image)
      : batch_(std::move(batch)), image_(image), name_(batch_.gemm().name()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return 2 + batch_.gemm().corrects(); }
  int64_t units(int phase) const override {
    if (phase == 0) return batch_.pack_units() + (image_ ? image_->rows() : 0);
    if (phase + 1 == phases()) return batch_.units();
    return (batch_.left_rows() + kRowsPerCorrection - 1) / kRowsPerCorrection;
  }
  int64_t grain(int phase) const override {
    return phase + 1 == phases() ? batch_.gemm().grain() : 1;
  }
  size_t scratch_bytes() const override { return batch_.gemm().scratch_bytes(); }
  size_t shared_bytes() const override {
    const bool corrects = batch_.gemm().corrects();
    return corrections_at() + (corrects ? batch_.left_rows() * sizeof(int32_t) : 0);
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    const auto* input = static_cast<const std::byte*>(args.inputs[0]);
    const std::byte* a = image_ ? args.shared : input;
    std::byte* packed = args.shared + packed_at();
    auto* corrections = reinterpret_cast<int32_t*>(args.shared + corrections_at());
    if (phase == 0) {
      const int64_t panels = batch_.pack_units();
      batch_.Pack(args, packed, begin, std::min(end, panels));
      if (end > panels) {
        image_->CopyRows(input, args.shared, std::max(begin, panels) - panels, end - panels);
      }
    } else if (phase + 1 < phases()) {
      batch_.gemm().CorrectRows(a, corrections, begin * kRowsPerCorrection,
                                std::min(batch_.left_rows(), end * kRowsPerCorrection));
    } else {
      batch_.Run(args, {.a = a, .corrections = corrections}, packed, begin, end);
    }
    return Status();
  }

 private:
  size_t packed_at() const { return image_ ? AlignUp(image_->bytes()) : 0; }
  size_t corrections_at() const { return packed_at() + batch_.packed_bytes(); }

  BatchGemmS8 batch_;
  std::optional<ConvertedImage> image_;
  std::string name_;
};

// Phase 0 packs panels of the right matrices, too; the last one multiplies.
class BatchMatMulHybridKernel final : public Kernel {
 public:
  BatchMatMulHybridKernel(BatchGemmS8 batch, const QuantizedImage& rows)
      : batch_(std::move(batch)), rows_(rows), name_(batch_.gemm().name()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return rows_.phases() + 1; }
  int64_t units(int phase) const override {
    if (phase + 1 == phases()) return batch_.units();
    return rows_.units() + (phase == 0 ? batch_.pack_units() : 0);
  }
  int64_t grain(int phase) const override {
    if (phase + 1 == phases()) return batch_.gemm().grain();
    return phase == 0 && batch_.pack_units() > 0 ? 1 : rows_.grain();
  }
  size_t shared_bytes() const override { return packed_at() + batch_.packed_bytes(); }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    std::byte* packed = args.shared + packed_at();
    if (phase + 1 == phases()) {
      batch_.Run(args, {.a = args.shared, .scales = rows_.Scales(args.shared)}, packed, begin, end);
      return Status();
    }
    const int64_t panels = phase == 0 ? batch_.pack_units() : 0;
    if (begin < panels) batch_.Pack(args, packed, begin, std::min(end, panels));
    if (end > panels) {
      rows_.Run(static_cast<const float*>(args.inputs[0]), args.shared, phase,
                std::max(begin, panels) - panels, end - panels);
    }
    return Status();
  }

 private:
  size_t packed_at() const { return AlignUp(rows_.shared_bytes()); }

  BatchGemmS8 batch_;
  QuantizedImage rows_;
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
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, kernels::ResolveBatchMatMul(op));
  GemmS8Problem problem;
  FUSELITE_ASSIGN_OR_RETURN(
      problem.tail,
      kernels::MakeQuantizedTail(
          op, Activation::kNone, DataType::kNone,
          {.x = 0, .weights = 1, .bias = -1, .scaling = SumScaling::kFixedPointOfFloat},
          shape.columns));
  const int64_t rows = left.elements() / std::max(shape.depth, 1);
  if (rows > INT32_MAX) return Unsupported(rows, " rows are too many");
  kernels::Window window;  // the rows of all matrices as the pixels of one line
  window.y.input = window.y.output = 1;
  window.x.input = window.x.output = static_cast<int32_t>(rows);
  const std::optional<ConvertedImage> image =
      ImageFor(left, window, 1, shape.depth, shape.depth, context.isa);
  problem.name = "batch_matmul";
  problem.zero_point = left.quantization.zero_point();
  problem.weights_zero_point = right.quantization.zero_point();
  problem.flips = HasDotProduct(context.isa) && !image;
  FUSELITE_ASSIGN_OR_RETURN(
      BatchGemmS8 batch, BatchGemmS8::Build(op, std::move(problem),
                                            image ? image->pixel_bytes() : left.pitch(), context));
  return std::unique_ptr<Kernel>(new BatchMatMulInt8Kernel(std::move(batch), image));
}

Result<std::unique_ptr<Kernel>> BuildBatchMatMulHybrid(const OpDescription& op,
                                                       const BuildContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckHybridOperands(op, context.isa, false));
  if (op.inputs[1].type != DataType::kInt8) return Unsupported("int4 has no hybrid emitter here");
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, kernels::ResolveBatchMatMul(op));
  FUSELITE_ASSIGN_OR_RETURN(kernels::HybridTail tail,
                            kernels::MakeHybridTail(op, Activation::kNone, -1, shape.columns));
  const TensorInfo& left = op.inputs[0];
  const bool asymmetric = op.params.as<BatchMatMulParams>().asymmetric_quantize_inputs;
  const QuantizedImage rows({.images = left.elements() / std::max(shape.depth, 1),
                             .channels = shape.depth,
                             .pitch = left.pitch(),
                             .asymmetric = asymmetric,
                             .bytes = HasDotProduct(context.isa)},
                            context.isa);
  FUSELITE_ASSIGN_OR_RETURN(
      GemmS8Problem problem,
      HybridProblemOf(op, Activation::kNone, std::move(tail),
                      {.line_rows = shape.rows, .row_zero_points = asymmetric}, context.isa));
  problem.name = "batch_matmul hybrid";
  FUSELITE_ASSIGN_OR_RETURN(
      BatchGemmS8 batch, BatchGemmS8::Build(op, std::move(problem), rows.pixel_bytes(), context));
  return std::unique_ptr<Kernel>(new BatchMatMulHybridKernel(std::move(batch), rows));
}

}  // namespace fuselite::jit
