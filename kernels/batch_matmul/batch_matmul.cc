#include "kernels/batch_matmul/batch_matmul.h"

#include <algorithm>

#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/product/description.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr Field kFields[] = {
    {"adj_x", FieldKind::kBool, 0, offsetof(BatchMatMulParams, adj_x),
     offsetof(tflite::TfLiteBatchMatMulParams, adj_x)},
    {"adj_y", FieldKind::kBool, 1, offsetof(BatchMatMulParams, adj_y),
     offsetof(tflite::TfLiteBatchMatMulParams, adj_y)},
    {.name = "asymmetric_quantize_inputs",
     .kind = FieldKind::kBool,
     .id = 2,
     .offset = offsetof(BatchMatMulParams, asymmetric_quantize_inputs),
     .struct_offset = offsetof(tflite::TfLiteBatchMatMulParams, asymmetric_quantize_inputs),
     .since_version = 4},
};

constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kI8 = DataType::kInt8, kI16 = DataType::kInt16;
constexpr TypeRow kTypes[] = {
    {{kF32, kF32}, kF32}, {{kI8, kI8}, kI8},   {{kI8, kI8}, DataType::kInt32},
    {{kI16, kI16}, kI16}, {{kI16, kI8}, kI16}, {{kF32, kI8}, kF32}};

// Dimension `i` of `shape` as if ones were put in front of it up to `rank` dimensions.
int32_t ExtendedDim(const Shape& shape, int rank, int i) {
  const int own = i - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

// The batch dimensions of both operands, broadcast against each other.
Result<MatrixBatches> BroadcastBatches(const Shape& x, const Shape& y) {
  const int rank = std::max(x.rank(), y.rank());
  MatrixBatches batch;
  batch.rank = rank - 2;
  for (int i = 0; i < batch.rank; ++i) {
    const int32_t a = ExtendedDim(x, rank, i), b = ExtendedDim(y, rank, i);
    if (a != b && a != 1 && b != 1) {
      return InvalidArgument("batches of ", x, " and ", y, " do not broadcast");
    }
    batch.dims[i] = a == 1 ? b : a;
  }
  int64_t x_stride = 1, y_stride = 1;
  for (int i = batch.rank - 1; i >= 0; --i) {
    const int32_t a = ExtendedDim(x, rank, i), b = ExtendedDim(y, rank, i);
    batch.x_strides[i] = a == 1 ? 0 : x_stride;
    batch.y_strides[i] = b == 1 ? 0 : y_stride;
    x_stride *= a;
    y_stride *= b;
  }
  return batch;
}

Status InferBatchMatMul(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  TensorInfo& output = op.outputs[0];
  if (output.type == DataType::kNone) output.type = op.inputs[0].type;
  output.shape = shape.output;
  if (op.inputs[0].type != kF32) {
    FUSELITE_RETURN_IF_ERROR(CheckZeroPoints(op, true));
    if (output.type == DataType::kInt32 && op.tail.empty() &&
        (op.inputs[0].quantization.zero_point() != 0 ||
         op.inputs[1].quantization.zero_point() != 0)) {
      return Unsupported("int8 to int32 with zero points, which TFLite's kernel does not heed");
    }
    return CheckQuantizedTail(op, Activation::kNone, DataType::kNone, shape.columns);
  }
  if (op.inputs[1].type == kF32) return MakeFloatTail(op, Activation::kNone).status();
  return MakeHybridTail(op, Activation::kNone, shape.columns).status();
}

Result<KernelPlan> PlanBatchMatMulHighway(const OpDescription& op, const PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const BatchMatMulShape shape, ResolveBatchMatMul(op));
  if (ReadsMatricesUnpacked(op, shape)) {
    return OwnPlan(BuildBatchMatMulUnpacked(op, context.isa));
  }
  return PlanHighwayProduct(op, context);
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanBatchMatMulHighway},
    {"reference", BuildBatchMatMulReference},
};

}  // namespace

Result<BatchMatMulShape> ResolveBatchMatMul(const OpDescription& op) {
  const auto& params = op.params.as<BatchMatMulParams>();
  const Shape& x = op.inputs[0].shape;
  const Shape& y = op.inputs[1].shape;
  if (std::min(x.rank(), y.rank()) < 2 || std::max(x.rank(), y.rank()) > 5) {
    return InvalidArgument("operands ", x, " and ", y, " must have 2 to 5 dimensions");
  }
  BatchMatMulShape shape{.rows = x.dim(params.adj_x ? -1 : -2),
                         .depth = x.dim(params.adj_x ? -2 : -1),
                         .columns = y.dim(params.adj_y ? -2 : -1)};
  if (shape.depth != y.dim(params.adj_y ? -1 : -2)) {
    return InvalidArgument("matrices of ", x, " and ", y, " do not fit together");
  }
  FUSELITE_ASSIGN_OR_RETURN(shape.batch, BroadcastBatches(x, y));
  for (int i = 0; i < shape.batch.rank; ++i) shape.output.push_back(shape.batch.dims[i]);
  shape.output.push_back(shape.rows);
  shape.output.push_back(shape.columns);
  if (!Shape::FromDims(shape.output.dims())) {
    return InvalidArgument("the product of ", x, " and ", y, " is too large");
  }
  return shape;
}

Status RequireWorthPacking(const OpDescription& op, const BatchMatMulShape& shape) {
  // Packing takes 0.3 to 0.9 microseconds for each matrix on a Zen 4, the reference 1.5 nanoseconds
  // for each product.
  constexpr int64_t kProducts = 256;
  if (ReadsMatricesUnpacked(op, shape)) {
    return Unsupported("few rows do not repay packing matrices at each run");
  }
  const int64_t products = int64_t{shape.rows} * shape.depth * shape.columns;
  if (op.inputs[1].constant() || op.inputs[1].type == kF32 || products > kProducts) {
    return Status();
  }
  return Unsupported(products, " products of a matrix do not repay packing it at each run");
}

BatchMatMulStrides StridesOf(const OpDescription& op) {
  const auto& params = op.params.as<BatchMatMulParams>();
  const int64_t x = op.inputs[0].pitch(), y = op.inputs[1].pitch();
  return {.x_matrix = op.inputs[0].shape.dim(-2) * x,
          .x_row = params.adj_x ? 1 : x,
          .x_term = params.adj_x ? x : 1,
          .y_matrix = op.inputs[1].shape.dim(-2) * y,
          .y_term = params.adj_y ? 1 : y,
          .y_column = params.adj_y ? y : 1};
}

const OperatorDef& BatchMatMulOperator() {
  static constexpr OperatorDef kDef = {
      .name = "BATCH_MATMUL",
      .builtin_code = tflite::kTfLiteBuiltinBatchMatmul,
      .options_type = 101,
      .max_version = 4,
      .fields = kFields,
      .params_bytes = sizeof(BatchMatMulParams),
      .struct_bytes = sizeof(tflite::TfLiteBatchMatMulParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .limits = "rank 2 to 5",
      .infer = InferBatchMatMul,
      .candidates = kCandidates,
      .product = DescribeBatchMatMulProduct,
      .product_inputs = ProductInputs{.bias = -1, .scaling = SumScaling::kFixedPointOfFloat},
      .cost =
          [](const OpDescription& op) {
            const bool adj_x = op.params.as<BatchMatMulParams>().adj_x;
            return static_cast<double>(op.outputs[0].elements()) *
                   op.inputs[0].shape.dim(adj_x ? -2 : -1);
          },
      .takes_tail = true,
      .bfloat16_values = true,
      .samples = SampleRule::kApart,
  };
  return kDef;
}

}  // namespace fuselite::kernels
