// Few rows by weights known only at run time, and rows by few units' weights, all of which are read
// where they lie.
#include <algorithm>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/unpacked_product.h"
#include "kernels/make_kernel.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/simd.h"

namespace fuselite::kernels {

bool ReadsWeightsUnpacked(const OpDescription& op) {
  constexpr int64_t kRowsWorthPacking = 4;
  // A panel has at least 16 units. For as few as these, vectors along the terms are faster from
  // this depth on.
  constexpr int64_t kUnitsWorthPacking = 5, kDeep = 64;
  const Result<FullyConnectedShape> shape = ResolveFullyConnected(op);
  if (!shape.ok()) return false;
  const DataType type = op.inputs[0].type;
  const bool few_units =
      type == DataType::kFloat32 && shape->units < kUnitsWorthPacking && shape->depth >= kDeep;
  if (!few_units && (shape->rows >= kRowsWorthPacking || op.inputs[1].constant())) return false;
  const bool taken =
      type == DataType::kFloat32 || type == DataType::kInt8 || type == DataType::kUInt8;
  return taken && op.inputs[1].type == type && op.inputs[1].row_pitch == 0;
}

// A unit of work is a row by a block of weights' units: the output's rows need no more than their
// own channels.
Result<std::unique_ptr<Kernel>> BuildFullyConnectedUnpacked(const OpDescription& op,
                                                            const BuildContext& context) {
  constexpr int64_t kBlock = UnpackedProduct::kBlock;
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      const UnpackedProduct product,
      UnpackedProduct::Make(op, params.activation, params.quantized_bias_type, shape.units,
                            shape.depth, /*down=*/false, /*line_step=*/1, context.isa));
  const int64_t blocks = (shape.units + kBlock - 1) / kBlock;
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  return MakeKernel(
      internal::Join("fully_connected ", DataTypeName(op.inputs[0].type), " unpacked ",
                     SimdName(context.isa)),
      {.units = shape.rows * blocks,
       .grain = GrainFor(int64_t{shape.depth} * std::min<int64_t>(shape.units, kBlock) / 4),
       .scratch_bytes = product.scratch_bytes()},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t row = unit / blocks, first = unit % blocks * kBlock;
          product.Run(args, row * pitch, first * shape.depth,
                      std::min<int64_t>(kBlock, shape.units - first), row, first);
        }
      });
}

Result<KernelPlan> PlanFullyConnectedHighway(const OpDescription& op, const PlanContext& context) {
  if (!ReadsWeightsUnpacked(op)) return PlanHighwayProduct(op, context);
  return OwnPlan(BuildFullyConnectedUnpacked(op, WithoutStore(context)));
}

}  // namespace fuselite::kernels
