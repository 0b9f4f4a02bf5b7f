// Few rows by weights or with a bias known only at run time, rows by few units' weights, and what a
// rewrite chose, all of which are read where they lie.
#include <utility>

#include "kernels/filter_operands.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/simd.h"
#include "kernels/unpacked/int16_rows.h"
#include "kernels/unpacked/unpacked_product.h"

namespace fuselite::kernels {

bool ReadsWeightsUnpacked(const OpDescription& op) {
  constexpr int64_t kRowsWorthPacking = 4;
  // A panel has at least 8 units. For as few as these, vectors along the terms are faster from this
  // depth on (a single unit's from a vector on), whatever the rows: which way they are computed
  // must not depend on their number, as it decides their bits.
  constexpr int64_t kUnitsWorthPacking = 5, kDeep = 64, kDeepOfOne = 16;
  const Result<FullyConnectedShape> shape = ResolveFullyConnected(op);
  if (!shape.ok()) return false;
  const DataType type = op.inputs[0].type;
  const bool few_units = type == DataType::kFloat32 && shape->units < kUnitsWorthPacking &&
                         shape->depth >= (shape->units == 1 ? kDeepOfOne : kDeep);
  const bool chosen = op.params.as<FullyConnectedParams>().unpacked_weights;
  if (op.inputs[0].row_pitch == 0 && op.inputs[1].row_pitch == 0 &&
      ReadsOneUnitOfBytes(op, shape->rows)) {
    return true;
  }
  if (!few_units && !chosen && (shape->rows >= kRowsWorthPacking || HasConstants(op, 1, 2)))
    return false;
  const DataType weights = op.inputs[1].type;
  if (op.inputs[1].row_pitch != 0) return false;
  if (type == DataType::kInt16) {  // whose panels hold no biases
    const bool offset = op.inputs[1].quantization.zero_point() != 0;
    return !op.inputs[1].constant() && (weights == type || (weights == DataType::kInt8 && !offset));
  }
  const bool taken =
      type == DataType::kFloat32 || type == DataType::kInt8 || type == DataType::kUInt8;
  const bool hybrid = type == DataType::kFloat32 && weights == DataType::kInt8;
  return taken && (weights == type || (hybrid && !op.inputs[1].constant()));
}

namespace {

// A unit of work is a row.
Result<std::unique_ptr<Kernel>> BuildInt16Rows(const OpDescription& op, Isa isa) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  FUSELITE_ASSIGN_OR_RETURN(const Int16RowFunctions* const functions, FindInt16Rows(isa));
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape.units));
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  const size_t sums_bytes = AlignUp(shape.units * sizeof(int64_t));
  const size_t scratch_bytes = sums_bytes + tail.row_bytes();
  return MakeKernel(
      internal::Join("fully_connected int16 unpacked ", SimdName(isa)),
      {.units = shape.rows,
       .grain = GrainFor(int64_t{shape.depth} * shape.units / 8),
       .scratch_bytes = scratch_bytes},
      [=, tail = std::move(tail), bytes = op.inputs[1].type == DataType::kInt8](
          const KernelArgs& args, int64_t begin, int64_t end) {
        auto* const sums = reinterpret_cast<int64_t*>(args.scratch);
        const auto multiply = [&]<class Weight>(auto* function, const Weight* weights,
                                                int64_t row) {
          function({.x = static_cast<const int16_t*>(args.inputs[0]) + row * pitch,
                    .y = weights,
                    .rows = 1,
                    .depth = shape.depth,
                    .columns = shape.units,
                    .x_row = pitch,
                    .x_term = 1,
                    .y_term = 1,
                    .y_column = shape.depth,
                    .gathered = nullptr},
                   sums);
        };
        for (int64_t row = begin; row < end; ++row) {
          if (bytes) {
            multiply(functions->bytes, static_cast<const int8_t*>(args.inputs[1]), row);
          } else {
            multiply(functions->shorts, static_cast<const int16_t*>(args.inputs[1]), row);
          }
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildFullyConnectedUnpacked(const OpDescription& op,
                                                            const BuildContext& context) {
  if (op.inputs[0].type == DataType::kInt16) return BuildInt16Rows(op, context.isa);
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  return MakeUnpackedLayer("fully_connected", op,
                           {.activation = params.activation,
                            .bias_hint = params.quantized_bias_type,
                            .asymmetric = params.asymmetric_quantize_inputs},
                           {.rows = shape.rows,
                            .units = shape.units,
                            .depth = shape.depth,
                            .pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth},
                           context.isa);
}

Result<KernelPlan> PlanFullyConnectedHighway(const OpDescription& op, const PlanContext& context) {
  if (!ReadsWeightsUnpacked(op)) return PlanHighwayProduct(op, context);
  return OwnPlan(BuildFullyConnectedUnpacked(op, context));
}

}  // namespace fuselite::kernels
