#include "kernels/heads_matmul/heads_matmul.h"

#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/product/description.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kI8 = DataType::kInt8;
constexpr TypeRow kTypes[] = {{{kI8, kI8}, kI8}};

int64_t RowsOf(const Shape& shape) { return shape.elements(0, shape.rank() - 1); }

Status InferHeadsMatMul(OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const HeadsMatMulShape shape, ResolveHeadsMatMul(op));
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, kI8, shape.output));
  FUSELITE_RETURN_IF_ERROR(CheckZeroPoints(op, true));
  return CheckQuantizedTail(op, Activation::kNone, DataType::kNone,
                            int64_t{shape.heads} * shape.columns);
}

Result<ProductDescription> DescribeHeadsMatMul(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const HeadsMatMulShape shape, ResolveHeadsMatMul(op));
  if (shape.depth == 0 || shape.output.elements() == 0) return Unsupported("the product is empty");
  const bool adj_y = op.params.as<HeadsMatMulParams>().adj_y;
  const int64_t y_pitch = op.inputs[1].pitch();
  ProductDescription product;
  product.name = "heads_matmul";
  FUSELITE_RETURN_IF_ERROR(product.SetRows(shape.rows, shape.rows));
  product.groups = shape.heads;
  product.channels_in = int64_t{shape.heads} * shape.depth;
  product.pixel_pitch = op.inputs[0].pitch();
  product.channels_out = int64_t{shape.heads} * shape.columns;
  product.k_step = adj_y ? 1 : y_pitch;
  product.n_step = adj_y ? y_pitch : 1;
  product.right_group_step = adj_y ? shape.depth : shape.columns;
  return product;
}

constexpr Candidate kCandidates[] = {
    {"highway", PlanHighwayProduct},
    {"reference", BuildHeadsMatMulReference},
};

}  // namespace

Result<HeadsMatMulShape> ResolveHeadsMatMul(const OpDescription& op) {
  const auto& params = op.params.as<HeadsMatMulParams>();
  const TensorInfo &x = op.inputs[0], &y = op.inputs[1];
  if (x.shape.rank() < 2 || y.shape.rank() < 2 || params.heads < 1) {
    return InvalidArgument("operands ", x.shape, " and ", y.shape, " for ", params.heads, " heads");
  }
  const int64_t y_rows = RowsOf(y.shape), y_width = y.shape.dim(-1) / params.heads;
  if (y_rows > INT32_MAX) return Unsupported(y_rows, " rows are too many");
  HeadsMatMulShape shape{.rows = RowsOf(x.shape), .heads = params.heads};
  shape.depth = static_cast<int32_t>(params.adj_y ? y_width : y_rows);
  shape.columns = static_cast<int32_t>(params.adj_y ? y_rows : y_width);
  if (y.shape.dim(-1) % params.heads != 0 ||
      x.shape.dim(-1) != int64_t{params.heads} * shape.depth) {
    return InvalidArgument("rows of ", x.shape, " and ", y.shape, " do not fit together for ",
                           params.heads, " heads");
  }
  const int64_t width = int64_t{params.heads} * shape.columns;
  if (width > INT32_MAX) return Unsupported(width, " columns are too many");
  shape.output = x.shape;
  shape.output.set(x.shape.rank() - 1, static_cast<int32_t>(width));
  if (!Shape::FromDims(shape.output.dims())) {
    return InvalidArgument("the product of ", x.shape, " and ", y.shape, " is too large");
  }
  return shape;
}

Result<std::unique_ptr<Kernel>> BuildHeadsMatMulReference(const OpDescription& op,
                                                          const BuildContext&) {
  FUSELITE_ASSIGN_OR_RETURN(const HeadsMatMulShape shape, ResolveHeadsMatMul(op));
  const int64_t width = int64_t{shape.heads} * shape.columns;
  FUSELITE_ASSIGN_OR_RETURN(QuantizedTail tail,
                            MakeQuantizedTail(op, Activation::kNone, DataType::kNone, width));
  const bool adj_y = op.params.as<HeadsMatMulParams>().adj_y;
  const int64_t x_pitch = op.inputs[0].pitch(), y_pitch = op.inputs[1].pitch();
  const int32_t x_zero = op.inputs[0].quantization.zero_point();
  const int32_t y_zero = op.inputs[1].quantization.zero_point();
  const size_t sums_bytes = AlignUp(static_cast<size_t>(width) * sizeof(int64_t));
  const Work work{.units = width == 0 ? 0 : shape.rows,
                  .grain = GrainFor(shape.depth * width),
                  .scratch_bytes = sums_bytes + tail.row_bytes()};
  return MakeKernel(
      "heads_matmul int8 reference", work,
      [=, tail = std::move(tail)](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* const x = static_cast<const int8_t*>(args.inputs[0]);
        const auto* const y = static_cast<const int8_t*>(args.inputs[1]);
        auto* const sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = begin; row < end; ++row) {
          for (int64_t n = 0; n < width; ++n) {
            const int64_t head = n / shape.columns, c = n % shape.columns;
            sums[n] = 0;
            for (int64_t d = 0; d < shape.depth; ++d) {
              const int64_t k = head * shape.depth + d;
              const int64_t at = adj_y ? c * y_pitch + k : d * y_pitch + n;
              sums[n] += int64_t{x[row * x_pitch + k] - x_zero} * (y[at] - y_zero);
            }
          }
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

const OperatorDef& HeadsMatMulOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FUSELITE_HEADS_MATMUL",
      .params_bytes = sizeof(HeadsMatMulParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .types = kTypes,
      .infer = InferHeadsMatMul,
      .candidates = kCandidates,
      .product = DescribeHeadsMatMul,
      .product_inputs = ProductInputs{.bias = -1, .scaling = SumScaling::kFixedPointOfFloat},
      .cost =
          [](const OpDescription& op) {
            const auto shape = ResolveHeadsMatMul(op);
            return shape.ok() ? static_cast<double>(shape->output.elements()) * shape->depth : 0.0;
          },
      .takes_tail = true,
      .samples = SampleRule::kApartByRows,
  };
  return kDef;
}

}  // namespace fuselite::kernels
